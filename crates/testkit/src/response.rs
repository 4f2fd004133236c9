//! A response as received.

/// A whole response. The head is kept as bytes, so that every byte can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireResponse {
    /// The three digits.
    pub status: u16,
    /// Status line and fields, each with its CR LF, without the empty line.
    pub head: String,
    /// The bytes after the head.
    pub body: Vec<u8>,
}

impl WireResponse {
    /// Parses a head that ends with its empty line.
    #[track_caller]
    pub fn of_head(bytes: &[u8]) -> WireResponse {
        let text =
            std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("a head that is not text: {bytes:?}"));
        let head = text.strip_suffix("\r\n").expect("a head ends with an empty line").to_owned();
        let first = head.lines().next().unwrap_or_default();
        let status =
            first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..4)?.strip_suffix(' ')?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("a status line that is none: {first:?}"));
        for line in head.split_inclusive("\r\n").skip(1) {
            let (name, value) =
                line.split_once(": ").unwrap_or_else(|| panic!("a field that is none: {line:?}"));
            let value = value.strip_suffix("\r\n").unwrap_or_else(|| panic!("a line without end: {line:?}"));
            let token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            assert!(!name.is_empty() && name.bytes().all(token), "a field name that is none: {line:?}");
            assert!(value.bytes().all(|byte| byte >= b' ' && byte != 127), "a control character: {line:?}");
        }
        WireResponse { status, head, body: Vec::new() }
    }

    /// The value of a field that occurs at most once.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next();
        assert!(values.next().is_none(), "{name} stands twice in {}", self.head);
        first
    }

    /// The value of a required field.
    #[track_caller]
    pub fn need(&self, name: &str) -> &str {
        self.field(name).unwrap_or_else(|| panic!("{name} is missing in {}", self.head))
    }

    /// The announced length of the body, 0 without one.
    #[track_caller]
    pub fn promised(&self) -> usize {
        self.field("content-length").map_or(0, |value| value.parse().expect("Content-Length is a number"))
    }

    /// Whether a body follows the head, unless the request was HEAD.
    pub fn has_body(&self) -> bool {
        !matches!(self.status, 100..=199 | 204 | 304)
    }

    /// Whether the head announces the end of the connection.
    pub fn closes(&self) -> bool {
        self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Head and body without the date, which must be the same on every engine.
    pub fn dateless(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.head).into_bytes();
        bytes.extend_from_slice(&self.body);
        blot_dates(&mut bytes);
        bytes
    }
}

/// Overwrites the values of all `Date` fields in responses.
pub fn blot_dates(bytes: &mut [u8]) {
    const NAME: &[u8] = b"\r\nDate: ";
    const DATE: usize = 29;
    let mut at = 0;
    while at + NAME.len() + DATE <= bytes.len() {
        if bytes[at..].starts_with(NAME) {
            bytes[at + NAME.len()..][..DATE].fill(b'#');
            at += NAME.len() + DATE;
        } else {
            at += 1;
        }
    }
}
