//! The static table (RFC 7541 appendix A).

/// The number of static entries; the dynamic table follows.
pub(crate) const LENGTH: usize = TABLE.len();

const TABLE: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The best static entry for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The index of an entry with this name and value.
    Field(u8),
    /// The index of the first entry with this name.
    Name(u8),
    Nothing,
}

/// The name and value of an entry; indexes begin at 1.
pub(crate) fn get(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = TABLE.get(index.checked_sub(1)?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// Finds the entry for a field whose name is in lower case.
pub(crate) fn find(name: &[u8], value: &[u8]) -> Match {
    let mut found = Match::Nothing;
    for (index, entry) in (1..).zip(&TABLE) {
        if entry.0.as_bytes() == name {
            if entry.1.as_bytes() == value {
                return Match::Field(index);
            }
            if found == Match::Nothing {
                found = Match::Name(index);
            }
        } else if found != Match::Nothing {
            // Entries of one name are consecutive.
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_names_are_found_at_their_indexes() {
        assert_eq!(find(b":method", b"POST"), Match::Field(3));
        assert_eq!(find(b":status", b"418"), Match::Name(8));
        assert_eq!(find(b"accept-encoding", b"gzip, deflate"), Match::Field(16));
        assert_eq!(find(b"www-authenticate", b"Basic"), Match::Name(61));
        assert_eq!(find(b"age", b""), Match::Field(21));
        assert_eq!(find(b"x", b""), Match::Nothing);
        assert_eq!(get(0), None);
        assert_eq!(get(LENGTH + 1), None);
        for index in 1..=LENGTH {
            let (name, value) = get(index).expect("the index is in the table");
            assert_eq!(find(name, value), Match::Field(index as u8));
        }
    }
}
