//! The check of a subject's response before the load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::trial::bench::Workbench;
use crate::trial::site::SiteFile;

const TIMEOUT: Duration = Duration::from_secs(10);
const MOST_HEAD: usize = 64 * 1024;

/// The compared parts of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedResponse {
    /// Its status, as digits.
    pub(crate) status: String,
    /// Bytes of its body, or of its first part if it exceeds the bound of [`observe`].
    pub(crate) bytes: u64,
    /// The SHA-256 of its body.
    pub(crate) hash: [u8; 32],
}

/// Requests `path` once, and compares the status, the length and the hash of the body.
pub(crate) fn check(
    bench: &Workbench,
    address: SocketAddr,
    path: &str,
    status: u16,
    file: Option<&SiteFile>,
) -> Result<(), String> {
    let found = observe(bench, address, path, u64::MAX)?;
    if found.status != status.to_string() {
        return Err(format!("{path} was answered with status {} instead of {status}", found.status));
    }
    let Some(file) = file else { return Ok(()) };
    if found.bytes != file.bytes {
        return Err(format!("{path} has {} bytes instead of {}", found.bytes, file.bytes));
    }
    match found.hash == file.hash {
        true => Ok(()),
        false => Err(format!("{path} was answered with other bytes than the file has")),
    }
}

/// Requests `path` once, and stops after `most` bytes of the body.
pub(crate) fn observe(
    bench: &Workbench,
    address: SocketAddr,
    path: &str,
    most: u64,
) -> Result<ObservedResponse, String> {
    let failed = |error: std::io::Error| format!("cannot fetch {path} before the trial: {error}");
    let mut stream = request(address, path, bench.patience(TIMEOUT)).map_err(failed)?;
    let (mut head, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let end = loop {
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        match end {
            Some(end) => break end,
            None if head.len() > MOST_HEAD => return Err(format!("the head of {path} does not end")),
            None => {}
        }
        match stream.read(&mut buffer).map_err(failed)? {
            0 => return Err(format!("the response for {path} has no head")),
            count => head.extend_from_slice(&buffer[..count]),
        }
    };
    let body = head.split_off(end + 4);
    let (mut hash, mut bytes) = (Sha256::new_with_prefix(&body), body.len() as u64);
    while bytes <= most {
        match stream.read(&mut buffer).map_err(failed)? {
            0 => break,
            count => {
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
    let head = String::from_utf8_lossy(&head);
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(ObservedResponse { status, bytes, hash: hash.finalize().into() })
}

fn request(address: SocketAddr, path: &str, patience: Duration) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    // One write sends the head in one segment.
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::trial::in_process::tests as in_process;

    #[test]
    fn a_wrong_body_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let server = thread::spawn(move || {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut head = [0; 512];
                let _ = stream.read(&mut head).expect("a request");
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").expect("it is sent");
            }
        });
        let bench = in_process::bench();
        let file = |body: &[u8]| SiteFile {
            path: "/x".to_owned(),
            bytes: body.len() as u64,
            hash: Sha256::digest(body).into(),
        };
        assert_eq!(check(&bench, address, "/x", 200, Some(&file(b"hi"))), Ok(()));
        let said = check(&bench, address, "/x", 200, Some(&file(b"ho"))).expect_err("other bytes");
        assert!(said.contains("other bytes"), "{said}");
        let said = check(&bench, address, "/x", 404, None).expect_err("another status");
        assert!(said.contains("status 200 instead of 404"), "{said}");
        server.join().expect("it ends");
    }
}
