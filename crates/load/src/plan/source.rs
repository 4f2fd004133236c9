//! Source addresses. One address has about 28,000 ports towards one server, so many connections need several
//! addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
/// Ranges of addresses, used in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceAddresses(Vec<AddressRange>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressRange {
    first: u128,
    count: u128,
    v4: bool,
}

impl SourceAddresses {
    /// The source address of connection `number`; `None` if the system chooses.
    pub fn nth(&self, number: u64) -> Option<IpAddr> {
        if self.0.is_empty() {
            return None;
        }
        let mut place = u128::from(number) % self.count().max(1);
        for range in &self.0 {
            if place < range.count {
                return Some(range.at(place));
            }
            place -= range.count;
        }
        None
    }

    /// The number of addresses; 0 if the system chooses.
    pub fn count(&self) -> u128 {
        self.0.iter().fold(0, |sum, range| sum.saturating_add(range.count))
    }
}

impl AddressRange {
    fn at(&self, place: u128) -> IpAddr {
        let bits = self.first + place;
        match self.v4 {
            true => Ipv4Addr::from(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
            false => Ipv6Addr::from(bits).into(),
        }
    }
}

impl From<SourceAddresses> for String {
    fn from(sources: SourceAddresses) -> String {
        let shown = |range: &AddressRange| format!("{}-{}", range.at(0), range.at(range.count - 1));
        sources.0.iter().map(shown).collect::<Vec<_>>().join(",")
    }
}

impl TryFrom<String> for SourceAddresses {
    type Error = String;

    fn try_from(text: String) -> Result<SourceAddresses, String> {
        if text.is_empty() { Ok(SourceAddresses::default()) } else { text.parse() }
    }
}

impl FromStr for SourceAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceAddresses, String> {
        let ranges = text.split(',').map(range).collect::<Option<Vec<_>>>();
        ranges
            .filter(|ranges| ranges.iter().all(|range| range.v4 == ranges[0].v4))
            .map(SourceAddresses)
            .ok_or_else(|| {
                format!(
                    "{text:?} is not a range of addresses; use 127.0.0.2, 127.0.0.2-127.0.0.9 or 127.1.0.0/24"
                )
            })
    }
}

fn range(text: &str) -> Option<AddressRange> {
    // A link-local source has the zone of the server's address.
    let text = match text.split_once('%') {
        Some((address, zone)) if address.contains(':') && !zone.is_empty() => address,
        _ => text,
    };
    let bits = |text: &str| match text.parse().ok()? {
        IpAddr::V4(address) => Some((u128::from(u32::from(address)), true)),
        IpAddr::V6(address) => Some((u128::from(address), false)),
    };
    if let Some((address, prefix)) = text.split_once('/') {
        let (address, v4) = bits(address)?;
        let host = (if v4 { 32u32 } else { 128 }).checked_sub(prefix.parse().ok()?)?;
        // Larger ranges are refused.
        let count = 1u128.checked_shl(host).filter(|_| host < 64)?;
        return Some(AddressRange { first: address & !(count - 1), count, v4 });
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ((first, v4), (last, last_v4)) = (bits(first)?, bits(last)?);
    let count = last.checked_sub(first)?.checked_add(1)?;
    (v4 == last_v4).then_some(AddressRange { first, count, v4 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let sources: SourceAddresses = text.parse().expect(text);
        let count = u64::try_from(sources.count()).expect("a short range");
        (0..count).filter_map(|number| sources.nth(number)).map(|address| address.to_string()).collect()
    }

    #[test]
    fn every_form_of_range_is_parsed_and_used_in_turn() {
        assert_eq!(all("127.0.0.2"), ["127.0.0.2"]);
        assert_eq!(all("127.0.0.9-127.0.0.11"), ["127.0.0.9", "127.0.0.10", "127.0.0.11"]);
        assert_eq!(all("10.0.0.7/31,10.9.0.1"), ["10.0.0.6", "10.0.0.7", "10.9.0.1"]);
        assert_eq!(all("::1-::2"), ["::1", "::2"]);
        assert_eq!(all("fe80::2%eth0"), ["fe80::2"]);
        assert_eq!(all("fe80::2%25eth0"), ["fe80::2"]);
        assert_eq!(
            "127.0.0.2-127.0.0.3".parse::<SourceAddresses>().expect("a range").nth(5),
            "127.0.0.3".parse().ok()
        );
        assert_eq!(SourceAddresses::default().nth(3), None);
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for wrong in [
            "",
            "a",
            "127.0.0.2-127.0.0.1",
            "127.0.0.1-::1",
            "127.0.0.1/33",
            "127.0.0.1,::1",
            "::/0",
            "fe80::2%",
            "127.0.0.1%lo",
        ] {
            assert!(wrong.parse::<SourceAddresses>().is_err(), "{wrong}");
        }
    }
}
