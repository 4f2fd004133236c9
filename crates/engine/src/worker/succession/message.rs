//! The message that hands a connection over. Its receiver trusts nothing in it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tenfold_http::layer::{MovedLayer, wipe};

use crate::protocol::MovedState;

/// Bytes of a message without a layer.
const LENGTH: usize = 38;
/// The most bytes of a message.
pub(super) const MOST_BYTES: usize = LENGTH + MovedLayer::MOST_BYTES;

/// An idle connection on its way to another process. Its socket travels beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MovedConnection {
    /// The era of its generation: [`super::Successions`].
    pub(super) era: u64,
    pub(super) listener: u16,
    /// Whether it has answered a request.
    pub(super) served: bool,
    /// The rest of its wait, in whole milliseconds.
    pub(super) remaining: Duration,
    pub(super) state: MovedState,
}

/// The kinds of [`MovedState::proxied`].
const DIRECT: u8 = 0;
const FROM_PROXY: u8 = 1;
const FROM_CLIENT: u8 = 2;

/// The bytes of a message. They are wiped when they are dropped.
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl MovedConnection {
    pub(super) fn to_message(&self) -> Message {
        let mut bytes = Vec::with_capacity(MOST_BYTES);
        bytes.extend_from_slice(&self.head());
        bytes.extend_from_slice(self.state.layer.as_ref().map_or(&[], MovedLayer::bytes));
        Message(bytes)
    }

    fn head(&self) -> [u8; LENGTH] {
        let remaining = u32::try_from(self.remaining.as_millis()).unwrap_or(u32::MAX);
        let (kind, client) = match self.state.proxied {
            None => (DIRECT, None),
            Some(None) => (FROM_PROXY, None),
            Some(Some(client)) => (FROM_CLIENT, Some(client)),
        };
        let address = client.map_or(Ipv6Addr::UNSPECIFIED, |client| match client.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        });
        let mut bytes = [0; LENGTH];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(field.len());
            own.copy_from_slice(field);
            rest = behind;
        };
        put(&self.era.to_le_bytes());
        put(&self.listener.to_le_bytes());
        put(&remaining.to_le_bytes());
        put(&self.state.requests.to_le_bytes());
        put(&[u8::from(self.served) | u8::from(self.state.layer.is_some()) << 1, kind]);
        put(&client.map_or(0, |client| client.port()).to_le_bytes());
        put(&address.octets());
        bytes
    }

    /// Reads a message; `None` if no sender writes such a one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<MovedConnection> {
        let (head, behind) = bytes.split_first_chunk::<LENGTH>()?;
        let mut rest = &head[..];
        let era = u64::from_le_bytes(take(&mut rest)?);
        let listener = u16::from_le_bytes(take(&mut rest)?);
        let remaining = Duration::from_millis(u32::from_le_bytes(take(&mut rest)?).into());
        let requests = u32::from_le_bytes(take(&mut rest)?);
        let [flags, kind] = take(&mut rest)?;
        let port = u16::from_le_bytes(take(&mut rest)?);
        let address = IpAddr::V6(Ipv6Addr::from(take::<16>(&mut rest)?)).to_canonical();
        let proxied = match kind {
            DIRECT => None,
            FROM_PROXY => Some(None),
            FROM_CLIENT => Some(Some(SocketAddr::new(address, port))),
            _ => return None,
        };
        let mut layer = MovedLayer::default();
        layer.push(behind);
        let has_layer = flags & 2 != 0;
        if !layer.fits() || !has_layer && !behind.is_empty() {
            return None;
        }
        let state = MovedState { requests, proxied, layer: has_layer.then_some(layer) };
        let moved = MovedConnection { era, listener, served: flags & 1 != 0, remaining, state };
        // A message has one form.
        (moved.head() == *head).then_some(moved)
    }
}

fn take<const COUNT: usize>(rest: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (own, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(proxied: Option<Option<SocketAddr>>) -> MovedConnection {
        let (era, listener, served, remaining) = (1 << 40, 513, true, Duration::from_millis(74_999));
        let state = MovedState { requests: 70_000, proxied, layer: None };
        MovedConnection { era, listener, served, remaining, state }
    }

    #[test]
    fn a_connection_arrives_as_it_was_sent() {
        for client in ["192.0.2.7:80", "[2001:db8::1]:65535", "[::]:0"] {
            for proxied in [None, Some(None), Some(Some(client.parse().expect("an address")))] {
                let mut layer = MovedLayer::default();
                layer.push(b"secrets");
                for layer in [None, Some(layer), Some(MovedLayer::default())] {
                    let mut sent = moved(proxied);
                    sent.state.layer = layer;
                    let message = sent.to_message();
                    assert_eq!(MovedConnection::from_bytes(message.bytes()), Some(sent));
                }
            }
        }
        let endless = MovedConnection { remaining: Duration::MAX, ..moved(None) };
        let received = MovedConnection::from_bytes(endless.to_message().bytes()).expect("it is a message");
        assert_eq!(received.remaining, Duration::from_millis(u32::MAX.into()));
    }

    #[test]
    fn h86_other_bytes_are_no_connection() {
        let bytes = moved(Some(None)).head();
        for length in 0..LENGTH {
            assert_eq!(MovedConnection::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(MovedConnection::from_bytes(&[&bytes[..], b"x"].concat()), None, "it has no layer");
        let mut with_layer = vec![7; MOST_BYTES + 1];
        with_layer[..LENGTH].copy_from_slice(&bytes);
        with_layer[18] |= 2;
        assert!(MovedConnection::from_bytes(&with_layer[..MOST_BYTES]).is_some());
        assert_eq!(MovedConnection::from_bytes(&with_layer), None, "it is too long");
        // Every byte with every value: no panic, and whatever is read is written as it was.
        for place in 0..LENGTH {
            for value in 0..=u8::MAX {
                let mut bytes = bytes;
                bytes[place] = value;
                if let Some(read) = MovedConnection::from_bytes(&bytes) {
                    assert_eq!(read.to_message().bytes(), bytes, "byte {place} is {value}");
                }
            }
        }
    }
}
