use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tenfold_http::{Instant, Io, Next, Patience, Received};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::poll::PollList;
use tenfold_sys::readiness::Ready;
use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};

use super::selector::{Interest, Selector};
use super::serve;
use crate::plan::choice::{Engine, Sender};
use crate::plan::{Bounds, Plan};
use crate::protocol::{Event, Protocol};
use crate::worker::intake::Intake;

/// A selector that can watch this many connections.
struct Failing {
    list: PollList,
    left: usize,
}

impl Selector for Failing {
    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        self.list.set(number, word, true, false);
        Ok(())
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::OutOfMemory)?;
        self.change(number, word, interest)
    }

    fn change(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.list.set(number, word, interest.read, interest.write);
        Ok(())
    }

    fn forget(&mut self, number: RawFd) {
        self.list.remove(number);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.list.wait(milliseconds, |ready| events.push(ready))
    }
}

/// Echoes each byte. Without input, it parks or waits.
#[derive(Clone)]
struct Echo {
    patience: Patience,
    exhausted: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Echo {
    async fn echo<I: Io>(&self, io: &mut I) -> Next {
        let by = tenfold_http::clock::now() + Duration::from_secs(60);
        loop {
            match std::future::poll_fn(|cx| io.poll_receive(cx, 64, self.patience, by)).await {
                Ok(Received::Bytes) => {}
                Ok(Received::Idle) => return Next::Park(by),
                _ => return Next::Close,
            }
            let (input, out) = io.split();
            out.stage(input);
            let count = input.len();
            io.consume(count);
            if std::future::poll_fn(|cx| io.poll_flush(cx, by)).await.is_err() {
                return Next::Close;
            }
        }
    }
}

impl Protocol for Echo {
    type State = ();

    fn serve<I: Io>(&self, io: &mut I, (): &mut ()) -> impl Future<Output = Next> {
        self.echo(io)
    }

    fn serve_anywhere<I: Io + Send>(&self, io: &mut I, (): &mut ()) -> impl Future<Output = Next> + Send {
        self.echo(io)
    }

    fn first_bytes_by(&self) -> Instant {
        tenfold_http::clock::now() + Duration::from_secs(60)
    }

    fn observe(&self, event: Event) {
        match event {
            Event::Exhausted => self.exhausted.fetch_add(1, Ordering::SeqCst),
            Event::Closed => self.closed.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
    }
}

fn echoes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && matches!(stream.read(&mut byte), Ok(1))
}

/// The process has one phase, so both cases are one test.
#[test]
fn a_connection_that_can_not_be_watched_is_closed_and_others_go_on() {
    for patience in [Patience::Park, Patience::Wait] {
        let options = ListenOptions { backlog: 16, tcp_nodelay: true, ..ListenOptions::default() };
        let any = ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"));
        let listener = Listener::bind(&any, &options).expect("loopback has a free port");
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let echo = Echo { patience, exhausted: Arc::default(), closed: Arc::default() };
        let protocol = echo.clone();
        let serving = thread::spawn(move || {
            let plan = Plan::new(Engine::Poll, None, Some(1), Sender::Auto, None, Bounds::default());
            let plan = plan.expect("the plan is legal");
            let selector = Failing { list: PollList::new(), left: 2 };
            serve(Box::new(selector), &plan, &Intake::listeners(&[listener]), &protocol)
        });
        let connect = || {
            let stream = TcpStream::connect(at).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            stream
        };
        let mut watched = [connect(), connect()];
        assert!(watched.iter_mut().all(echoes));
        for count in 1..=3 {
            let mut refused = connect();
            let end = refused.read(&mut [0]).expect("an end comes, and not nothing at all");
            assert_eq!(end, 0);
            assert_eq!(echo.exhausted.load(Ordering::SeqCst), count);
        }
        assert!(watched.iter_mut().all(echoes));
        // Refused connections only; a shutdown also closes parked connections.
        assert_eq!(echo.closed.load(Ordering::SeqCst), 3);
        lifecycle::advance(Phase::Stopping);
        serving.join().expect("the loop does not panic").expect("it leaves");
        lifecycle::reset();
    }
}
