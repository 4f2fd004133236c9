//! Formats, and how to find the format of a file.

/// The most bytes of an input.
pub const MOST_BYTES: usize = 1 << 20;

/// A kind of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `nginx.conf`, and files that it includes.
    Nginx,
    /// A `Caddyfile`.
    Caddy,
    /// `httpd.conf`, and `.htaccess`.
    Apache,
    /// `lighttpd.conf`.
    Lighttpd,
    /// A command line of miniserve, or a unit of systemd with it.
    Miniserve,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 5] =
        [Format::Nginx, Format::Caddy, Format::Apache, Format::Lighttpd, Format::Miniserve];

    /// Returns the word for the format on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Nginx => "nginx",
            Format::Caddy => "caddy",
            Format::Apache => "apache",
            Format::Lighttpd => "lighttpd",
            Format::Miniserve => "miniserve",
        }
    }

    /// Returns the format of a file with this name and this text, if they show it.
    #[must_use]
    pub fn detect(name: &str, text: &str) -> Option<Format> {
        let path = name.to_ascii_lowercase();
        let file = path.rsplit('/').next().unwrap_or_default();
        let named = [
            ("nginx", Format::Nginx),
            ("lighttpd", Format::Lighttpd),
            ("caddyfile", Format::Caddy),
            ("htaccess", Format::Apache),
            ("httpd", Format::Apache),
            ("apache", Format::Apache),
            ("miniserve", Format::Miniserve),
        ];
        let by_name =
            |name: &str| named.iter().find(|(word, _)| name.contains(word)).map(|(_, format)| *format);
        by_name(file).or_else(|| Format::by_content(text)).or_else(|| by_name(&path))
    }

    fn by_content(text: &str) -> Option<Format> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = lines().next()?;
        let words =
            ["Options", "RewriteEngine", "ErrorDocument", "DirectoryIndex", "Redirect", "Header", "Listen"];
        let is_apache = |line: &str| {
            line.starts_with("</") || words.iter().any(|word| line.split_whitespace().next() == Some(word))
        };
        match () {
            () if lines().any(is_command) => Some(Format::Miniserve),
            () if lines()
                .any(|line| line.starts_with("server.document-root") || line.starts_with("$HTTP[")) =>
            {
                Some(Format::Lighttpd)
            }
            () if lines().any(|line| line.ends_with(';') && !line.contains(" = ")) => Some(Format::Nginx),
            () if lines().any(is_apache) => Some(Format::Apache),
            () if first.ends_with('{') || lines().any(|line| line.starts_with("file_server")) => {
                Some(Format::Caddy)
            }
            () => None,
        }
    }
}

/// A configuration to translate.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The format of the text.
    pub format: Format,
    /// The name of the file, for comments.
    pub name: &'a str,
    /// The content of the file.
    pub text: &'a str,
    /// The folder of the file, which is the root of a `.htaccess`. For miniserve, the folder that relative paths begin at;
    /// empty if the output has them unchanged.
    pub folder: &'a str,
}

/// The name of the program miniserve.
pub(crate) const PROGRAM: &str = "miniserve";

/// Whether a line runs miniserve.
pub(crate) fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches("ExecStart=").trim_start_matches(['-', '@', ':', '+', '!']);
    let mut words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let is_program = |word: &str| word.rsplit('/').next() == Some(PROGRAM);
    words
        .by_ref()
        .find(|word| !matches!(*word, "exec" | "sudo" | "$") && !word.contains('='))
        .is_some_and(is_program)
}
