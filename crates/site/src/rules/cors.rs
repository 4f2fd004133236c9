//! Access by pages of other origins: CORS of the Fetch standard (§3.2).

use tenfold_http::{FieldName, FieldValue, HeaderLines, Request};

/// The origins whose pages may read the responses at a path, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// None: every origin.
    origins: Option<Vec<String>>,
    methods: String,
    headers: Option<String>,
    expose: Option<String>,
    max_age: Option<u64>,
    credentials: bool,
}

const ALLOW_ORIGIN: FieldName<'static> = FieldName::constant("Access-Control-Allow-Origin");
const ALLOW_CREDENTIALS: FieldName<'static> = FieldName::constant("Access-Control-Allow-Credentials");
const ALLOW_METHODS: FieldName<'static> = FieldName::constant("Access-Control-Allow-Methods");
const ALLOW_HEADERS: FieldName<'static> = FieldName::constant("Access-Control-Allow-Headers");
const EXPOSE_HEADERS: FieldName<'static> = FieldName::constant("Access-Control-Expose-Headers");
const MAX_AGE: FieldName<'static> = FieldName::constant("Access-Control-Max-Age");

impl Cors {
    /// Allows pages of these origins to read; a single `*` means all origins.
    pub fn new(origins: Vec<String>) -> Result<Cors, String> {
        if origins.is_empty() {
            return Err("at least one origin is needed, such as https://app.example".into());
        }
        let all = origins.iter().any(|origin| origin == "*");
        if all && origins.len() > 1 {
            return Err("* means every origin; remove the other origins".into());
        }
        origins.iter().filter(|_| !all).try_for_each(|origin| origin_or_why(origin))?;
        Ok(Cors {
            origins: (!all).then_some(origins),
            methods: "GET, HEAD".into(),
            headers: None,
            expose: None,
            max_age: None,
            credentials: false,
        })
    }

    /// Sets the methods in responses to preflights. The default is `GET` and `HEAD`.
    pub fn methods(self, methods: &[String]) -> Result<Cors, String> {
        Ok(Cors { methods: tokens(methods, "method", "GET")?, ..self })
    }

    /// Allows these request fields in addition to those that are always allowed.
    pub fn headers(self, headers: &[String]) -> Result<Cors, String> {
        Ok(Cors { headers: Some(tokens(headers, "field", "X-Requested-With")?), ..self })
    }

    /// Allows pages to read these response fields in addition to those that are always readable.
    pub fn expose(self, headers: &[String]) -> Result<Cors, String> {
        Ok(Cors { expose: Some(tokens(headers, "field", "ETag")?), ..self })
    }

    /// Lets browsers cache a preflight for this many seconds.
    pub fn max_age(self, seconds: u64) -> Cors {
        Cors { max_age: Some(seconds), ..self }
    }

    /// Lets pages send cookies and passwords. Fails if every origin is allowed.
    pub fn with_credentials(self) -> Result<Cors, String> {
        match self.origins {
            Some(_) => Ok(Cors { credentials: true, ..self }),
            None => {
                Err("credentials cannot be allowed for every origin, because every site could then read \
                         private pages; list the allowed origins"
                    .into())
            }
        }
    }

    /// Adds the fields of a response.
    pub(crate) fn describe(&self, request: &Request<'_>, lines: &mut HeaderLines) {
        if self.allow(request, lines)
            && let Some(expose) = &self.expose
        {
            lines.field(EXPOSE_HEADERS, value(expose));
        }
    }

    /// Adds the fields of a response to a preflight.
    pub(crate) fn describe_preflight(&self, request: &Request<'_>, lines: &mut HeaderLines) {
        if !self.allow(request, lines) {
            return;
        }
        lines.field(ALLOW_METHODS, value(&self.methods));
        if let Some(headers) = &self.headers {
            lines.field(ALLOW_HEADERS, value(headers));
        }
        if let Some(seconds) = self.max_age {
            lines.number(MAX_AGE, seconds);
        }
    }

    /// Adds the allowed origin. Returns whether the request's origin is allowed.
    fn allow(&self, request: &Request<'_>, lines: &mut HeaderLines) -> bool {
        let Some(origins) = &self.origins else {
            lines.field(ALLOW_ORIGIN, FieldValue::constant("*"));
            return true;
        };
        // Without `Vary`, a cache could send the response for one origin to another.
        lines.field(FieldName::VARY, FieldValue::constant("Origin"));
        let origin =
            request.only("origin").filter(|origin| origins.iter().any(|known| known.as_bytes() == *origin));
        let Some(origin) = origin.and_then(FieldValue::new) else { return false };
        lines.field(ALLOW_ORIGIN, origin);
        if self.credentials {
            lines.field(ALLOW_CREDENTIALS, FieldValue::constant("true"));
        }
        true
    }
}

/// Whether an OPTIONS is a preflight.
pub(crate) fn is_preflight(request: &Request<'_>) -> bool {
    request.only("origin").is_some() && request.only("access-control-request-method").is_some()
}

