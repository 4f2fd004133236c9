//! Correctness before speed: what a subject answers, before it is loaded.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::trial::site::SiteFile;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks for `path` once, and compares the status, the length and the hash of the body.
pub(crate) fn check(
    address: SocketAddr,
    path: &str,
    status: u16,
    file: Option<&SiteFile>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot fetch {path} before the trial: {error}");
    let response = fetch(address, path).map_err(failed)?;
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.ok_or_else(|| format!("the response for {path} has no head"))?;
    let head = String::from_utf8_lossy(&response[..end]);
    let found = head.split(' ').nth(1).unwrap_or_default();
    if found != status.to_string() {
        return Err(format!("{path} was answered with status {found} instead of {status}"));
    }
    let body = &response[end + 4..];
    let Some(file) = file else { return Ok(()) };
    if body.len() as u64 != file.bytes {
        return Err(format!("{path} has {} bytes instead of {}", body.len(), file.bytes));
    }
    match <[u8; 32]>::from(Sha256::digest(body)) == file.hash {
        true => Ok(()),
        false => Err(format!("{path} was answered with other bytes than the file has")),
    }
}

fn fetch(address: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // In one write, so that the head arrives whole.
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

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
        let file = |body: &[u8]| SiteFile {
            path: "/x".to_owned(),
            bytes: body.len() as u64,
            hash: Sha256::digest(body).into(),
        };
        assert_eq!(check(address, "/x", 200, Some(&file(b"hi"))), Ok(()));
        let said = check(address, "/x", 200, Some(&file(b"ho"))).expect_err("other bytes");
        assert!(said.contains("other bytes"), "{said}");
        let said = check(address, "/x", 404, None).expect_err("another status");
        assert!(said.contains("status 200 instead of 404"), "{said}");
        server.join().expect("it ends");
    }
}
