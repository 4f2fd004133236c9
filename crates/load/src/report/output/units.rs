//! Numbers with units.

/// Formats microseconds with a suitable unit.
pub(crate) fn time(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        value if value < 1e3 => (value, "us"),
        value if value < 1e6 => (value / 1e3, "ms"),
        value => (value / 1e6, "s"),
    };
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Formats a number with a comma between thousands.
pub fn number(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 && digits != "0" { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats bytes with a suitable decimal unit.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{value:.0} B"),
        value if value < 1e6 => format!("{:.1} kB", value / 1e3),
        value if value < 1e9 => format!("{:.1} MB", value / 1e6),
        value => format!("{:.2} GB", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_three_digits() {
        assert_eq!(time(0.5), "0.50 us");
        assert_eq!(time(12.34), "12.3 us");
        assert_eq!(time(2_345.0), "2.35 ms");
        assert_eq!(time(1_000_000.0), "1.00 s");
        assert_eq!(number(1_234_567.4), "1,234,567");
        assert_eq!(number(12.0), "12");
        assert_eq!((number(-12_682.0), number(-0.4)), ("-12,682".to_owned(), "0".to_owned()));
        assert_eq!(bytes(1_530_000.0), "1.5 MB");
    }
}
