//! Sequence diagrams: a fenced block `sequence` becomes an inline SVG with a title and a description.
//!
//! The language has one statement per line, and is readable as text:
//!
//! ```text
//! title: One request on an open connection
//! participants: client, kernel, worker
//! worker -> kernel: `epoll_wait`
//! wait worker: until a socket is ready
//! kernel --> worker: one socket is ready
//! note worker: parses the request
//! ```
//!
//! `->` is a call or a message, `-->` its return. `wait` marks a participant that is blocked, `note` its own work. Names
//! in backticks are system calls or operations.

use crate::escape::html;

/// The language of the fenced block.
pub(crate) const LANGUAGE: &str = "sequence";

/// The least distance of two participants, in units of the picture.
const NARROWEST: usize = 150;
/// The greatest distance of two participants.
const WIDEST: usize = 260;
/// Half of the width of a participant's name with its box.
const HALF_NAME: usize = 70;
/// The height of a step and of the participants' names.
const STEP: usize = 44;
const HEAD: usize = 46;
/// The width of a letter of a label, to keep labels between their participants.
const LETTER: usize = 8;
/// The room at both sides of the picture.
const MARGIN: usize = 4;
/// The least size of a picture in per cent. On a narrower screen it scrolls, so that text stays legible.
const SMALLEST: usize = 60;

/// A parsed diagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    title: String,
    participants: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    kind: Kind,
    label: String,
}

/// A line of the diagram, with the numbers of its participants.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Call(usize, usize),
    Return(usize, usize),
    Note(usize),
    Wait(usize),
}

