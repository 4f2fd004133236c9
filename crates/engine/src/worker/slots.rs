//! Connections as records: a slab of slots in chunks, so that a new connection moves no other one, and memory grows
//! with demand.
//!
//! A [`Key`] names a slot by its index and its epoch. The key of an ended connection finds nothing, even if its slot is
//! in use again: descriptors are reused immediately, keys are not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use std::time::Duration;

use tenfold_http::{Instant, Peer};
use tenfold_sys::socket::Socket;

use super::eviction::Search;

/// The name of a connection: its slot, and the epoch of the slot, which counts the connections that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) epoch: u32,
}

impl Key {
    pub(crate) fn word(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_word(word: u64) -> Key {
        Key { index: word as u32, epoch: (word >> 32) as u32 }
    }
}

/// The state of a slot's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// The slot is free.
    Free {
        /// The next free slot.
        next: u32,
    },
    /// It is idle: the slot has its socket, and nothing else is allocated.
    Parked,
    /// A task serves it and owns its socket.
    Active {
        /// The number of the task.
        task: u32,
    },
    /// Its output is shut down; received bytes are discarded.
    Lingering {
        /// The time of the shutdown, as `drivers/linger.rs` counts it.
        begun: u32,
    },
    /// It is closed, and operations on its socket are still in flight. Completion driver only.
    Closing {
        /// The number of the socket.
        number: RawFd,
    },
}

/// The record of a connection. `T` is the state of the protocol and a layer, and `D` that of the driver.
pub(crate) struct Slot<T, D> {
    /// The socket, unless a task owns it.
    pub(crate) socket: Option<Socket>,
    epoch: u32,
    peer: SmallPeer,
    pub(crate) state: SlotState,
    pub(crate) driver: D,
    /// Whether the connection has sent a response, so that it may be closed between requests.
    pub(crate) served: bool,
    pub(crate) listener: u16,
    /// The deadline of the connection's wait.
    pub(crate) deadline: Instant,
    /// The time at which its timer fires, not later than the deadline.
    pub(crate) armed: Instant,
    pub(crate) memory: T,
}

/// A peer's address without padding and without a zone index.
#[derive(Clone, Copy)]
struct SmallPeer {
    address: [u8; 16],
    port: u16,
    kind: PeerKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerKind {
    V4,
    V6,
    Unix,
}

impl SmallPeer {
    fn new(peer: Option<SocketAddr>) -> SmallPeer {
        match peer {
            None => SmallPeer { address: [0; 16], port: 0, kind: PeerKind::Unix },
            Some(SocketAddr::V4(at)) => {
                let mut address = [0; 16];
                address[..4].copy_from_slice(&at.ip().octets());
                SmallPeer { address, port: at.port(), kind: PeerKind::V4 }
            }
            Some(SocketAddr::V6(at)) => {
                SmallPeer { address: at.ip().octets(), port: at.port(), kind: PeerKind::V6 }
            }
        }
    }

    #[inline]
    fn widen(self) -> Peer {
        let address = match self.kind {
            PeerKind::Unix => return Peer::Unix,
            PeerKind::V4 => {
                let [a, b, c, d, ..] = self.address;
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            PeerKind::V6 => IpAddr::V6(Ipv6Addr::from(self.address)),
        };
        Peer::Internet(SocketAddr::new(address, self.port))
    }
}

impl<T, D> Slot<T, D> {
    fn is_free(&self) -> bool {
        matches!(self.state, SlotState::Free { .. })
    }

    #[inline]
    pub(crate) fn peer(&self) -> Peer {
        self.peer.widen()
    }
}

// An idle plaintext connection is a record with 4 bytes of the protocol and 3 of the driver.
const _: () = assert!(size_of::<Slot<u32, [u8; 3]>>() <= 64);

const CHUNK: usize = 512;
const NONE: u32 = u32::MAX;

/// All slots of a worker.
pub(crate) struct Slots<T, D> {
    chunks: Vec<Box<[Slot<T, D>]>>,
    free: u32,
    used: usize,
    /// The number of slots that were ever used.
    reached: usize,
    search: Search,
}

impl<T: Default, D: Default> Slots<T, D> {
    pub(crate) fn new() -> Slots<T, D> {
        Slots { chunks: Vec::new(), free: NONE, used: 0, reached: 0, search: Search::default() }
    }

    /// The number of connections.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes a slot for a new connection, in [`SlotState::Parked`].
    pub(crate) fn insert(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) -> Key {
        if self.free == NONE {
            self.grow();
        }
        let index = self.free;
        let slot = self.at(index);
        let next = if let SlotState::Free { next } = slot.state { next } else { NONE };
        slot.socket = Some(socket);
        slot.peer = SmallPeer::new(peer);
        slot.state = SlotState::Parked;
        slot.driver = D::default();
        slot.served = false;
        slot.listener = listener;
        slot.deadline = Instant::NEVER;
        slot.armed = Instant::NEVER;
        slot.memory = T::default();
        let key = Key { index, epoch: slot.epoch };
        self.free = next;
        self.used += 1;
        self.reached = self.reached.max(index as usize + 1);
        key
    }

