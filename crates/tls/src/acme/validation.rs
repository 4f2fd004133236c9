//! The proof that the names of an order are ours.

use instant_acme::{AuthorizationStatus, ChallengeType, Order, OrderStatus, RetryPolicy};
use std::time::Duration;

use super::dns::TxtRecord;
use super::error::{AcmeError, MAX_REASON};
use super::settings::{AcmeSettings, Validation};
use crate::challenges::{ChallengeBoard, PendingChallenges};

/// The bound of the authority's checks.
pub(super) const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));

/// The most reasons that are told for one name.
const MAX_REASONS: usize = 4;

const TOO_MANY: &str = "the authority asks for more proofs than there are names";

/// The responses that one order needs. They are withdrawn when it is dropped.
struct Responses<'a> {
    board: &'a ChallengeBoard,
    _records: Vec<TxtRecord<'a>>,
}

impl Drop for Responses<'_> {
    fn drop(&mut self) {
        let _ = self.board.publish(&PendingChallenges::default());
    }
}

/// Proves the control of every name of an order.
///
/// # Errors
/// Says which name the authority rejected, and its reason.
pub(super) async fn validate(
    order: &mut Order,
    settings: &AcmeSettings,
    board: &ChallengeBoard,
) -> Result<(), AcmeError> {
    let validation = &settings.validation;
    let responses = prepare(order, settings, board).await?;
    // The authority names authorizations again with each state of the order.
    let (mut authorizations, mut left) = (order.authorizations(), settings.names.len());
    while let Some(authorization) = authorizations.next().await {
        left = left.checked_sub(1).ok_or_else(|| AcmeError::new("validate the names", TOO_MANY))?;
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
            Err(AcmeError::new("validate the names", reasons(order, settings.names.len()).await))
        }
        Err(error) => Err(AcmeError::new("validate the names", error)),
    }
}

fn kind(validation: &Validation) -> ChallengeType {
    match validation {
        Validation::TlsAlpn01 => ChallengeType::TlsAlpn01,
        Validation::Http01 => ChallengeType::Http01,
        Validation::Dns01 { .. } => ChallengeType::Dns01,
    }
}

/// Publishes the responses to all challenges that are pending.
async fn prepare<'a>(
    order: &mut Order,
    settings: &'a AcmeSettings,
    board: &'a ChallengeBoard,
) -> Result<Responses<'a>, AcmeError> {
    let validation = &settings.validation;
    let failed = "prepare the validation";
    let (mut pending, mut records, mut count) = (PendingChallenges::default(), Vec::new(), 0);
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(AcmeError::at("read the authorization"))?;
        count += 1;
        if count > settings.names.len() {
            return Err(AcmeError::new(failed, TOO_MANY));
        }
        let name = authorization.identifier().to_string();
        if !is_ordered(&name, &settings.names) {
            return Err(AcmeError::new(
                failed,
                format!("the authority asks to prove {name}, which was not ordered"),
            ));
        }
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            status => {
                return Err(AcmeError::new(failed, format!("the authorization of {name} is {status:?}")));
            }
        }
        let Some(challenge) = authorization.challenge(kind(validation)) else {
            let reason = format!("the authority does not offer {:?} for {name}", kind(validation));
            return Err(AcmeError::new(failed, reason));
        };
        let response = challenge.key_authorization();
        match validation {
            Validation::TlsAlpn01 => {
                pending.add_tls(&name, response.digest().as_ref()).map_err(AcmeError::at(failed))?;
            }
            Validation::Http01 => pending.add_http(&challenge.token, response.as_str()),
            Validation::Dns01 { command } => {
                records.push(TxtRecord::set(command, &name, response.dns_value())?);
            }
        }
    }
    if !board.publish(&pending) {
        return Err(AcmeError::new(failed, "too many names; use several certificates"));
    }
    Ok(Responses { board, _records: records })
}

/// Whether an authorization is for a name of the order, possibly a wildcard: the authority chooses the text, which becomes
/// an argument of the command for DNS records.
fn is_ordered(name: &str, ordered: &[String]) -> bool {
    let domain = |name: &str| name.strip_prefix("*.").unwrap_or(name).to_owned();
    ordered.iter().any(|ordered| domain(ordered) == domain(name))
}

/// The beginning of a text of the authority, which chooses its length.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}

/// Returns the reasons of an authority that rejected an order, those of at most `most` authorizations.
async fn reasons(order: &mut Order, most: usize) -> String {
    let mut all = Vec::new();
    let (mut authorizations, mut left) = (order.authorizations(), most);
    while left > 0
        && let Some(authorization) = authorizations.next().await
    {
        left -= 1;
        let Ok(mut authorization) = authorization else { continue };
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = shortened(&authorization.identifier().to_string());
        let errors = authorization.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        let reasons = errors.map(|error| shortened(error.detail.as_deref().unwrap_or("no reason")));
        all.extend(reasons.take(MAX_REASONS).map(|reason| format!("{name}: {reason}")));
    }
    if all.is_empty() { "the authority gave no reason".to_owned() } else { all.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_order_are_proven() {
        let ordered = ["example.org".to_owned(), "*.example.net".to_owned()];
        for name in ["example.org", "*.example.org", "example.net", "*.example.net"] {
            assert!(is_ordered(name, &ordered), "{name}");
        }
        for name in ["", "www.example.org", "example.org$(id)", "*.*.example.org", "other.example"] {
            assert!(!is_ordered(name, &ordered), "{name}");
        }
    }
}
