//! Faulty servers for the load generator: a thread per connection, and a function that responds to requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A server that runs until its value is dropped.
pub(crate) struct FaultyServer {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl FaultyServer {
    /// Starts a server. `answer` gets the connection and the head of a request, writes the response, and returns whether
    /// the connection persists.
    pub(crate) fn start(
        answer: impl Fn(&mut TcpStream, &str) -> bool + Send + Sync + 'static,
    ) -> FaultyServer {
        FaultyServer::listen("127.0.0.1:0", answer)
    }

    /// Starts a server at an address.
    pub(crate) fn listen(
        at: &str,
        answer: impl Fn(&mut TcpStream, &str) -> bool + Send + Sync + 'static,
    ) -> FaultyServer {
        FaultyServer::accept(at, move |stream| serve(stream, &answer))
    }

    /// Starts a server at an address. `serve` gets each connection.
    pub(crate) fn accept(at: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> FaultyServer {
        let listener = TcpListener::bind(at).expect("a port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, serve) = (stopped.clone(), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        });
        FaultyServer { address, stopped }
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(mut stream: TcpStream, answer: &(impl Fn(&mut TcpStream, &str) -> bool + ?Sized)) {
    let _ = stream.set_nodelay(true);
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = received.drain(..end + 4).collect();
            if !answer(&mut stream, &String::from_utf8_lossy(&head)) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

/// Writes a response with this body. Returns whether the write succeeded.
pub(crate) fn ok(stream: &mut TcpStream, body: &str) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).is_ok()
}
