//! What is shown: templates, and what stands in them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use tenfold_http::{Head, clock};

use super::forms::safe_next;
use super::visitor::{Cookie, Visitor};
use super::{Ask, Outcome, PLACE, Page, Wanted, Web};
use crate::accounts::Registration;
use crate::ask::{Reply, Request};
use crate::token;

/// The templates, and what is in them where nobody has their own. `base.html` is what the others extend.
const BUILT_IN: &[(&str, &str)] = &[
    ("base.html", include_str!("templates/base.html")),
    ("login.html", include_str!("templates/login.html")),
    ("register.html", include_str!("templates/register.html")),
    ("logout.html", include_str!("templates/logout.html")),
    ("account.html", include_str!("templates/account.html")),
    ("password.html", include_str!("templates/password.html")),
    ("delete.html", include_str!("templates/delete.html")),
    ("message.html", include_str!("templates/message.html")),
];
const STYLE: &str = include_str!("templates/style.css");

#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    style: String,
}

impl Templates {
    /// The built-in ones, but for those that have a file of their name in `folder`.
    pub(super) fn load(folder: Option<&Path>) -> Result<Templates, String> {
        let own = |name: &str, built_in: &str| -> Result<String, String> {
            let Some(path) = folder.map(|folder| folder.join(name)) else { return Ok(built_in.to_owned()) };
            match fs::read_to_string(&path) {
                Ok(text) => Ok(text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(built_in.to_owned()),
                Err(error) => Err(format!("can not read the template {}: {error}", path.display())),
            }
        };
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(format!("there is no folder of templates {}", folder.display()));
        }
        let mut environment = Environment::new();
        for (name, built_in) in BUILT_IN {
            let added = environment.add_template_owned(*name, own(name, built_in)?);
            added.map_err(|error| format!("the template {name} is none: {error}"))?;
        }
        let templates = Templates { environment, style: own("style.css", STYLE)? };
        for (name, _) in BUILT_IN.iter().skip(1) {
            templates.render(name, &View::default())?;
        }
        Ok(templates)
    }

    fn render(&self, name: &str, view: &View) -> Result<String, String> {
        let rendered = self.environment.get_template(name).and_then(|template| template.render(Serde(view)));
        rendered.map_err(|error| format!("the template {name} can not be filled: {error}"))
    }
}

/// What a template sees.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct View {
    /// The folder of these pages, with a slash at both ends.
    place: String,
    /// `open`, `invitation` or `closed`.
    registration: &'static str,
    least_password: usize,
    /// What each form says in its field `token`.
    token: String,
    /// Where to go on after the login.
    pub(super) next: Option<String>,
    /// What has just been done.
    notice: Option<&'static str>,
    /// What was typed.
    pub(super) values: Values,
    /// What is wrong, by field.
    pub(super) errors: Errors,
    /// Of the account.
    name: String,
    since: String,
    others: u64,
    /// The first protected folder.
    home: String,
    /// Of a message.
    heading: Option<&'static str>,
    text: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Values {
    pub(super) name: String,
    pub(super) invitation: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Errors {
    pub(super) form: Option<String>,
    pub(super) name: Option<String>,
    pub(super) password: Option<String>,
    pub(super) new: Option<String>,
    pub(super) again: Option<String>,
    pub(super) invitation: Option<String>,
}

impl View {
    /// For a visitor whose browser has what the token of a form is made of.
    pub(super) fn of(visitor: &Visitor) -> View {
        View { token: visitor.token().unwrap_or_default(), ..View::default() }
    }

    pub(super) fn message(heading: &'static str, text: String) -> View {
        View { heading: Some(heading), text: Some(text), ..View::default() }
    }

    /// For any visitor; with the cookie to set where the browser has none.
    pub(super) fn with_token(visitor: &Visitor) -> Result<(View, Option<String>), String> {
        if visitor.form.is_some() {
            return Ok((View::of(visitor), None));
        }
        let form = token::random()?;
        let mut visitor = visitor.clone();
        visitor.form = Some(form.clone());
        Ok((View::of(&visitor), Some(form)))
    }
}

impl Web {
    /// The page at `place`.
    pub(super) fn show(self: &Arc<Web>, place: &str, head: &Head<'_>, visitor: Visitor) -> Wanted {
        let query = head.target.query.unwrap_or_default().as_bytes();
        let parameter = |name: &str| {
            let mut pairs = form_urlencoded::parse(query);
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        let next = safe_next(&parameter("next"));
        let notice = notice(&parameter("said"));
        match place {
            "style.css" => Wanted::Page(Page::css(self.templates.style.clone())),
            "" if !head.target.path.ends_with('/') => Wanted::Page(Page::see(&format!("/{PLACE}/"))),
            "login" | "register" | "logout" => {
                Wanted::Page(self.form(place, &visitor, View { next, notice, ..View::default() }))
            }
            "" | "password" | "delete" => self.account(place, head, visitor, notice),
            _ => Wanted::Page(Page::not_found()),
        }
    }

    /// A page with a form, and the cookie that its token is made of.
    fn form(&self, name: &str, visitor: &Visitor, view: View) -> Page {
        let Ok((own, cookie)) = View::with_token(visitor) else { return self.trouble(&Reply::Unavailable) };
        let page = self.render(200, name, &View { token: own.token, ..view });
        match cookie {
            Some(value) => {
                page.cookie(Cookie::Form, visitor.secure, &value, self.settings.absolute.as_secs())
            }
            None => page,
        }
    }

    fn account(
        self: &Arc<Web>,
        place: &str,
        head: &Head<'_>,
        visitor: Visitor,
        notice: Option<&'static str>,
    ) -> Wanted {
        let refusal = Page::to_login(head);
        let Some(session) = visitor.session_digest() else { return Wanted::Page(refusal) };
        let (web, template) = (self.clone(), if place.is_empty() { "account" } else { place }.to_owned());
        Wanted::Ask(Ask {
            request: Request::Overview { session },
            session: visitor.session.clone(),
            then: Box::new(move |reply| {
                Outcome::Page(match reply {
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

    /// The template `name` filled.
    pub(super) fn render(&self, status: u16, name: &str, view: &View) -> Page {
        let view = View {
            place: format!("/{PLACE}/"),
            registration: match self.settings.registration {
                Registration::Open => "open",
                Registration::Invitation => "invitation",
                Registration::Closed => "closed",
            },
            least_password: self.settings.least_password,
            home: self.home(),
            ..view.clone()
        };
        match self.templates.render(&format!("{name}.html"), &view) {
            Ok(body) => Page::html(status, body),
            // A template that somebody wrote; it was filled once when it was read.
            Err(why) => {
                Page::html(500, format!("<!DOCTYPE html><title>500</title><pre>{}</pre>", escaped(&why)))
            }
        }
    }
}

/// What is said to have been done. Only what is known here is: the query is anybody's.
fn notice(said: &str) -> Option<&'static str> {
    match said {
        "registered" => Some("Your account is there. Log in with it."),
        "out" => Some("You are logged out."),
        "deleted" => Some("Your account is deleted."),
        "password" => Some("Your password is changed, and other sessions are ended."),
        "others" => Some("Other sessions are ended."),
        _ => None,
    }
}

/// The day of a moment, as HTTP writes it: `21 Nov 2026`.
fn day(seconds: i64) -> String {
    let date = clock::format_date(seconds.unsigned_abs());
    String::from_utf8_lossy(&date[5..16]).into_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
