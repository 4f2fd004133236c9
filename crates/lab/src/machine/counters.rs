//! The kernel's network counters of this network namespace.

use std::collections::BTreeMap;
use std::fs;

use crate::measure::Measure;

/// Network events: the measure, and the file, the table and the name of its counter. Other traffic of the machine also
/// counts.
const COUNTERS: [(Measure, &str, &str, &str); 4] = [
    (Measure::Overflows, "/proc/net/netstat", "TcpExt:", "ListenOverflows"),
    (Measure::Drops, "/proc/net/netstat", "TcpExt:", "ListenDrops"),
    (Measure::SynRetries, "/proc/net/netstat", "TcpExt:", "TCPSynRetrans"),
    (Measure::Retransmits, "/proc/net/snmp", "Tcp:", "RetransSegs"),
];

/// The present counts. A counter that the kernel lacks is zero.
pub(crate) fn now() -> BTreeMap<Measure, u64> {
    let count = |path: &str, table: &str, name: &str| {
        value(&fs::read_to_string(path).unwrap_or_default(), table, name)
    };
    COUNTERS.into_iter().map(|(measure, path, table, name)| (measure, count(path, table, name))).collect()
}

/// A value of a table with names in its first line and numbers in its second line.
fn value(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(table));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let at = names.split_whitespace().position(|found| found == name);
    at.and_then(|at| values.split_whitespace().nth(at)?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_their_names() {
        let netstat =
            "TcpExt: A ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 1 22 23 3\nIpExt: A\nIpExt: 9\n";
        assert_eq!(value(netstat, "TcpExt:", "ListenDrops"), 23);
        assert_eq!(value(netstat, "TcpExt:", "TCPSynRetrans"), 3);
        assert_eq!((value(netstat, "IpExt:", "B"), value("", "TcpExt:", "A")), (0, 0));
    }
}
