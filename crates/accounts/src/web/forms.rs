//! Handlers of the forms.

use std::sync::Arc;

use tenfold_http::Request;

use super::context::{PendingQuery, ReplyAction, RequestAction, Web};
use super::origin::{self, safe_next};
use super::page::{MemberPage, PLACE};
use super::view::View;
use super::visitor::{Cookie, RequestClient};
use crate::ask::{Query, Refused, Reply};
use crate::{names, passwords};

/// The lifetime of the marker of a known browser, in seconds.
const KNOWN_FOR: u64 = 365 * 24 * 60 * 60;
const DIFFER: &str = "The two passwords differ.";

/// Whether `place` has a form.
pub(super) fn is_one(place: &str) -> bool {
    matches!(place, "login" | "register" | "logout" | "password" | "sessions" | "delete")
}

/// The fields of a form.
struct FormFields(Vec<(String, String)>);

impl FormFields {
    fn read(body: &[u8]) -> FormFields {
        let mut fields: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().take(16).collect();
        // A value of one byte too many is rejected like a longer value, and needs less room in the channel to the accounts.
        // `next` does not leave this process.
        for (_, value) in fields.iter_mut().filter(|(name, _)| name != "next") {
            value.truncate(value.ceil_char_boundary(passwords::LONGEST + 1));
        }
        FormFields(fields)
    }

