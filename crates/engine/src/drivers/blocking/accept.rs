//! Blocking accepts, for models and topologies with a thread that only accepts.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

use tenfold_sys::failure::{AfterAccept, after_accept};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::poll::PollList;
use tenfold_sys::socket::{Listener, Socket, wait_slice};

use crate::protocol::{Event, Protocol};
use crate::worker::shortage::{EXHAUSTED_PAUSE, pause_where_short};
use crate::worker::tick::read_clock;

/// Accepts connections from all listeners while the server serves, and passes each one on. Calls `look_round` before
/// each wait; a wait lasts at most a [`wait_slice`].
///
/// One listener needs `accept4` only. With several listeners, `poll(2)` first reports the ones with a waiting
/// connection, because `accept4` waits for a single one.
///
/// `nonblocking`: the mode of accepted sockets.
pub(crate) fn accept_each<P: Protocol>(
    listeners: &[Listener],
    nonblocking: bool,
    protocol: &P,
    mut look_round: impl FnMut(),
    mut hand_on: impl FnMut(Socket, Option<SocketAddr>, u16),
) -> Result<(), String> {
    let mut waiting = AcceptWait::begin(listeners)?;
    protocol.begin();
    while lifecycle::phase() == Phase::Serving {
        read_clock();
        protocol.before_wait(false);
        look_round();
        let ready = waiting.next().or_else(|error| pause_where_short(error, protocol).map(|()| Vec::new()));
        for place in ready.map_err(|error| format!("cannot wait for connections: {error}"))? {
            let error = match listeners[place].accept(nonblocking) {
                Ok((socket, peer)) => {
                    hand_on(socket, peer, u16::try_from(place).unwrap_or(u16::MAX));
                    continue;
                }
                Err(error) => error,
            };
            match after_accept(&error) {
                AfterAccept::Again | AfterAccept::Wait => {}
                // Sockets are shut down when the server leaves.
                _ if lifecycle::phase() != Phase::Serving => break,
                AfterAccept::Pause => {
                    protocol.observe(Event::Exhausted);
                    std::thread::sleep(EXHAUSTED_PAUSE);
                }
                AfterAccept::GiveUp => {
                    return Err(format!("cannot accept on {}: {error}", listeners[place].address()));
                }
            }
        }
    }
    read_clock();
    protocol.drain();
    Ok(())
}

/// The waiting connections of several listeners.
pub(crate) struct Backlog(RefCell<PollList>);

impl Backlog {
    /// The backlog of `listeners`.
    pub(crate) fn of(listeners: &[Listener]) -> Backlog {
        let mut list = PollList::new();
        listeners.iter().for_each(|listener| list.set(listener.number(), 0, true, false));
        Backlog(RefCell::new(list))
    }

    /// Whether a connection is waiting. Does not block.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut any = false;
        self.0.borrow_mut().wait(Some(0), |_| any = true).is_ok() && any
    }
}

enum AcceptWait {
    /// `accept4` itself waits.
    InAccept,
    /// `poll` waits.
    InPoll(PollList),
}

impl AcceptWait {
    fn begin(listeners: &[Listener]) -> Result<AcceptWait, String> {
        let several = listeners.len() > 1;
        let mut list = PollList::new();
        for (listener, word) in listeners.iter().zip(0..) {
            // Connections inherit the slice in both cases.
            let set = listener.set_nonblocking(several).and_then(|()| listener.set_wait_slice(wait_slice()));
            set.map_err(|error| format!("cannot let {} wait: {error}", listener.address()))?;
            list.set(listener.number(), word, true, false);
        }
        Ok(if several { AcceptWait::InPoll(list) } else { AcceptWait::InAccept })
    }

    /// The listeners that may have a connection.
    fn next(&mut self) -> io::Result<Vec<usize>> {
        let mut ready = Vec::new();
        match self {
            AcceptWait::InAccept => ready.push(0),
            AcceptWait::InPoll(list) => {
                list.wait(Some(wait_slice().as_millis() as u32), |found| ready.push(found.key as usize))?;
            }
        }
        Ok(ready)
    }
}