    fn grow(&mut self) {
        let first = u32::try_from(self.chunks.len() * CHUNK).expect("connections are fewer than 2^32");
        let chunk = (0..CHUNK as u32).map(|place| Slot {
            socket: None,
            epoch: 0,
            peer: SmallPeer::new(None),
            state: SlotState::Free { next: if place + 1 == CHUNK as u32 { NONE } else { first + place + 1 } },
            driver: D::default(),
            served: false,
            listener: 0,
            deadline: Instant::NEVER,
            armed: Instant::NEVER,
            memory: T::default(),
        });
        self.chunks.push(chunk.collect());
        self.free = first;
    }

    #[inline]
    fn at(&mut self, index: u32) -> &mut Slot<T, D> {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// The connection with this key, if it still exists.
    #[inline]
    pub(crate) fn find(&mut self, key: Key) -> Option<&mut Slot<T, D>> {
        let slot = self.chunks.get_mut(key.index as usize / CHUNK)?.get_mut(key.index as usize % CHUNK)?;
        (slot.epoch == key.epoch && !slot.is_free()).then_some(slot)
    }

    /// The key of the connection in slot `index`, if there is one.
    pub(crate) fn key_at(&mut self, index: u32) -> Option<Key> {
        let slot = self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)?;
        (!slot.is_free()).then_some(Key { index, epoch: slot.epoch })
    }

    /// Frees a connection's slot, and closes its socket if the slot has it.
    pub(crate) fn remove(&mut self, key: Key) {
        let free = self.free;
        let Some(slot) = self.find(key) else { return };
        slot.socket = None;
        // A layer's part is on the heap.
        slot.memory = T::default();
        slot.state = SlotState::Free { next: free };
        slot.epoch = slot.epoch.wrapping_add(1);
        self.free = key.index;
        self.used -= 1;
    }

    /// The keys of a sample of connections that are idle, the longest idle first. `idle_for` returns the idle time of a
    /// connection, or `None` if it is active.
    pub(crate) fn sample_idle(&mut self, idle_for: impl Fn(&Slot<T, D>) -> Option<Duration>) -> Vec<Key> {
        let Slots { chunks, search, reached, .. } = self;
        let at = |index: usize| &chunks[index / CHUNK][index % CHUNK];
        let sample = search.sample(*reached, |index| idle_for(at(index)));
        sample.into_iter().map(|index| Key { index: index as u32, epoch: at(index).epoch }).collect()
    }

    /// The keys of all connections for which `wanted` returns true.
    pub(crate) fn keys(&self, wanted: impl Fn(&Slot<T, D>) -> bool) -> Vec<Key> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.iter()).zip(0u32..);
        slots
            .filter(|(slot, _)| !slot.is_free() && wanted(slot))
            .map(|(slot, index)| Key { index, epoch: slot.epoch })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        std::os::fd::OwnedFd::from(std::fs::File::open("/dev/null").expect("there is a null device")).into()
    }

    #[test]
    fn a_key_of_a_connection_that_has_ended_finds_nothing() {
        let mut slots = Slots::<u32, ()>::new();
        let first = slots.insert(socket(), None, 0);
        slots.remove(first);
        let second = slots.insert(socket(), None, 0);
        assert_eq!(first.index, second.index);
        assert!(slots.find(first).is_none());
        assert!(slots.find(second).is_some());
        assert!(slots.key_at(u32::MAX).is_none());
        assert_eq!(slots.used(), 1);
    }

    #[test]
    fn slots_are_used_again_before_memory_grows() {
        let mut slots = Slots::<u32, ()>::new();
        for _ in 0..3 {
            let keys: Vec<_> = (0..CHUNK).map(|_| slots.insert(socket(), None, 0)).collect();
            assert_eq!(slots.chunks.len(), 1);
            keys.into_iter().for_each(|key| slots.remove(key));
        }
        assert_eq!(slots.used(), 0);
    }

    #[test]
    fn a_sample_is_of_connections_there_are_and_begins_with_the_longest_idle() {
        let mut slots = Slots::<u32, ()>::new();
        let keys: Vec<_> = (0..700).map(|_| slots.insert(socket(), None, 0)).collect();
        for (key, since) in keys.iter().zip(0..) {
            slots.find(*key).expect("it is there").deadline = Instant(since);
        }
        let idle_for = |slot: &Slot<u32, ()>| (!slot.is_free()).then(|| Instant(1000).since(slot.deadline));
        keys[10..690].iter().for_each(|key| slots.remove(*key));
        for _ in 0..10 {
            let mut sample: Vec<_> = slots.sample_idle(idle_for).iter().map(|key| key.index).collect();
            assert_eq!(sample.len(), 16, "the first 16 of 20 are enough");
            assert!(sample.is_sorted(), "{sample:?}");
            sample.retain(|index| (10..690).contains(index));
            assert!(sample.is_empty(), "slots that are free: {sample:?}");
        }
        keys.iter().for_each(|key| slots.remove(*key));
        assert!(slots.sample_idle(idle_for).is_empty());
    }

    #[test]
    fn a_peer_is_kept_whole() {
        for text in ["127.0.0.1:80", "[2001:db8::1]:65535", "[::]:0"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(SmallPeer::new(Some(address)).widen(), Peer::Internet(address));
        }
        assert_eq!(SmallPeer::new(None).widen(), Peer::Unix);
    }
}
