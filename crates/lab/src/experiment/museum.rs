//! The museum: mistakes of published servers as minimal C programs, with the corrected line of each. A trial compiles
//! its program. No server contains them.

/// A program of the museum.
#[derive(Clone, Copy, Debug)]
pub struct Exhibit {
    /// The name of the program and of its source file.
    pub name: &'static str,
    /// Its source. The macro `CORRECTED` selects the corrected line.
    pub source: &'static str,
}

/// The header that exhibits share.
pub const HEADER: &str = include_str!("../../museum/museum.h");

macro_rules! exhibits {
    ($($name:literal)+) => {
        /// The programs of the museum.
        pub const EXHIBITS: &[Exhibit] = &[
            $(Exhibit { name: $name, source: include_str!(concat!("../../museum/", $name, ".c")) }),+
        ];
    };
}

/// A proxy of our own that delays bytes. It has no corrected line.
pub const DELAY: Exhibit = Exhibit { name: "delay", source: include_str!("../../museum/delay.c") };

exhibits! {
    "accept-one" "thread-race" "send-once" "not-found" "sleeping-loop" "file-in-a-string" "write-per-line" "queue"
}

/// The exhibit of this name.
pub fn exhibit(name: &str) -> Option<&'static Exhibit> {
    EXHIBITS.iter().find(|exhibit| exhibit.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exhibit_has_its_mistake_and_its_correction() {
        for exhibit in EXHIBITS {
            assert_eq!(exhibit.source.matches("#include \"museum.h\"").count(), 1, "{}", exhibit.name);
            assert!(exhibit.source.contains("#ifdef CORRECTED"), "{}", exhibit.name);
        }
        assert!(exhibit("accept-one").is_some() && exhibit("accept-two").is_none());
    }
}
