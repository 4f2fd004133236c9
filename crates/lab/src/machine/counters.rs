//! Counters of the kernel's network, of this network namespace.

use std::fs;

/// Events that a trial is charged with. Other traffic of the machine is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Connections that found a queue of accept full.
    pub overflows: u64,
    /// Connections that a listening socket dropped for any reason, a full queue included.
    pub drops: u64,
    /// SYN segments that were sent again.
    pub syn_retries: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

impl NetworkCounters {
    /// The counts now; zero for those that the kernel does not have.
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

/// A value of a table whose first line has names and whose second has numbers.
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
