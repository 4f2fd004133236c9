//! The proof of control over the names of an order.

use instant_acme::{AuthorizationStatus, ChallengeType, Order, OrderStatus, RetryPolicy};
use std::time::Duration;

use super::dns::TxtRecord;
use super::error::{AcmeError, MAX_REASON};
use super::refusal::{OrderError, RefusedName};
use super::settings::Validation;
use crate::challenges::{ChallengeBoard, PendingChallenges};

/// The bound of the authority's checks.
pub(super) const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));

/// The most reasons reported for a name.
const MAX_REASONS: usize = 4;

const VALIDATE: &str = "validate the names";

const TOO_MANY: &str = "the authority demands more proofs than there are names";

/// The responses for an order. Dropping them withdraws them.
struct Responses<'a> {
    board: &'a ChallengeBoard,
    _records: Vec<TxtRecord<'a>>,
}

impl Drop for Responses<'_> {
    fn drop(&mut self) {
        let _ = self.board.publish(&PendingChallenges::default());
    }
}

/// Proves the control over every name of an order. An error has the names that the authority rejected, and
/// its reasons.
pub(super) async fn validate(
    order: &mut Order,
    names: &[String],
    validation: &Validation,
    board: &ChallengeBoard,
) -> Result<(), OrderError> {
    let responses = prepare(order, names, validation, board).await?;
    // The authority lists the authorizations again with each state of the order.
    let (mut authorizations, mut left) = (order.authorizations(), names.len());
    while let Some(authorization) = authorizations.next().await {
        left = left.checked_sub(1).ok_or_else(|| AcmeError::new(VALIDATE, TOO_MANY))?;
        let mut authorization = authorization.map_err(AcmeError::at("read the authorization"))?;
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        let begin = "begin the validation";
        let challenge = authorization.challenge(kind(validation));
        let mut challenge =
            challenge.ok_or_else(|| AcmeError::new(begin, "the authority no longer offers the challenge"))?;
        challenge.set_ready().await.map_err(AcmeError::at(begin))?;
    }
    let polled = order.poll_ready(&POLLING).await;
    drop(responses);
    match polled {
        Ok(OrderStatus::Ready) => Ok(()),
        Ok(_) | Err(instant_acme::Error::Api(_)) => {
            let refused = refused(order, names).await;
            match refused.is_empty() {
                true => Err(AcmeError::new(VALIDATE, "the authority gave no reason").into()),
                false => Err(OrderError::Refused(refused)),
            }
        }
        Err(error) => Err(AcmeError::new(VALIDATE, error).into()),
    }
}

fn kind(validation: &Validation) -> ChallengeType {
    match validation {
        Validation::TlsAlpn01 => ChallengeType::TlsAlpn01,
        Validation::Http01 => ChallengeType::Http01,
        Validation::Dns01 { .. } => ChallengeType::Dns01,
    }
}

/// Publishes the responses to all pending challenges.
async fn prepare<'a>(
    order: &mut Order,
    names: &[String],
    validation: &'a Validation,
    board: &'a ChallengeBoard,
) -> Result<Responses<'a>, OrderError> {
    let failed = "prepare the validation";
    let (mut pending, mut records, mut count) = (PendingChallenges::default(), Vec::new(), 0);
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(AcmeError::at("read the authorization"))?;
        count += 1;
        if count > names.len() {
            return Err(AcmeError::new(failed, TOO_MANY).into());
        }
        let name = authorization.identifier().to_string();
        let Some(ordered) = ordered(&name, names) else {
            let reason = format!("the authority demands a proof for {name}, which was not ordered");
            return Err(AcmeError::new(failed, reason).into());
        };
        let refused =
            |reason: String| OrderError::Refused(vec![RefusedName { name: ordered.to_owned(), reason }]);
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            status => {
                return Err(refused(format!("its authorization is {status:?}")));
            }
        }
        let Some(challenge) = authorization.challenge(kind(validation)) else {
            return Err(refused(format!("the authority does not offer {:?}", kind(validation))));
        };
        let response = challenge.key_authorization();
        match validation {
            Validation::TlsAlpn01 => {
                pending.add_tls(&name, response.digest().as_ref()).map_err(AcmeError::at(failed))?;
            }
            Validation::Http01 => pending.add_http(&challenge.token, response.as_str()),
            Validation::Dns01 { command } => {
                let record = TxtRecord::set(command, &name, response.dns_value());
                records.push(record.map_err(|error| refused(error.to_string()))?);
            }
        }
    }
    if !board.publish(&pending) {
        return Err(AcmeError::new(failed, "too many names; use several certificates").into());
    }
    Ok(Responses { board, _records: records })
}

/// Returns the ordered name of an authorization, possibly a wildcard. The authority's text is not used
/// itself, because it becomes an argument of the program for DNS records.
fn ordered<'a>(name: &str, ordered: &'a [String]) -> Option<&'a str> {
    let domain = |name: &str| name.strip_prefix("*.").unwrap_or(name).to_owned();
    let exact = ordered.iter().find(|ordered| *ordered == name);
    exact.or_else(|| ordered.iter().find(|ordered| domain(ordered) == domain(name))).map(String::as_str)
}

/// Shortens a text of the authority, which chooses its length.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}

/// Returns the names that the authority rejected, with its reasons.
async fn refused(order: &mut Order, names: &[String]) -> Vec<RefusedName> {
    let mut all = Vec::new();
    let (mut authorizations, mut left) = (order.authorizations(), names.len());
    while left > 0
        && let Some(authorization) = authorizations.next().await
    {
        left -= 1;
        let Ok(mut authorization) = authorization else { continue };
        if authorization.refresh().await.is_err() {
            continue;
        }
        let identifier = authorization.identifier().to_string();
        let Some(name) = ordered(&identifier, names) else { continue };
        let errors = authorization.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        let reasons = errors.map(|error| shortened(error.detail.as_deref().unwrap_or("no reason")));
        let reasons: Vec<_> = reasons.take(MAX_REASONS).collect();
        if !reasons.is_empty() {
            all.push(RefusedName { name: name.to_owned(), reason: reasons.join("; ") });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_order_are_proven() {
        let names = ["example.org".to_owned(), "*.example.net".to_owned()];
        for name in ["example.org", "*.example.org", "example.net", "*.example.net"] {
            assert!(ordered(name, &names).is_some(), "{name}");
        }
        for name in ["", "www.example.org", "example.org$(id)", "*.*.example.org", "other.example"] {
            assert_eq!(ordered(name, &names), None, "{name}");
        }
    }
}
