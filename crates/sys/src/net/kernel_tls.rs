//! TLS in the kernel: it seals what a TCP socket sends (`Documentation/networking/tls.rst` of the kernel).

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};

use crate::net::socket::option::{read_bytes, set_bytes};
use crate::net::socket::stream::Socket;

/// linux/tcp.h. The `libc` crate does not have it.
const TCP_ULP: libc::c_int = 31;
/// The options that [`Socket::seal_in_kernel`] sets, with their levels.
pub const OPTIONS: [(libc::c_int, libc::c_int); 2] =
    [(libc::IPPROTO_TCP, TCP_ULP), (libc::SOL_TLS, libc::TLS_TX)];
/// `struct tls_crypto_info`: the version and the cipher, with which the parameters of each cipher begin.
const INFO_BYTES: usize = 4;
/// `struct tls12_crypto_info_aes_gcm_256`, and that of ChaCha20-Poly1305. They end with the number of a record.
const MOST_BYTES: usize = 56;

/// The features of TLS in this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTls {
    /// Whether the keys of a connection can change (Linux 6.14).
    pub rekeys: bool,
}

/// Output of a socket that the kernel seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedOutput {
    /// Bytes in the socket's queue or past it, from some start that stays the same.
    pub queued: u64,
    /// The number of the next record.
    pub record: u64,
}

/// Checks on connections over loopback that the kernel seals records with each of `parameters`.
pub fn probe(parameters: &[&[u8]]) -> Result<KernelTls, String> {
    let mut rekeys = true;
    for parameters in parameters {
        let (socket, _peer) = pair().map_err(|error| format!("no connection over loopback: {error}"))?;
        socket.set_protocol().map_err(|error| format!("TCP_ULP \"tls\": {error}"))?;
        let cipher = cipher_name(parameters);
        socket.set_sending(parameters).map_err(|error| format!("TLS_TX with {cipher}: {error}"))?;
        socket.sealed_output().map_err(|error| format!("getsockopt of TLS_TX with {cipher}: {error}"))?;
        rekeys &= socket.set_sending(parameters).is_ok();
    }
    Ok(KernelTls { rekeys })
}

fn cipher_name(parameters: &[u8]) -> &'static str {
    match parameters.get(2..INFO_BYTES).map(|cipher| u16::from_ne_bytes([cipher[0], cipher[1]])) {
        Some(libc::TLS_CIPHER_AES_GCM_128) => "AES-128-GCM",
        Some(libc::TLS_CIPHER_AES_GCM_256) => "AES-256-GCM",
        Some(libc::TLS_CIPHER_CHACHA20_POLY1305) => "ChaCha20-Poly1305",
        _ => "an unknown cipher",
    }
}

fn pair() -> io::Result<(Socket, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let peer = TcpStream::connect(listener.local_addr()?)?;
    Ok((OwnedFd::from(listener.accept()?.0).into(), peer))
}

