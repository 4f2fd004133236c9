//! The view of `tenfold lab wall`: a chart that is drawn again after each trial on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stdout};

use tenfold_lab::measure::Measure;
use tenfold_lab::record::Trial;
use tenfold_lab::runner::RunProgress;
use tenfold_lab::studies::wall::IdleWall;

/// The view.
pub(super) struct WallView<'a> {
    wall: &'a IdleWall,
    trials: Vec<Trial>,
    terminal: bool,
    /// Lines of the chart that is on the terminal.
    drawn: usize,
}

impl WallView<'_> {
    pub(super) fn new(wall: &IdleWall) -> WallView<'_> {
        WallView { wall, trials: Vec::new(), terminal: stdout().is_terminal(), drawn: 0 }
    }

    pub(super) fn tell(&mut self, progress: &RunProgress<'_>) {
        match progress {
            RunProgress::Trial { cell, block, blocks, .. } if self.terminal => {
                self.draw(&format!("measuring {cell}, block {block} of {blocks}; Ctrl-C stops\n"));
            }
            RunProgress::Ended(trial) => {
                if !self.terminal {
                    self.write(&line(trial));
                }
                self.trials.push((*trial).clone());
            }
            _ => {}
        }
    }

    /// Leaves the chart without the line below it.
    pub(super) fn end(&mut self) {
        if self.terminal {
            self.draw("\n");
        }
    }

    fn draw(&mut self, below: &str) {
        let text = format!("{}{below}", self.wall.chart(&self.trials));
        // Up to the first line of the last chart, and clear what is below (ECMA-48).
        let back = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        self.drawn = text.lines().count();
        self.write(&format!("{back}{text}"));
    }

    fn write(&self, text: &str) {
        // If standard output is closed, the table at the end reports it.
        let _ = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    }
}

fn line(trial: &Trial) -> String {
    let result = match (&trial.failed, trial.values.get(&Measure::Cpu)) {
        (Some(why), _) => format!("failed: {why}"),
        (None, Some(cpu)) => Measure::Cpu.show(*cpu),
        (None, None) => "no response".to_owned(),
    };
    let control = if trial.control { " again" } else { "" };
    format!("block {:<3} {:<16}{result}\n", trial.block + 1, format!("{}{control}", trial.cell))
}
