//! A response of the pages: status, fields and body.

use tenfold_http::{FieldName, FieldValue, Method, PLAIN_TEXT, Request, ResponseWriter, reason};

use super::visitor::{Cookie, CookieSite};

/// The folder of the pages, beneath the root of the site.
pub const PLACE: &str = "account";

const HTML: FieldValue<'static> = FieldValue::constant("text/html; charset=utf-8");
const CSS: FieldValue<'static> = FieldValue::constant("text/css; charset=utf-8");
const PRIVATE: FieldValue<'static> = FieldValue::constant("private, no-store");
const NOSNIFF: FieldValue<'static> = FieldValue::constant("nosniff");
/// Forbids scripts, framing, and forms to other sites.
const POLICY: FieldValue<'static> = FieldValue::constant(
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);

const SET_COOKIE: FieldName<'static> = FieldName::constant("Set-Cookie");
const SECURITY_POLICY: FieldName<'static> = FieldName::constant("Content-Security-Policy");
const REFERRER_POLICY: FieldName<'static> = FieldName::constant("Referrer-Policy");
const AUTHENTICATE: FieldName<'static> = FieldName::constant("WWW-Authenticate");

/// A whole response, except the date and the connection fields.
#[derive(Clone, Debug)]
pub struct MemberPage {
    /// Its status code.
    pub status: u16,
    kind: FieldValue<'static>,
    fields: Vec<(FieldName<'static>, String)>,
    body: String,
}

impl MemberPage {
    pub(super) fn html(status: u16, body: String) -> MemberPage {
        MemberPage { status, kind: HTML, fields: Vec::new(), body }
    }

    pub(super) fn css(body: String) -> MemberPage {
        MemberPage { status: 200, kind: CSS, fields: Vec::new(), body }
    }

    /// A page of plain text.
    pub(super) fn text(status: u16, body: String) -> MemberPage {
        MemberPage { status, kind: PLAIN_TEXT, fields: Vec::new(), body }
    }

    fn plain(status: u16) -> MemberPage {
        MemberPage::text(status, format!("{status} {}\n", reason(status)))
    }

    /// 303 to another page of this site.
    pub(super) fn see(location: &str) -> MemberPage {
        MemberPage::plain(303).with(FieldName::LOCATION, location.to_owned())
    }

    /// 303 to the login, which returns here.
    pub(super) fn to_login(request: &Request<'_>) -> MemberPage {
        let mut next = request.target.path.to_owned();
        if let Some(query) = request.target.query {
            next = format!("{next}?{query}");
        }
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        MemberPage::see(&format!("/{PLACE}/login?next={next}"))
    }

    /// 401 for requests by parts of a page and by programs. No authentication scheme is about cookies, so the value
    /// names the login page.
    pub(super) fn unauthorized() -> MemberPage {
        let how = format!("Cookie realm=\"members\", form-action=\"/{PLACE}/login\"");
        MemberPage::plain(401).with(AUTHENTICATE, how)
    }

    pub(super) fn not_found() -> MemberPage {
        MemberPage::plain(404)
    }

    pub(super) fn method_not_allowed(place: &str, is_form: bool) -> MemberPage {
        let allowed = match (place, is_form) {
            ("login" | "register" | "logout", _) => "GET, HEAD, POST",
            (_, true) => "POST",
            (_, false) => "GET, HEAD",
        };
        MemberPage::plain(405).with(FieldName::ALLOW, allowed.into())
    }

    pub(super) fn unsupported() -> MemberPage {
        MemberPage::plain(415)
    }

    /// Adds a field. A value with a line end is omitted when the page is sent.
    pub(super) fn with(mut self, name: FieldName<'static>, value: String) -> MemberPage {
        self.fields.push((name, value));
        self
    }

    /// Adds a cookie that lives `seconds`; 0 removes it.
    pub(super) fn cookie(self, cookie: Cookie, site: CookieSite, value: &str, seconds: u64) -> MemberPage {
        let name = site.name(cookie);
        let secure = if site.secure { "; Secure" } else { "" };
        let line = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        self.with(SET_COOKIE, line)
    }

    /// Writes the page as the response to `request`. Returns the length of the sent body.
    pub fn stage(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> u64 {
        let mut head = response.head(self.status);
        head.content_type(self.kind);
        head.content_length(self.body.len() as u64);
        head.field(FieldName::CACHE_CONTROL, PRIVATE);
        for (name, value) in &self.fields {
            if let Some(value) = FieldValue::new(value.as_bytes()) {
                head.field(*name, value);
            }
        }
        head.field(FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        head.field(SECURITY_POLICY, POLICY);
        head.field(REFERRER_POLICY, FieldValue::constant("same-origin"));
        head.end();
        if request.method == Method::Head {
            return 0;
        }
        response.body(self.body.as_bytes());
        self.body.len() as u64
    }
}
