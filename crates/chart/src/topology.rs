//! Machines and their links: a server, and its clients below each other.

use std::fmt::Write;

use crate::document::{LETTER, WIDTH, escape, open};

/// The height of a client with its link.
const ROW: f64 = 56.0;
/// The height of a box.
const HEIGHT: f64 = 40.0;
/// The width of a box.
const BOX: f64 = 100.0;

/// A machine: its name and a line about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its properties.
    pub about: String,
}

/// Draws a server, its clients, and the words on each link.
#[must_use]
pub fn topology(title: &str, server: &Machine, clients: &[(Machine, String)]) -> String {
    let height = ROW * clients.len().max(1) as f64;
    let middle = height / 2.0;
    let mut svg = open(title, height);
    draw(&mut svg, 1.0, middle, server);
    for (row, (client, link)) in clients.iter().enumerate() {
        let (at, right) = (ROW * (row as f64 + 0.5), WIDTH - BOX - 1.0);
        draw(&mut svg, right, at, client);
        let _ = write!(
            svg,
            "<path class=\"interval\" d=\"M{:.1} {middle:.1}L{right:.1} {at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            BOX + 1.0,
            right - 6.0,
            at - 6.0,
            escape(&short(link, WIDTH - 2.0 * BOX - 8.0))
        );
    }
    svg + "</svg>"
}

/// Draws a box of a machine, whose middle is at this height.
fn draw(svg: &mut String, left: f64, middle: f64, machine: &Machine) {
    let text = left + BOX / 2.0;
    let _ = write!(
        svg,
        "<rect class=\"grid\" fill=\"none\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{BOX}\" height=\"{HEIGHT}\"/>\
         <text x=\"{text:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text x=\"{text:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        middle - HEIGHT / 2.0,
        middle - 4.0,
        escape(&short(&machine.name, BOX - 8.0)),
        middle + 12.0,
        escape(&short(&machine.about, BOX - 8.0)),
    );
}

/// Returns text that fits into this width.
fn short(text: &str, width: f64) -> String {
    let letters = (width / LETTER) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_link() {
        let machine = |name: &str| Machine { name: name.to_owned(), about: "2 processors".to_owned() };
        let clients = ["b", "a client with a long name"].map(|name| (machine(name), "118 MB/s".to_owned()));
        let svg = topology("t", &machine("<a>"), &clients);
        assert_eq!((svg.matches("<rect").count(), svg.matches("118 MB/s").count()), (3, 2), "{svg}");
        assert!(svg.contains(">&lt;a&gt;<") && svg.contains('…') && svg.ends_with("</svg>"), "{svg}");
    }
}
