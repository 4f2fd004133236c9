//! The message that hands a connection over. Its receiver trusts nothing in it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::protocol::MovedState;

/// Bytes of a message.
pub(super) const LENGTH: usize = 38;

/// An idle connection on its way to another process. Its socket travels beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl MovedConnection {
    pub(super) fn to_bytes(self) -> [u8; LENGTH] {
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
        put(&[u8::from(self.served), kind]);
        put(&client.map_or(0, |client| client.port()).to_le_bytes());
        put(&address.octets());
        bytes
    }

    /// Reads a message; `None` if no sender writes such a one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<MovedConnection> {
        let mut rest = <&[u8; LENGTH]>::try_from(bytes).ok()?.as_slice();
        let era = u64::from_le_bytes(take(&mut rest)?);
        let listener = u16::from_le_bytes(take(&mut rest)?);
        let remaining = Duration::from_millis(u32::from_le_bytes(take(&mut rest)?).into());
        let requests = u32::from_le_bytes(take(&mut rest)?);
        let [served, kind] = take(&mut rest)?;
        let port = u16::from_le_bytes(take(&mut rest)?);
        let address = IpAddr::V6(Ipv6Addr::from(take::<16>(&mut rest)?)).to_canonical();
        let proxied = match kind {
            DIRECT => None,
            FROM_PROXY => Some(None),
            FROM_CLIENT => Some(Some(SocketAddr::new(address, port))),
            _ => return None,
        };
        let state = MovedState { requests, proxied };
        let moved = MovedConnection { era, listener, served: served == 1, remaining, state };
        // A message has one form.
        (moved.to_bytes() == bytes).then_some(moved)
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
        let state = MovedState { requests: 70_000, proxied };
        MovedConnection { era, listener, served, remaining, state }
    }

    #[test]
    fn a_connection_arrives_as_it_was_sent() {
        for client in ["192.0.2.7:80", "[2001:db8::1]:65535", "[::]:0"] {
            for proxied in [None, Some(None), Some(Some(client.parse().expect("an address")))] {
                let bytes = moved(proxied).to_bytes();
                assert_eq!(MovedConnection::from_bytes(&bytes), Some(moved(proxied)));
            }
        }
        let endless = MovedConnection { remaining: Duration::MAX, ..moved(None) };
        let received = MovedConnection::from_bytes(&endless.to_bytes()).expect("it is a message");
        assert_eq!(received.remaining, Duration::from_millis(u32::MAX.into()));
    }

    #[test]
    fn h86_other_bytes_are_no_connection() {
        let bytes = moved(Some(None)).to_bytes();
        for length in 0..LENGTH {
            assert_eq!(MovedConnection::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(MovedConnection::from_bytes(&[&bytes[..], b"x"].concat()), None);
        // Every byte with every value: no panic, and whatever is read is written as it was.
        for place in 0..LENGTH {
            for value in 0..=u8::MAX {
                let mut bytes = bytes;
                bytes[place] = value;
                if let Some(read) = MovedConnection::from_bytes(&bytes) {
                    assert_eq!(read.to_bytes(), bytes, "byte {place} is {value}");
                }
            }
        }
    }
}
