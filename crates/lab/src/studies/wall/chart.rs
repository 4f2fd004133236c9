//! A chart as text: a column for each number of idle connections, a letter for each engine, and a logarithmic axis.

use crate::measure::show_number;

/// Rows of the chart.
const ROWS: usize = 14;
/// Characters of a column.
const COLUMN: usize = 8;
/// Characters of the axis.
const AXIS: usize = 9;

/// The chart of costs by engine and level, as lines of at most 80 characters for eight levels.
pub(super) fn chart(engines: &[String], levels: &[u32], costs: &[Vec<Option<f64>>]) -> String {
    let known = || costs.iter().flatten().flatten().copied().filter(|cost| *cost > 0.0);
    // The axis covers at least 4 to 20 µs, so that it does not change with every trial.
    let low = known().fold(4.0, f64::min).log10();
    let high = known().fold(20.0, f64::max).log10();
    let row = |cost: f64| {
        let share = (cost.log10() - low) / (high - low);
        ((share * (ROWS - 1) as f64).round() as usize).min(ROWS - 1)
    };
    let letters = letters(engines);
    let mut text = "CPU time of a request, µs\n".to_owned();
    for at in (0..ROWS).rev() {
        let label = if at % 3 == 1 || at == ROWS - 1 {
            show_number(10f64.powf(low + (high - low) * at as f64 / (ROWS - 1) as f64))
        } else {
            String::new()
        };
        let mut line = format!("{label:>width$} |", width = AXIS - 2);
        for level in 0..levels.len() {
            let found: String = letters
                .iter()
                .zip(costs)
                .filter(|(_, costs)| costs[level].is_some_and(|cost| cost > 0.0 && row(cost) == at))
                .map(|(letter, _)| *letter)
                .collect();
            line.push_str(&format!("{found:^COLUMN$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("{}+{}\n", " ".repeat(AXIS - 1), "-".repeat(COLUMN * levels.len())));
    text.push_str(&format!("{:>width$} ", "idle", width = AXIS - 1));
    for level in levels {
        text.push_str(&format!("{:^COLUMN$}", show_number(f64::from(*level))));
    }
    text.truncate(text.trim_end().len());
    let legend: Vec<String> =
        letters.iter().zip(engines).map(|(letter, engine)| format!("{letter} {engine}")).collect();
    text + "\n" + &legend.join(", ") + "\n"
}

/// A letter for each engine: the first free letter of its name, otherwise a digit.
fn letters(engines: &[String]) -> Vec<char> {
    let mut all: Vec<char> = Vec::new();
    for name in engines {
        let free = |letter: &char| letter.is_ascii_alphanumeric() && !all.contains(letter);
        let letter = name.chars().chain('0'..='9').find(free).unwrap_or('*');
        all.push(letter);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_rise_with_costs() {
        let engines = ["poll", "pool", "epoll"].map(str::to_owned);
        let costs = vec![
            vec![Some(5.0), Some(50.0), Some(500.0)],
            vec![Some(5.0), None, None],
            vec![Some(5.0), Some(5.0), Some(5.0)],
        ];
        let text = chart(&engines, &[0, 900, 8_000], &costs);
        let lines: Vec<&str> = text.lines().collect();
        let row = |part: &str| lines.iter().position(|line| line.contains(part)).expect(part);
        // All three are at the bottom without idle connections, and poll rises by two steps.
        assert!(row("poe") > row("idle") - 4, "{text}");
        let column = |line: &str, letter: char| line.find(letter).map(|at| (at - AXIS) / COLUMN);
        let rows: Vec<usize> = (0..3)
            .filter_map(|level| {
                lines.iter().position(|line| line.contains('|') && column(line, 'p') == Some(level))
            })
            .collect();
        assert!(rows.len() == 3 && rows[0] > rows[1] && rows[1] > rows[2], "{rows:?}\n{text}");
        assert!(text.ends_with("p poll, o pool, e epoll\n"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 80));
    }

    #[test]
    fn an_empty_chart_has_its_axes() {
        let text = chart(&["epoll".to_owned()], &[0, 100], &[vec![None, None]]);
        assert_eq!(text.lines().count(), ROWS + 4, "{text}");
    }
}
