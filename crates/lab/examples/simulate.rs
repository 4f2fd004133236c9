//! Runs the statistics of `tenfold lab` on synthetic trials: `cargo run --release -p tenfold-lab --example simulate`.
//!
//! Prints two shares for several deviations and margins: how often a true ratio of 1.10 is found, and how often equal
//! servers are reported as different. Each experiment has four claims. Arguments: the number of simulations (1,000) and
//! the seed (1).

use tenfold_lab::statistics::decision::Decision;
use tenfold_lab::statistics::simulation::{Synthetic, any_difference, share};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let runs = arguments.next().and_then(Result::ok).unwrap_or(1_000) as u32;
    let seed = arguments.next().and_then(Result::ok).unwrap_or(1);
    println!("{runs} simulations with seed {seed}, 4 claims, 200 blocks at most");
    println!("{:>10} {:>8} {:>18} {:>18}", "deviation", "margin", "1.10 is found", "false difference");
    for deviation in [0.02, 0.05, 0.10] {
        for margin in [0.10, 0.05] {
            let of = |truths| Synthetic { truths, deviation, margin, most_blocks: 200 };
            let found = share(&of(&[1.10, 1.0, 1.0, 1.0]), runs, seed, |all| all[0] == Decision::Holds);
            let wrong = share(&of(&[1.0; 4]), runs, seed, any_difference);
            println!("{deviation:>10.2} {margin:>8.2} {:>16.1} % {:>16.1} %", found * 100.0, wrong * 100.0);
        }
    }
}
