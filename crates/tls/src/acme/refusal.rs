//! Names that an authority refuses, while it may issue a certificate for the other names.

use instant_acme::{Identifier, Problem};

use super::error::AcmeError;

/// The reason of a failed order.
#[derive(Debug)]
pub(super) enum OrderError {
    /// The authority refused these names. It may accept an order without them.
    Refused(Vec<RefusedName>),
    Failed(AcmeError),
}

/// A name that the authority refused.
#[derive(Debug)]
pub(super) struct RefusedName {
    pub(super) name: String,
    pub(super) reason: String,
}

impl OrderError {
    /// Returns the error of a step, with the refused names in the authority's problem document.
    pub(super) fn of(step: &str, error: instant_acme::Error, ordered: &[String]) -> OrderError {
        let refused = match &error {
            instant_acme::Error::Api(problem) => refused_names(problem, ordered),
            _ => Vec::new(),
        };
        match refused.is_empty() {
            true => OrderError::Failed(AcmeError::new(step, error)),
            false => OrderError::Refused(refused),
        }
    }
}

impl From<AcmeError> for OrderError {
    fn from(error: AcmeError) -> OrderError {
        OrderError::Failed(error)
    }
}

/// Returns the names of a problem: the names of its subproblems (RFC 8555 §6.7.1), or else names in its text,
/// because authorities omit a single subproblem.
fn refused_names(problem: &Problem, ordered: &[String]) -> Vec<RefusedName> {
    let texts: Vec<(String, &str)> = match problem.subproblems.is_empty() {
        true => {
            let text = problem.detail.as_deref().unwrap_or_default();
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*');
            let words = text.split(|c| !is_part(c)).map(|word| word.trim_end_matches('.'));
            words.map(|word| (word.to_ascii_lowercase(), text)).collect()
        }
        false => {
            let about = problem.subproblems.iter().filter_map(|sub| match &sub.identifier {
                Some(Identifier::Dns(name)) => {
                    Some((name.clone(), sub.detail.as_deref().unwrap_or("no reason")))
                }
                _ => None,
            });
            about.collect()
        }
    };
    let reason_of = |name: &String| texts.iter().find(|(about, _)| about == name).map(|(_, reason)| *reason);
    let refused =
        |name: &String| Some(RefusedName { name: name.clone(), reason: reason_of(name)?.to_owned() });
    ordered.iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use instant_acme::Subproblem;

    use super::*;

    fn refused(detail: &str, subproblems: Vec<Subproblem>) -> Vec<(String, String)> {
        let ordered = ["a.test", "www.a.test", "*.b.test"].map(str::to_owned);
        let problem = Problem { r#type: None, detail: Some(detail.to_owned()), status: None, subproblems };
        let names = refused_names(&problem, &ordered);
        names.into_iter().map(|refused| (refused.name, refused.reason)).collect()
    }

    #[test]
    fn the_names_of_a_problem_are_found() {
        let about = |name: &str, detail: &str| Subproblem {
            identifier: Some(Identifier::Dns(name.to_owned())),
            r#type: None,
            detail: Some(detail.to_owned()),
        };
        let found = refused("two problems", vec![about("a.test", "CAA"), about("other.test", "policy")]);
        assert_eq!(found, [("a.test".to_owned(), "CAA".to_owned())]);
        for (detail, expected) in [
            ("Cannot issue for \"www.a.test\": policy forbids it", Some("www.a.test")),
            ("Forbidden: A.test.", Some("a.test")),
            ("Forbidden: *.b.test, b.test", Some("*.b.test")),
            ("xa.test, a.test.example and b.test", None),
        ] {
            let found = refused(detail, Vec::new());
            assert_eq!(found.first().map(|(name, _)| name.as_str()), expected, "{detail}");
        }
    }
}
