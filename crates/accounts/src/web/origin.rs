//! Whether a page of this site sent a form, and whether `next=` leads to this site.

use tenfold_http::Request;

/// The greatest length of `next=` in characters.
const LONGEST_NEXT: usize = 2048;

/// Checks the origin that browsers report: `Sec-Fetch-Site`, which no page can set, or `Origin`. A client without both
/// is not a browser; the token of the form is checked anyway.
pub(super) fn is_own(request: &Request<'_>) -> bool {
    let mut sites = request.values("sec-fetch-site").peekable();
    if sites.peek().is_some() {
        return sites.all(|site| site == b"same-origin" || site == b"none");
    }
    let own = request.host().map(without_port);
    request.values("origin").all(|origin| {
        let origin = std::str::from_utf8(origin).unwrap_or_default();
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        matches!((authority.map(without_port), &own), (Some(theirs), Some(own)) if theirs == *own)
    })
}

/// An authority in lower case, without the default port.
fn without_port(authority: &str) -> String {
    let lower = authority.to_ascii_lowercase();
    let usual = lower.strip_suffix(":80").or_else(|| lower.strip_suffix(":443"));
    usual.unwrap_or(&lower).to_owned()
}

/// The path after the login, if it is on this site. For browsers, `//` and `/\` begin another host, and tabs and line
/// ends do not count.
pub(super) fn safe_next(text: &str) -> Option<String> {
    let own = text.starts_with('/') && !text.starts_with("//");
    let plain = text.len() <= LONGEST_NEXT && text.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    (own && plain).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_http::h1::parse_request;

    fn own(fields: &str) -> bool {
        let mut bytes = format!("POST / HTTP/1.1\r\nHost: a.example:8080\r\n{fields}\r\n").into_bytes();
        parse_request(&mut bytes, |request| is_own(&request.expect("the request is good")))
    }

    #[test]
    fn h67_a_form_from_another_site_is_not_taken() {
        for good in [
            "",
            "Origin: http://a.example:8080\r\n",
            "Sec-Fetch-Site: same-origin\r\n",
            "Sec-Fetch-Site: same-origin\r\nOrigin: https://behind.example\r\n",
        ] {
            assert!(own(good), "{good}");
        }
        for evil in [
            "Origin: null\r\n",
            "Origin: http://evil.example\r\n",
            "Origin: http://a.example\r\n",
            "Origin: http://a.example:8080.evil.example\r\n",
            "Origin: http://evil@a.example:8080\r\n",
            "Origin: http://a.example:8080\r\nOrigin: http://evil.example\r\n",
            "Origin: \r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\nOrigin: http://a.example:8080\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
        ] {
            assert!(!own(evil), "{evil}");
        }
    }

    #[test]
    fn h57_next_stays_on_this_site() {
        for good in ["/", "/members/", "/members/a.html?x=1&y=//b", "/a%2f%2fb", "/a//b"] {
            assert_eq!(safe_next(good).as_deref(), Some(good));
        }
        for evil in [
            "",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "http://evil.example/",
            "https:evil.example",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/\r\nSet-Cookie: a=b",
            " //evil.example",
            "members/",
            "/a b",
            "/\u{2f}/evil",
        ] {
            assert_eq!(safe_next(evil), None, "{evil:?}");
        }
    }
}
