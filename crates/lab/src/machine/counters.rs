//! The kernel's network counters of this network namespace.

use std::fs;

/// Network events. Other traffic of the machine also counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Connections that found a full accept queue.
    pub overflows: u64,
    /// Connections that a listening socket dropped for any reason, a full queue included.
    pub drops: u64,
    /// Retransmitted SYN segments.
    pub syn_retries: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
}

impl NetworkCounters {
    /// The present counts. A counter that the kernel lacks is zero.
    pub fn now() -> NetworkCounters {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        NetworkCounters::of(&read("/proc/net/netstat"), &read("/proc/net/snmp"))
    }

    fn of(netstat: &str, snmp: &str) -> NetworkCounters {
        NetworkCounters {
            overflows: value(netstat, "TcpExt:", "ListenOverflows"),
            drops: value(netstat, "TcpExt:", "ListenDrops"),
            syn_retries: value(netstat, "TcpExt:", "TCPSynRetrans"),
            retransmits: value(snmp, "Tcp:", "RetransSegs"),
        }
    }

    /// The events since `before`.
    pub fn since(&self, before: &NetworkCounters) -> NetworkCounters {
        NetworkCounters {
            overflows: self.overflows.saturating_sub(before.overflows),
            drops: self.drops.saturating_sub(before.drops),
            syn_retries: self.syn_retries.saturating_sub(before.syn_retries),
            retransmits: self.retransmits.saturating_sub(before.retransmits),
        }
    }
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
        let found = NetworkCounters::of(netstat, "Ip: X\nIp: 1\nTcp: RetransSegs\nTcp: 7\n");
        assert_eq!(found, NetworkCounters { overflows: 22, drops: 23, syn_retries: 3, retransmits: 7 });
        assert_eq!(NetworkCounters::of("", ""), NetworkCounters::default());
    }
}
