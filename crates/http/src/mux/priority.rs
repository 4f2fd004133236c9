//! Priorities of responses (RFC 9218).

use std::convert::Infallible;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

/// The priority of a response. The order is the order of service: a lower urgency first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority {
    /// 0 to 7; 0 is the most urgent (§4.1).
    pub(crate) urgency: u8,
    /// Whether the client uses the response as it arrives, so that it shares the connection with others of its
    /// urgency (§4.2).
    pub(crate) incremental: bool,
}

impl Default for Priority {
    /// The priority of a request without a `Priority` field.
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The weights by which Chromium states its eight priorities, most urgent first.
    const WEIGHTS: [u16; 8] = [256, 220, 183, 147, 110, 74, 37, 1];

    /// Applies the value of a `Priority` field or frame: parameters that it does not have, or has with a wrong type
    /// or value, keep their present value (§4). Returns `None` if the value is not a dictionary.
    pub(crate) fn apply(self, value: &[u8]) -> Option<Priority> {
        let seen = Parser::new(value).parse_dictionary_with_visitor(Parameters::default()).ok()?;
        Some(Priority {
            urgency: seen.urgency.unwrap_or(self.urgency),
            incremental: seen.incremental.unwrap_or(self.incremental),
        })
    }

    /// Returns the priority that a weight of RFC 7540 means in Chromium; `None` for other weights.
    pub(crate) fn of_weight(weight: u16) -> Option<Priority> {
        let urgency = Priority::WEIGHTS.iter().position(|known| *known == weight)?;
        Some(Priority { urgency: urgency as u8, incremental: false })
    }

    /// Returns the default of a media type: a page and its style come before scripts, scripts before images, and
    /// images before downloads.
    pub(crate) fn of_media_type(value: &[u8]) -> Option<Priority> {
        let end = value.iter().position(|byte| *byte == b';' || *byte == b' ').unwrap_or(value.len());
        let (urgency, incremental) = match &value[..end] {
            b"text/html" | b"text/css" => (1, false),
            b"text/javascript" | b"application/javascript" => (2, false),
            media if media.starts_with(b"font/") => (1, false),
            media if media.starts_with(b"image/") => (4, true),
            media if media.starts_with(b"video/") || media.starts_with(b"audio/") => (6, true),
            b"application/zip" | b"application/gzip" | b"application/octet-stream" => (6, true),
            _ => return None,
        };
        Some(Priority { urgency, incremental })
    }
}

/// The parameters of a `Priority` field that have a right value. The last of two equal keys counts.
#[derive(Default)]
struct Parameters {
    urgency: Option<u8>,
    incremental: Option<bool>,
}

/// A parameter that is being parsed.
enum Parameter<'a> {
    Urgency(&'a mut Option<u8>),
    Incremental(&'a mut Option<bool>),
    Other,
}

impl<'de> DictionaryVisitor<'de> for Parameters {
    type Out = Parameters;
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(match key.as_str() {
            "u" => {
                self.urgency = None;
                Parameter::Urgency(&mut self.urgency)
            }
            "i" => {
                self.incremental = None;
                Parameter::Incremental(&mut self.incremental)
            }
            _ => Parameter::Other,
        })
    }

    fn finish(self) -> Result<Parameters, Infallible> {
        Ok(self)
    }
}

impl<'de> EntryVisitor<'de> for Parameter<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Parameter<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        value: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        match self {
            Parameter::Urgency(urgency) => {
                let number = value.as_integer().and_then(|number| u8::try_from(i64::from(number)).ok());
                *urgency = number.filter(|number| *number <= 7);
            }
            Parameter::Incremental(incremental) => *incremental = value.as_boolean(),
            Parameter::Other => {}
        }
        Ok(Ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_changes_only_what_it_states() {
        let base = Priority { urgency: 5, incremental: true };
        for (value, expected) in [
            ("u=1", Some((1, true))),
            ("i=?0", Some((5, false))),
            ("u=0, i", Some((0, true))),
            ("", Some((5, true))),
            ("u=8", Some((5, true))),
            ("u=-1, i=1", Some((5, true))),
            ("u=3;x, i;y, z=\"a\"", Some((3, true))),
            ("u=(1 2)", Some((5, true))),
            ("u=", None),
            ("U=1", None),
            ("\u{e4}", None),
        ] {
            let applied = base.apply(value.as_bytes());
            assert_eq!(applied.map(|found| (found.urgency, found.incremental)), expected, "{value}");
        }
    }

    #[test]
    fn only_the_weights_of_chromium_mean_a_priority() {
        let urgencies = [256, 147, 1, 16, 255].map(|weight| Priority::of_weight(weight).map(|p| p.urgency));
        assert_eq!(urgencies, [Some(0), Some(3), Some(7), None, None]);
    }
}