impl Sequence {
    /// Parses the text of a block.
    pub(crate) fn parse(text: &str) -> Result<Sequence, String> {
        let mut diagram = Sequence { title: String::new(), participants: Vec::new(), steps: Vec::new() };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let failed = |why: &str| format!("diagram: {why}: {line}");
            let (head, label) = line.split_once(": ").ok_or(failed("a colon and a text are missing"))?;
            let label = label.trim().to_owned();
            match head {
                "title" => diagram.title = label,
                "participants" => {
                    diagram.participants = label.split(", ").map(str::to_owned).collect();
                }
                _ => {
                    let kind = diagram.kind(head).ok_or(failed("no such statement or participant"))?;
                    if label.chars().filter(|c| *c != '`').count() > diagram.room(&kind) {
                        return Err(failed("the text does not fit between its participants"));
                    }
                    diagram.steps.push(Step { kind, label });
                }
            }
        }
        if diagram.title.is_empty() || diagram.steps.is_empty() {
            return Err("diagram: the title or the steps are missing".to_owned());
        }
        Ok(diagram)
    }

    fn kind(&self, head: &str) -> Option<Kind> {
        let place = |name: &str| self.participants.iter().position(|known| known == name.trim());
        if let Some((from, to)) = head.split_once("-->") {
            return Some(Kind::Return(place(from)?, place(to)?)).filter(Kind::leads_elsewhere);
        }
        if let Some((from, to)) = head.split_once("->") {
            return Some(Kind::Call(place(from)?, place(to)?)).filter(Kind::leads_elsewhere);
        }
        let (word, name) = head.split_once(' ')?;
        match word {
            "note" => Some(Kind::Note(place(name)?)),
            "wait" => Some(Kind::Wait(place(name)?)),
            _ => None,
        }
    }

    /// The most letters of a label.
    fn room(&self, kind: &Kind) -> usize {
        let lanes = match kind {
            Kind::Call(from, to) | Kind::Return(from, to) => from.abs_diff(*to),
            Kind::Note(_) | Kind::Wait(_) => 1,
        };
        (lanes * WIDEST - 2 * LETTER) / LETTER
    }

    /// The positions of the participants, as close as the labels allow, and the width of the picture.
    fn layout(&self) -> (Vec<usize>, usize) {
        let needed = self.steps.iter().map(|step| match step.kind {
            Kind::Call(from, to) | Kind::Return(from, to) => {
                (step.letters() * (LETTER + 1) + 20).div_ceil(from.abs_diff(to))
            }
            Kind::Note(_) | Kind::Wait(_) => step.box_width() / 2 + LETTER,
        });
        let lane = needed.fold(NARROWEST, usize::max).min(WIDEST);
        let beside = |place: usize| {
            let boxes = self
                .steps
                .iter()
                .filter(|step| matches!(step.kind, Kind::Note(at) | Kind::Wait(at) if at == place));
            MARGIN + boxes.map(|step| step.box_width() / 2).fold(HALF_NAME, usize::max)
        };
        let last = self.participants.len().saturating_sub(1);
        let left =
            (0..=last).map(|place| beside(place).saturating_sub(place * lane)).max().unwrap_or_default();
        let right = (0..=last)
            .map(|place| beside(place).saturating_sub((last - place) * lane))
            .max()
            .unwrap_or_default();
        ((0..=last).map(|place| left + place * lane).collect(), left + last * lane + right)
    }

    /// The names in backticks, which are system calls or operations.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().flat_map(|step| step.label.split('`').skip(1).step_by(2))
    }

    /// The diagram in sentences, for screen readers.
    fn description(&self) -> String {
        let name = |place: &usize| self.participants[*place].as_str();
        let sentences = self.steps.iter().map(|step| {
            let label = step.label.replace('`', "");
            match &step.kind {
                Kind::Call(from, to) => format!("{} to {}: {label}.", name(from), name(to)),
                Kind::Return(from, to) => format!("{} returns to {}: {label}.", name(from), name(to)),
                Kind::Note(at) => format!("{}: {label}.", name(at)),
                Kind::Wait(at) => format!("{} waits: {label}.", name(at)),
            }
        });
        sentences.collect::<Vec<_>>().join(" ")
    }

    /// The diagram as SVG. `number` makes its identifiers unique on the page; colours are those of the page's style.
    pub(crate) fn svg(&self, number: usize) -> String {
        let (places, width) = self.layout();
        let height = HEAD + (self.steps.len() + 1) * STEP;
        let mut out = format!(
            "<figure class=\"sequence\" tabindex=\"0\">\n<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" style=\"min-width:{}px\" role=\"img\" aria-labelledby=\"sequence-{number}\" \
             aria-describedby=\"sequence-{number}-steps\">\n<title id=\"sequence-{number}\">{}</title>\n\
             <desc id=\"sequence-{number}-steps\">{}</desc>\n",
            width * SMALLEST / 100,
            html(&self.title),
            html(&self.description())
        );
        for (x, name) in places.iter().zip(&self.participants) {
            out.push_str(&format!(
                "<path class=\"life\" d=\"M{x} {HEAD}V{height}\"/><rect class=\"who\" x=\"{}\" y=\"8\" width=\"{}\" \
                 height=\"30\" rx=\"8\"/><text class=\"who\" x=\"{x}\" y=\"28\">{}</text>\n",
                x - HALF_NAME,
                2 * HALF_NAME,
                html(name)
            ));
        }
        for (row, step) in self.steps.iter().enumerate() {
            out.push_str(&step.svg(HEAD + (row + 1) * STEP, &places));
        }
        out.push_str(&format!("</svg>\n<figcaption>{}</figcaption>\n</figure>\n", html(&self.title)));
        out
    }
}

impl Kind {
    fn leads_elsewhere(&self) -> bool {
        !matches!(self, Kind::Call(from, to) | Kind::Return(from, to) if from == to)
    }
}

impl Step {
    /// The letters of its label.
    fn letters(&self) -> usize {
        self.label.chars().filter(|c| *c != '`').count()
    }

    /// The width of its box, if it is a note.
    fn box_width(&self) -> usize {
        self.letters() * (LETTER + 1) + 2 * LETTER
    }

