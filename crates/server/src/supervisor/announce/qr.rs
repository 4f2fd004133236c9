//! The link for phones: a QR code of text, on request.

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;

/// A QR code of `link`, for a terminal. In colour it is black on white; without colour, it is made for a dark terminal.
/// `None` if the link is too long for a code.
pub(super) fn code(link: &str, coloured: bool) -> Option<String> {
    let code = QrCode::new(link).ok()?;
    // A full block has the colour of text.
    let text = match coloured {
        true => code.render::<Dense1x2>().build(),
        false => code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build(),
    };
    let (on, off) = if coloured { ("\x1b[30;107m", "\x1b[0m") } else { ("", "") };
    Some(text.lines().map(|line| format!("  {on}{line}{off}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_and_has_a_quiet_border() {
        let plain = code("http://192.0.2.1:8080/", false).expect("it is short");
        let lines: Vec<&str> = plain.lines().map(|line| &line[2..]).collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{plain}");
        assert_eq!(lines.len(), width.div_ceil(2), "{plain}");
        assert!(lines[0].chars().all(|letter| letter == '█'), "{plain}");
        let coloured = code("http://192.0.2.1:8080/", true).expect("it is short");
        assert!(coloured.lines().all(|line| line.starts_with("  \x1b[30;107m") && line.ends_with("\x1b[0m")));
        assert_eq!(code(&"x".repeat(10_000), false), None);
    }
}
