//! The pages.

use std::sync::Arc;

use tenfold_http::{Request, clock};

use super::context::{PendingQuery, ReplyAction, RequestAction, Web};
use super::origin::safe_next;
use super::page::{MemberPage, PLACE};
use super::view::View;
use super::visitor::{Cookie, RequestClient};
use crate::ask::{Query, Reply};

impl Web {
    /// Shows the page at `place`.
    pub(super) fn show(
        self: &Arc<Web>,
        place: &str,
        request: &Request<'_>,
        visitor: RequestClient,
    ) -> RequestAction {
        let query = request.target.query.unwrap_or_default().as_bytes();
        let parameter = |name: &str| {
            let mut pairs = form_urlencoded::parse(query);
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        let next = safe_next(&parameter("next"));
        let notice = notice(&parameter("said"));
        match place {
            "style.css" => RequestAction::Page(MemberPage::css(self.templates.style.clone())),
            "" if !request.target.path.ends_with('/') => {
                RequestAction::Page(MemberPage::see(&format!("/{PLACE}/")))
            }
            "login" | "register" | "logout" => {
                RequestAction::Page(self.form(place, &visitor, View { next, notice, ..View::default() }))
            }
            "" | "password" | "delete" => self.account(place, request, visitor, notice),
            _ => RequestAction::Page(MemberPage::not_found()),
        }
    }

    /// A page with a form, and the cookie for its token.
    fn form(&self, name: &str, visitor: &RequestClient, view: View) -> MemberPage {
        let Ok((own, cookie)) = View::with_token(visitor) else { return self.trouble(&Reply::Unavailable) };
        let page = self.render(200, name, &View { token: own.token, ..view });
        match cookie {
            Some(value) => page.cookie(Cookie::Form, visitor.site, &value, self.settings.absolute.as_secs()),
            None => page,
        }
    }

    fn account(
        self: &Arc<Web>,
        place: &str,
        request: &Request<'_>,
        visitor: RequestClient,
        notice: Option<&'static str>,
    ) -> RequestAction {
        let refusal = MemberPage::to_login(request);
        let Some(session) = visitor.session_digests() else { return RequestAction::Page(refusal) };
        let (web, template) = (self.clone(), if place.is_empty() { "account" } else { place }.to_owned());
        RequestAction::Query(PendingQuery {
            request: Query::Overview { session },
            sessions: visitor.sessions.clone(),
            then: Box::new(move |reply| {
                ReplyAction::Page(match reply {
                    Reply::Overview { name, since, others } => {
                        let since = day(since);
                        let view = View { name, since, others, notice, ..View::default() };
                        web.form(&template, &visitor, view)
                    }
                    Reply::Nobody => refusal,
                    other => web.trouble(&other),
                })
            }),
        })
    }
}

/// The notice for a value of `said=`, which every visitor can write.
fn notice(said: &str) -> Option<&'static str> {
    match said {
        "registered" => Some("Your account has been created. Please log in."),
        "out" => Some("You are logged out."),
        "deleted" => Some("Your account has been deleted."),
        "password" => Some("Your password has been changed. All other sessions have ended."),
        "others" => Some("All other sessions have ended."),
        _ => None,
    }
}

/// The date in HTTP's format: `21 Nov 2026`.
fn day(seconds: i64) -> String {
    let date = clock::format_date(seconds.unsigned_abs());
    String::from_utf8_lossy(&date[5..16]).into_owned()
}
