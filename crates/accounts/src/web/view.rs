//! The templates and their values.

use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;

use super::visitor::RequestClient;
use crate::token;

/// The built-in templates. The others extend `base.html`.
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

/// The most steps of one page.
const MOST_STEPS: u64 = 1_000_000;

/// The names of the files that can replace built-in templates.
pub fn template_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).chain(["style.css"])
}

#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    pub(super) style: String,
}

impl Templates {
    /// Loads the templates. `custom` returns the text that replaces a built-in template.
    pub(super) fn load(custom: impl Fn(&str) -> Result<Option<String>, String>) -> Result<Templates, String> {
        let own = |name: &str, built_in: &str| {
            Ok::<_, String>(custom(name)?.unwrap_or_else(|| built_in.to_owned()))
        };
        let mut environment = Environment::new();
        environment.set_fuel(Some(MOST_STEPS));
        for (name, built_in) in BUILT_IN {
            let added = environment.add_template_owned(*name, own(name, built_in)?);
            added.map_err(|error| format!("the template {name} is invalid: {error}"))?;
        }
        Ok(Templates { environment, style: own("style.css", STYLE)? })
    }

    /// Renders each page once.
    pub(super) fn check(&self) -> Result<(), String> {
        BUILT_IN.iter().skip(1).try_for_each(|(name, _)| self.render(name, &View::default()).map(drop))
    }

    pub(super) fn render(&self, name: &str, view: &View) -> Result<String, String> {
        let rendered = self.environment.get_template(name).and_then(|template| template.render(Serde(view)));
        rendered.map_err(|error| format!("cannot render the template {name}: {error}"))
    }
}

/// The values for a template.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct View {
    /// The folder of these pages, with outer slashes.
    pub(super) place: String,
    /// `open`, `invitation` or `closed`.
    pub(super) registration: &'static str,
    pub(super) least_password: usize,
    /// The value of the field `token` of each form.
    pub(super) token: String,
    /// The page after the login.
    pub(super) next: Option<String>,
    /// The action that was just completed.
    pub(super) notice: Option<&'static str>,
    /// The values that were typed.
    pub(super) values: Values,
    /// The errors, by field.
    pub(super) errors: Errors,
    /// The name of the account.
    pub(super) name: String,
    pub(super) since: String,
    pub(super) others: u64,
    /// The first protected folder.
    pub(super) home: String,
    /// The heading of a message.
    pub(super) heading: Option<&'static str>,
    pub(super) text: Option<String>,
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
    /// The values for a visitor whose browser has a cookie for the token.
    pub(super) fn of(visitor: &RequestClient) -> View {
        View { token: visitor.token().unwrap_or_default(), ..View::default() }
    }

    pub(super) fn message(heading: &'static str, text: String) -> View {
        View { heading: Some(heading), text: Some(text), ..View::default() }
    }

    /// The values for any visitor, with the cookie to set if the browser has none.
    pub(super) fn with_token(visitor: &RequestClient) -> Result<(View, Option<String>), String> {
        if !visitor.forms.is_empty() {
            return Ok((View::of(visitor), None));
        }
        let form = token::random()?;
        let mut visitor = visitor.clone();
        visitor.forms = vec![form.clone()];
        Ok((View::of(&visitor), Some(form)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_takes_too_long_is_an_error() {
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
        let templates = Templates::load(|name| Ok((name == "login.html").then(|| endless.to_owned())));
        let why = templates.expect("it can be parsed").check().expect_err("it has too many steps");
        assert!(why.contains("login.html"), "{why}");
    }
}