    /// The first field of this name; empty if it is absent.
    fn of(&self, name: &str) -> String {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

impl Web {
    /// Handles a form, unless another site sent it.
    pub(super) fn take(
        self: &Arc<Web>,
        form: &str,
        request: &Request<'_>,
        body: &[u8],
        visitor: RequestClient,
    ) -> RequestAction {
        let is_form = request.only("content-type").is_some_and(|kind| {
            let kind = kind.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        if !is_form {
            return RequestAction::Page(MemberPage::unsupported());
        }
        let fields = FormFields::read(body);
        let good = visitor.has_token(&fields.of("token"));
        if !origin::is_own(request) || !good {
            return RequestAction::Page(self.foreign(form, &fields, visitor));
        }
        match (form, visitor.session_digests()) {
            ("login", former) => self.log_in(&fields, former, visitor),
            ("register", _) => self.register(&fields, visitor),
            (_, None) => RequestAction::Page(MemberPage::see(&format!("/{PLACE}/login"))),
            ("logout", Some(session)) => self.log_out(session, visitor),
            ("password", Some(session)) => self.change_password(&fields, session, visitor),
            ("sessions", Some(session)) => {
                self.ask(Query::EndOthers { session }, visitor.sessions, |web, reply| match reply {
                    Reply::Done => MemberPage::see(&format!("/{PLACE}/?said=others")),
                    other => web.not_done(&other),
                })
            }
            ("delete", Some(session)) => self.delete(&fields, session, visitor),
            _ => RequestAction::Page(MemberPage::not_found()),
        }
    }

    fn ask(
        self: &Arc<Web>,
        request: Query,
        sessions: Vec<String>,
        then: impl FnOnce(&Arc<Web>, Reply) -> MemberPage + Send + 'static,
    ) -> RequestAction {
        let web = self.clone();
        RequestAction::Query(PendingQuery {
            request,
            sessions,
            then: Box::new(move |reply| ReplyAction::Page(then(&web, reply))),
        })
    }

    fn log_in(
        self: &Arc<Web>,
        fields: &FormFields,
        former: Option<String>,
        visitor: RequestClient,
    ) -> RequestAction {
        let (name, next) = (fields.of("name"), safe_next(&fields.of("next")));
        let mut view = View::of(&visitor);
        (view.values.name, view.next) = (shortened(&name), next);
        let request = Query::Login { name, password: fields.of("password"), from: visitor.from(), former };
        self.ask(request, Vec::new(), move |web, reply| match reply {
            Reply::Welcome { token, known } => {
                web.welcome(&token, &known, &visitor, &view.next.unwrap_or_else(|| web.home()))
            }
            reply => web.refused("login", view, &reply),
        })
    }

    /// Begins a session and sets its cookie.
    fn welcome(&self, token: &str, known: &str, visitor: &RequestClient, next: &str) -> MemberPage {
        let seconds = self.settings.absolute.as_secs();
        MemberPage::see(next).cookie(Cookie::Session, visitor.site, token, seconds).cookie(
            Cookie::Known,
            visitor.site,
            known,
            KNOWN_FOR,
        )
    }

    fn register(self: &Arc<Web>, fields: &FormFields, visitor: RequestClient) -> RequestAction {
        let (name, code) = (fields.of("name"), fields.of("invitation"));
        let (password, next) = (fields.of("password"), safe_next(&fields.of("next")));
        let invitation = Some(code.clone()).filter(|code| !code.is_empty());
        let mut view = View::of(&visitor);
        (view.values.name, view.values.invitation, view.next) = (shortened(&name), shortened(&code), next);
        if password != fields.of("again") {
            view.errors.again = Some(DIFFER.into());
            return RequestAction::Page(self.render(422, "register", &view));
        }
        let request = Query::Register { name, password, invitation, from: visitor.from() };
        self.ask(request, Vec::new(), move |web, reply| match reply {
            Reply::Done => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("said", "registered");
                query.extend_pairs(view.next.map(|next| ("next", next)));
                MemberPage::see(&format!("/{PLACE}/login?{}", query.finish()))
            }
            reply => web.refused("register", view, &reply),
        })
    }

    fn log_out(self: &Arc<Web>, session: String, visitor: RequestClient) -> RequestAction {
        self.ask(Query::Logout { session }, visitor.sessions.clone(), move |web, reply| match reply {
            Reply::Done => MemberPage::see(&format!("/{PLACE}/login?said=out")).cookie(
                Cookie::Session,
                visitor.site,
                "",
                0,
            ),
            other => web.not_done(&other),
        })
    }

    fn change_password(
        self: &Arc<Web>,
        fields: &FormFields,
        session: String,
        visitor: RequestClient,
    ) -> RequestAction {
        let (old, new) = (fields.of("old"), fields.of("new"));
        let mut view = View::of(&visitor);
        if new != fields.of("again") {
            view.errors.again = Some(DIFFER.into());
            return RequestAction::Page(self.render(422, "password", &view));
        }
        let request = Query::ChangePassword { session, old, new, from: visitor.from() };
        self.ask(request, visitor.sessions.clone(), move |web, reply| match reply {
            Reply::Welcome { token, known } => {
                web.welcome(&token, &known, &visitor, &format!("/{PLACE}/?said=password"))
            }
            reply => web.refused("password", view, &reply),
        })
    }

    fn delete(
        self: &Arc<Web>,
        fields: &FormFields,
        session: String,
        visitor: RequestClient,
    ) -> RequestAction {
        let request = Query::Remove { session, password: fields.of("password"), from: visitor.from() };
        self.ask(request, visitor.sessions.clone(), move |web, reply| match reply {
            Reply::Done => {
                let gone = MemberPage::see(&format!("/{PLACE}/login?said=deleted"));
                gone.cookie(Cookie::Session, visitor.site, "", 0).cookie(Cookie::Known, visitor.site, "", 0)
            }
            reply => web.refused("delete", View::of(&visitor), &reply),
        })
    }

    /// Shows the form again, with the error at its field.
    fn refused(&self, form: &str, mut view: View, reply: &Reply) -> MemberPage {
        let Reply::Refused(why) = reply else { return self.not_done(reply) };
        let errors = &mut view.errors;
        match why {
            Refused::Wrong if form == "login" => errors.form = Some("Wrong name or password.".into()),
            Refused::Wrong => errors.password = Some("Wrong password.".into()),
            Refused::NameTaken => {
                errors.name = Some("This name, or a name that looks like it, is taken.".into());
            }
            Refused::InvalidName(why) => errors.name = Some(why.words().into()),
            Refused::InvalidPassword(why) if form == "password" => errors.new = Some(why.words()),
            Refused::InvalidPassword(why) => errors.password = Some(why.words()),
            Refused::Invitation => {
                errors.invitation = Some("This invitation is invalid, used, or expired.".into());
            }
            Refused::Closed => errors.form = Some("Registration is closed.".into()),
        }
        self.render(422, form, &view)
    }

    /// The page for a reply that completes nothing.
    fn not_done(&self, reply: &Reply) -> MemberPage {
        match reply {
            Reply::Nobody => MemberPage::see(&format!("/{PLACE}/login")),
            other => self.trouble(other),
        }
    }

    /// Shows a form again with a new token: another site may have sent the form, or its cookie is missing.
    fn foreign(&self, form: &str, fields: &FormFields, visitor: RequestClient) -> MemberPage {
        const WHY: &str = "This form came from another site, or is too old. Please send it again.";
        if form == "sessions" {
            return self.render(403, "message", &View::message("Not done", WHY.into()));
        }
        let (mut view, cookie) = match View::with_token(&visitor) {
            Ok(new) => new,
            Err(_) => return self.trouble(&Reply::Unavailable),
        };
        (view.values.name, view.next) = (shortened(&fields.of("name")), safe_next(&fields.of("next")));
        view.errors.form = Some(WHY.into());
        let page = self.render(403, form, &view);
        match cookie {
            Some(value) => page.cookie(Cookie::Form, visitor.site, &value, self.settings.absolute.as_secs()),
            None => page,
        }
    }
}

/// Typed text, cut to the length that a form shows again.
fn shortened(text: &str) -> String {
    text.chars().take(4 * names::LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_where_they_are_too_long_anyway() {
        let long = "%01".repeat(5000);
        let fields = FormFields::read(format!("password={long}&next=/{long}&name=%C3%A9").as_bytes());
        assert_eq!(fields.of("password").len(), passwords::LONGEST + 1);
        assert_eq!(fields.of("next").len(), 5001, "it is checked here, and goes no further");
        assert_eq!(fields.of("name"), "\u{e9}");
        let wide = FormFields::read(format!("password={}", "%E2%82%AC".repeat(1000)).as_bytes());
        let password = wide.of("password");
        assert!(
            password.len() > passwords::LONGEST && password.chars().all(|character| character == '\u{20ac}')
        );
    }
}