impl Socket {
    /// Has the kernel seal everything that is sent from here on; also with other keys than before. `parameters` are the
    /// `struct tls12_crypto_info_*` of a cipher (linux/tls.h).
    ///
    /// # Errors
    /// The error of `setsockopt(2)`. EBUSY: the kernel cannot change keys.
    pub fn seal_in_kernel(&self, parameters: &[u8]) -> io::Result<SealedOutput> {
        match self.set_protocol() {
            Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.set_sending(parameters)?;
        self.sealed_output()
    }

    /// Sends a record of another type than data, which the kernel seals (`TLS_SET_RECORD_TYPE`). `waits`: a socket that
    /// blocks waits for room.
    ///
    /// # Errors
    /// The error of `sendmsg(2)`; `WouldBlock` if the call would wait.
    pub fn send_record(&self, kind: u8, content: &[u8], waits: bool) -> io::Result<usize> {
        #[repr(C)]
        struct RecordType {
            header: libc::cmsghdr,
            kind: u8,
        }
        // SAFETY: zeros are a header of no message.
        let header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        let mut control = RecordType { header, kind };
        control.header.cmsg_level = libc::SOL_TLS;
        control.header.cmsg_type = libc::TLS_SET_RECORD_TYPE;
        control.header.cmsg_len = (size_of::<libc::cmsghdr>() + 1) as _;
        let content = IoSlice::new(content);
        // SAFETY: zeros are a `msghdr` without name, data and control.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = (&raw const content).cast_mut().cast();
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<RecordType>() as _;
        let flags = libc::MSG_NOSIGNAL | if waits { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: an `IoSlice` has the layout of an `iovec`; the kernel only reads, and everything outlives the call.
        let result = unsafe { libc::sendmsg(self.number(), &raw const message, flags) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// The output that the kernel has sealed. It keeps sealed bytes back for which the socket's queue had no room.
    ///
    /// # Errors
    /// The error of `getsockopt(2)`: EINVAL if this side does not seal in the kernel.
    pub fn sealed_output(&self) -> io::Result<SealedOutput> {
        let mut parameters = [0; MOST_BYTES];
        read_bytes(self.as_fd(), libc::SOL_TLS, libc::TLS_TX, &mut parameters[..INFO_BYTES])?;
        let length =
            if parameters[2..4] == libc::TLS_CIPHER_AES_GCM_128.to_ne_bytes() { 40 } else { MOST_BYTES };
        read_bytes(self.as_fd(), libc::SOL_TLS, libc::TLS_TX, &mut parameters[..length])?;
        let record = u64::from_be_bytes(eight(&parameters[length - 8..length]));
        parameters.fill(0);
        // The compiler must assume that the zeros are read.
        std::hint::black_box(&parameters);
        // `struct tcp_info` of linux/tcp.h (Linux 4.19): sent bytes include those that were sent again.
        const NOT_SENT: usize = 144;
        const SENT: usize = 200;
        const SENT_AGAIN: usize = 208;
        let mut info = [0; SENT_AGAIN + 8];
        read_bytes(self.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
        let word = |at: usize| u64::from_ne_bytes(eight(&info[at..at + 8]));
        let not_sent = u32::from_ne_bytes([0, 1, 2, 3].map(|at| info[NOT_SENT + at]));
        let queued = word(SENT).wrapping_sub(word(SENT_AGAIN)).wrapping_add(not_sent.into());
        Ok(SealedOutput { queued, record })
    }

    fn set_protocol(&self) -> io::Result<()> {
        set_bytes(self.as_fd(), libc::IPPROTO_TCP, TCP_ULP, b"tls")
    }

    fn set_sending(&self, parameters: &[u8]) -> io::Result<()> {
        set_bytes(self.as_fd(), libc::SOL_TLS, libc::TLS_TX, parameters)
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes.try_into().expect("the caller passes eight bytes")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// `struct tls12_crypto_info_aes_gcm_128` with the key, the nonce and the record number 0.
    fn parameters() -> Vec<u8> {
        let info = [0x0304u16.to_ne_bytes(), 51u16.to_ne_bytes()].concat();
        [info, vec![0; 36]].concat()
    }

    #[test]
    fn the_probe_names_a_missing_facility_or_records_are_sealed() {
        let parameters = parameters();
        let kernel = match probe(&[&parameters]) {
            Err(missing) => {
                let named = [
                    "TCP_ULP \"tls\": ",
                    "TLS_TX with AES-128-GCM: ",
                    "getsockopt of TLS_TX with AES-128-GCM: ",
                ];
                assert!(named.iter().any(|step| missing.starts_with(step)), "{missing}");
                let (socket, _peer) = pair().expect("loopback");
                let error = socket.seal_in_kernel(&parameters).expect_err("it is missing");
                assert!(missing.ends_with(&error.to_string()), "{missing}: {error}");
                return;
            }
            Ok(kernel) => kernel,
        };
        let (socket, mut peer) = pair().expect("loopback");
        let before = socket.seal_in_kernel(&parameters).expect("the probe did");
        assert_eq!(socket.send(b"data", false).expect("there is room"), 4);
        assert_eq!(socket.send_record(21, &[1, 0], true).expect("there is room"), 2);
        let after = socket.sealed_output().expect("the probe did");
        assert_eq!((after.queued - before.queued, after.record - before.record), (2 * 22 + 6, 2));
        assert_eq!(socket.seal_in_kernel(&parameters).is_ok(), kernel.rekeys);
        drop(socket);
        let mut got = Vec::new();
        peer.read_to_end(&mut got).expect("it ends");
        assert_eq!((got.len(), &got[..5]), (2 * 22 + 6, &[23, 3, 3, 0, 4 + 17][..]));
    }
}
