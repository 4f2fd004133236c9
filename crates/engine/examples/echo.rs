//! An echo server on every I/O model: `cargo run --example echo -- epoll 127.0.0.1:7000`.
//!
//! A protocol is written once, over `Io`; the first argument names the model that runs it.

use std::future::poll_fn;
use std::time::Duration;

use tenfold_engine::{Bounds, Engine, Plan, Protocol, Sender, run};
use tenfold_http::{Finish, Instant, Io, IoError, Next, Patience, Received, clock};
use tenfold_sys::lifecycle::install_worker_signals;
use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};

#[derive(Clone)]
struct Echo;

impl Protocol for Echo {
    type State = ();

    fn first_bytes_by(&self) -> Instant {
        clock::now() + Duration::from_secs(60)
    }

    fn serve<I: Io>(&self, io: &mut I, (): &mut ()) -> impl Future<Output = Next> {
        self.echo(io)
    }

    fn serve_anywhere<I: Io + Send>(&self, io: &mut I, (): &mut ()) -> impl Future<Output = Next> + Send {
        self.echo(io)
    }
}

impl Echo {
    async fn echo<I: Io>(&self, io: &mut I) -> Next {
        let by = self.first_bytes_by();
        loop {
            match poll_fn(|cx| io.poll_receive(cx, 4096, Patience::Park, by)).await {
                Ok(Received::Idle) => return Next::Park(by),
                Ok(Received::Bytes | Received::Full) => {}
                Ok(Received::End) | Err(IoError::TimedOut) => break,
                Err(_) => return Next::Close,
            }
            let (input, out) = io.split();
            out.stage(input);
            let count = input.len();
            io.consume(count);
            if poll_fn(|cx| io.poll_flush(cx, by)).await.is_err() {
                return Next::Close;
            }
        }
        poll_fn(|cx| io.poll_finish(cx, Finish::Close, by)).await;
        Next::Close
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let engine: Engine = words.next().ok_or("which engine?")?.parse()?;
    let address: ListenAddress = words.next().ok_or("on which address?")?.parse()?;
    let plan = Plan::new(engine, None, Some(1), Sender::Auto, None, Bounds::default())?;
    let options = ListenOptions { backlog: 1024, tcp_nodelay: true, ..ListenOptions::default() };
    let listener = Listener::bind(&address, &options)?;
    install_worker_signals()?;
    Ok(run(&plan, &[listener], Echo)?)
}
