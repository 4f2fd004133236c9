//! The quantities of a trial, with their names in experiment files.

use serde::{Deserialize, Serialize};
use tenfold_load::output::number;

macro_rules! measures {
    ($($(#[$default:meta])? $variant:ident $name:literal $unit:literal $about:literal;)+) => {
        /// A quantity of a trial.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Measure {
            $(#[doc = $about] $(#[$default])? $variant,)+
        }

        impl Measure {
            /// Every quantity.
            pub const ALL: &[Measure] = &[$(Measure::$variant),+];

            /// Its name in files.
            pub fn name(self) -> &'static str {
                match self { $(Measure::$variant => $name),+ }
            }

            /// Its unit, empty for a plain number.
            pub fn unit(self) -> &'static str {
                match self { $(Measure::$variant => $unit),+ }
            }

            /// Its meaning, for a table.
            pub fn about(self) -> &'static str {
                match self { $(Measure::$variant => $about),+ }
            }
        }
    };
}

measures! {
    #[default] Rate "rate" "1/s" "Responses per second.";
    Cpu "cpu" "µs" "CPU time of the server for each response, user and system.";
    User "user" "µs" "User CPU time of the server for each response.";
    System "system" "µs" "System CPU time of the server for each response.";
    Switches "switches" "" "Context switches of the server for each response.";
    Faults "faults" "" "Page faults of the server for each response.";
    Waiting "waiting" "µs" "Mean latency less the server's CPU time: queues, sleep, network and client.";
    Memory "memory" "KB" "Resident memory of the server at the end of the trial.";
    Pss "pss" "KB" "Memory of the server at the end of the trial, shared pages divided among its processes.";
    Latency "latency" "µs" "Mean latency.";
    P50 "p50" "ms" "Median latency.";
    P99 "p99" "ms" "99th percentile of the latency.";
    Max "max" "ms" "Longest latency.";
    Page "page" "ms" "Time from the first connection of a page to its last file, the mean of all loads of the trial.";
    Bytes "bytes" "MB/s" "Megabytes received per second.";
    Responses "responses" "" "Correct responses.";
    Errors "errors" "" "Failed requests.";
    Unanswered "unanswered" "" "Connections that made a request and never got a response.";
    Fairness "fairness" "" "Jain's index over the responses of each connection; 1 is even.";
    Overflows "overflows" "" "Connections that the kernel could not queue for accept (ListenOverflows).";
    Drops "drops" "" "Connections that a listening socket dropped (ListenDrops).";
    SynRetries "syn-retries" "" "SYN segments that were sent again (TcpExtTCPSynRetrans).";
    Retransmits "retransmits" "" "Segments that were sent again.";
    Calls "calls" "" "System calls of the server for each response, in a pass under a tracer.";
    SocketOptions "socket-options" "" "Calls of setsockopt for each response, in a pass under a tracer.";
    Operation "operation" "ns" "Time of an operation in process.";
    Steps "steps" "" "Entries that an operation in process looked at.";
}

impl Measure {
    /// Whether the quantity is better if it is larger.
    pub fn larger_is_better(self) -> bool {
        matches!(self, Measure::Rate | Measure::Bytes | Measure::Responses | Measure::Fairness)
    }

    /// A value with its unit, in three significant digits.
    pub fn show(self, value: f64) -> String {
        let number = show_number(value);
        if self.unit().is_empty() { number } else { format!("{number} {}", self.unit()) }
    }
}

/// A count with its noun: `1 block`, `2 blocks`.
pub fn show_count(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A number in three significant digits; from 1,000 on, all digits with commas.
pub fn show_number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        return number(value);
    }
    let decimals = match size {
        s if s.fract() == 0.0 => 0,
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(Measure::P50.show(40.0512), "40.1 ms");
        assert_eq!(show_number(329_725.4), "329,725");
        assert_eq!(show_number(0.0), "0");
        assert_eq!(show_number(0.12345), "0.123");
        assert_eq!(show_number(-1234.0), "-1,234");
    }
}