    fn svg(&self, y: usize, places: &[usize]) -> String {
        let label = spans(&self.label);
        match self.kind {
            Kind::Call(from, to) | Kind::Return(from, to) => {
                let class = if matches!(self.kind, Kind::Call(..)) { "call" } else { "return" };
                let (start, end) = (places[from], places[to]);
                // The tip ends before the line of the participant.
                let (tip, back) = if end > start { (end - 2, end - 11) } else { (end + 2, end + 11) };
                format!(
                    "<path class=\"{class}\" d=\"M{start} {y}H{tip}\"/><path class=\"tip\" d=\"M{tip} {y}L{back} {}V{}z\"/>\
                     <text x=\"{}\" y=\"{}\">{label}</text>\n",
                    y - 5,
                    y + 5,
                    usize::midpoint(start, end),
                    y - 8
                )
            }
            Kind::Note(at) | Kind::Wait(at) => {
                let class = if matches!(self.kind, Kind::Note(_)) { "note" } else { "wait" };
                let (centre, width) = (places[at], self.box_width());
                format!(
                    "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"30\" rx=\"6\"/>\
                     <text x=\"{}\" y=\"{}\">{label}</text>\n",
                    centre - width / 2,
                    y - 20,
                    centre,
                    y
                )
            }
        }
    }
}

/// A label. Names of calls have another style.
fn spans(label: &str) -> String {
    let parts = label.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => html(part),
        _ => format!("<tspan class=\"name\">{}</tspan>", html(part)),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title: A & B\nparticipants: kernel, worker\nworker -> kernel: `recv`, and `send`\n\
                        wait worker: bytes\nkernel --> worker: 5 < 6\nnote worker: parses\n";

    #[test]
    fn a_diagram_has_a_title_a_description_and_its_steps() {
        let diagram = Sequence::parse(TEXT).expect("the text is correct");
        assert_eq!(diagram.calls().collect::<Vec<_>>(), ["recv", "send"]);
        let svg = diagram.svg(1);
        for part in [
            "role=\"img\" aria-labelledby=\"sequence-1\" aria-describedby=\"sequence-1-steps\"",
            "<title id=\"sequence-1\">A &amp; B</title>",
            "worker to kernel: recv, and send. worker waits: bytes. kernel returns to worker: 5 &lt; 6. worker: parses.",
            "<tspan class=\"name\">recv</tspan>, and <tspan class=\"name\">send</tspan>",
            // The 14 letters of the first label set the distance.
            "viewBox=\"0 0 298 266\"",
            "<path class=\"call\" d=\"M224 90H76\"/>",
            "<path class=\"return\" d=\"M74 178H222\"/>",
        ] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
    }

    #[test]
    fn a_picture_is_as_wide_as_its_labels() {
        let wide = |line: &str| Sequence::parse(&format!("{TEXT}{line}\n")).expect("it fits").layout();
        assert_eq!(wide("note kernel: x"), (vec![74, 224], 298));
        assert_eq!(wide("worker -> kernel: twenty letters long."), (vec![74, 274], 348));
        let (places, width) = wide("note worker: a longer note than a name");
        assert_eq!(places, [74, 224]);
        assert!(width > 298 && places[1] + (24 * 9 + 16) / 2 <= width, "{width}");
    }

    #[test]
    fn a_wrong_line_is_an_error_that_names_it() {
        let long = format!("worker -> kernel: {}", "x".repeat(40));
        for (line, why) in [
            ("worker: x", "no such statement or participant: worker: x"),
            ("client -> kernel: x", "no such statement or participant: client -> kernel: x"),
            ("worker -> worker: x", "no such statement or participant"),
            ("note worker", "a colon and a text are missing: note worker"),
            (long.as_str(), "the text does not fit between its participants"),
        ] {
            let error = Sequence::parse(&format!("{TEXT}{line}\n")).expect_err("the line is wrong");
            assert!(error.contains(why), "{error}");
        }
        assert!(Sequence::parse("participants: a, b\na -> b: x\n").is_err_and(|why| why.contains("title")));
    }
}
