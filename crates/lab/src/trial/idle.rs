//! Idle connections beside the load: each has made a request, so that the server has accepted it and keeps it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Opens `count` connections that make one request and then nothing.
pub(crate) fn open(address: SocketAddr, path: &str, count: u32) -> Result<Vec<TcpStream>, String> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let one = || -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(head.as_bytes())?;
        let mut buffer = [0; 16 * 1024];
        match stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(stream),
        }
    };
    let mut all = Vec::new();
    for number in 0..count {
        all.push(one().map_err(|error| {
            format!("cannot open idle connection {} of {count}: {error}; raise `ulimit -n`", number + 1)
        })?);
    }
    Ok(all)
}