fn value(text: &str) -> FieldValue<'_> {
    FieldValue::new(text.as_bytes()).expect("tokens with commas between them are a field value")
}

fn tokens(all: &[String], what: &str, example: &str) -> Result<String, String> {
    match all.iter().find(|text| FieldName::new(text).is_none()) {
        Some(wrong) => Err(format!("{wrong:?} is not the name of a {what}, such as {example}")),
        None if all.is_empty() => Err(format!("at least one {what} is needed, such as {example}")),
        None => Ok(all.join(", ")),
    }
}

/// Checks an origin: a scheme, a host and an optional port, in lower case (RFC 6454 §6.2).
fn origin_or_why(origin: &str) -> Result<(), String> {
    if origin == "null" {
        return Err("null is the origin of every sandboxed page; to allow all of them, write *".into());
    }
    let Some((scheme, host)) = origin.split_once("://") else {
        return Err(format!("{origin:?} is not an origin; add the scheme: https://{origin}"));
    };
    let name = scheme
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte));
    if !name || scheme.is_empty() || host.is_empty() || origin.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(format!(
            "{origin:?} is not an origin; browsers send it in lower case: https://app.example"
        ));
    }
    if host.contains(['/', '?', '#', '@']) || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{origin:?} is not an origin: it needs a scheme, a host, an optional port, and no path"
        ));
    }
    if (scheme, host.rsplit(':').next()) == ("https", Some("443"))
        || (scheme, host.rsplit(':').next()) == ("http", Some("80"))
    {
        return Err(format!("browsers omit the default port of {origin:?}; omit it here, too"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_http::h1::parse_request;

    fn lines(cors: &Cors, fields: &str, preflight: bool) -> String {
        let mut lines = HeaderLines::default();
        parse_request(&mut format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes(), |request| {
            let request = request.expect("the request is good");
            if preflight {
                cors.describe_preflight(&request, &mut lines)
            } else {
                cors.describe(&request, &mut lines)
            }
        });
        let fields = lines.iter();
        fields
            .map(|(name, value)| format!("{}: {}|", name.as_str(), value.as_bytes().escape_ascii()))
            .collect()
    }

    fn cors(origins: &[&str]) -> Cors {
        Cors::new(origins.iter().map(|&origin| origin.to_owned()).collect()).expect("legal")
    }

    #[test]
    fn an_origin_that_is_named_may_read_and_another_may_not() {
        let cors = cors(&["https://a.example", "http://b.example:8080"]);
        assert_eq!(
            lines(&cors, "Origin: https://a.example\r\n", false),
            "Vary: Origin|Access-Control-Allow-Origin: https://a.example|"
        );
        assert_eq!(
            lines(&cors, "Origin: http://b.example:8080\r\n", false),
            "Vary: Origin|Access-Control-Allow-Origin: http://b.example:8080|"
        );
        for other in
            ["", "Origin: https://a.example.evil\r\n", "Origin: http://a.example\r\n", "Origin: null\r\n"]
        {
            assert_eq!(lines(&cors, other, false), "Vary: Origin|", "{other}");
        }
    }

    #[test]
    fn any_origin_may_read_public_responses() {
        assert_eq!(lines(&cors(&["*"]), "", false), "Access-Control-Allow-Origin: *|");
    }

    #[test]
    fn preflights_get_the_allowed_methods_and_fields() {
        let cors = cors(&["https://a.example"])
            .methods(&["GET".into(), "POST".into()])
            .and_then(|cors| cors.headers(&["X-A".into()]))
            .and_then(|cors| cors.expose(&["ETag".into()]))
            .and_then(Cors::with_credentials)
            .expect("legal")
            .max_age(600);
        assert_eq!(
            lines(&cors, "Origin: https://a.example\r\n", true),
            "Vary: Origin|Access-Control-Allow-Origin: https://a.example|Access-Control-Allow-Credentials: true|\
             Access-Control-Allow-Methods: GET, POST|Access-Control-Allow-Headers: X-A|Access-Control-Max-Age: 600|"
        );
        assert_eq!(lines(&cors, "Origin: https://b.example\r\n", true), "Vary: Origin|");
        assert!(
            lines(&cors, "Origin: https://a.example\r\n", false)
                .ends_with("Access-Control-Expose-Headers: ETag|")
        );
    }

    #[test]
    fn invalid_origins_are_refused() {
        for wrong in [
            "a.example",
            "https://",
            "https://a.example/",
            "HTTPS://a.example",
            "https://A.example",
            "null",
            "https://a b",
            "https://a.example:443",
            "https://u@a.example",
        ] {
            assert!(Cors::new(vec![wrong.into()]).is_err(), "{wrong}");
        }
        assert!(Cors::new(vec!["*".into(), "https://a.example".into()]).is_err());
        assert!(Cors::new(Vec::new()).is_err());
        assert!(cors(&["*"]).with_credentials().is_err());
        assert!(cors(&["*"]).methods(&["G T".into()]).is_err());
        assert!(cors(&["*"]).headers(&[]).is_err());
    }
}
