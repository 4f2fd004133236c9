//! The account at a certificate authority.

use aws_lc_rs::digest;
use instant_acme::{
    Account, AccountCredentials, CertificateIdentifier, ExternalAccountKey, NewAccount, RevocationRequest,
};

use super::error::AcmeError;
use super::external::ExternalAccount;
use super::renewal::RenewalWindow;
use super::settings::AcmeSettings;
use super::stored::hex;
use super::transport::HttpsTransport;
use crate::certificates::chain::Chain;
use crate::state::{FolderLock, Secrecy, StateFolder};

/// Returns the file of the account, which is separate for each authority.
pub(super) fn file(settings: &AcmeSettings) -> String {
    let digest = digest::digest(&digest::SHA256, settings.directory.as_bytes());
    format!("account-{}.json", hex(&digest.as_ref()[..8]))
}

/// Returns the account in the folder, and creates it if there is none. Users who configure a domain agree to
/// the authority's terms, as the manual explains.
pub(super) async fn account(
    settings: &AcmeSettings,
    folder: &StateFolder,
    lock: &FolderLock,
) -> Result<Account, AcmeError> {
    if let Some(account) = existing(settings, folder).await? {
        return Ok(account);
    }
    let contact = settings.contact.as_ref().map(|address| format!("mailto:{address}"));
    let contact: Vec<&str> = contact.as_deref().into_iter().collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let external = settings.external_account.as_deref().map(ExternalAccount::read).transpose();
    let external = external.map_err(AcmeError::at("read tls-external-account"))?;
    let external = external.map(|account| ExternalAccountKey::new(account.identifier, &account.key));
    let builder =
        Account::builder_with_http(Box::new(HttpsTransport::new(settings.authority_roots.as_deref())?));
    let created = builder.create(&new, settings.directory.clone(), external.as_ref()).await;
    let (account, credentials) = created.map_err(AcmeError::at("create the account"))?;
    let bytes = serde_json::to_vec(&credentials).map_err(AcmeError::at("store the account"))?;
    folder
        .write(lock, &file(settings), &bytes, Secrecy::Private)
        .map_err(AcmeError::at("store the account"))?;
    Ok(account)
}

/// Returns the account in the folder. An invalid file counts as absent.
async fn existing(settings: &AcmeSettings, folder: &StateFolder) -> Result<Option<Account>, AcmeError> {
    let read = folder.read(&file(settings)).map_err(AcmeError::at("read the account"))?;
    let Some(credentials) = read.and_then(|bytes| serde_json::from_slice::<AccountCredentials>(&bytes).ok())
    else {
        return Ok(None);
    };
    let builder =
        Account::builder_with_http(Box::new(HttpsTransport::new(settings.authority_roots.as_deref())?));
    let account = builder.from_credentials(credentials).await;
    account.map(Some).map_err(AcmeError::at("reach the authority"))
}

/// Returns the window that the authority suggests for the renewal of a certificate; `None` if the authority
/// suggests none, or without an account.
pub(super) async fn renewal_window(
    settings: &AcmeSettings,
    folder: &StateFolder,
    chain: &Chain,
) -> Result<Option<RenewalWindow>, AcmeError> {
    let Some(account) = existing(settings, folder).await? else { return Ok(None) };
    let Ok(identifier) = CertificateIdentifier::try_from(&chain.certificates[0]) else { return Ok(None) };
    match account.renewal_info(&identifier).await {
        Ok((info, _)) => {
            let window = info.suggested_window;
            Ok(Some(RenewalWindow { start: window.start.unix_timestamp(), end: window.end.unix_timestamp() }))
        }
        Err(instant_acme::Error::Unsupported(_)) => Ok(None),
        Err(error) => Err(AcmeError::new("get the renewal time", error)),
    }
}

/// Revokes a certificate.
pub(super) async fn revoke(
    settings: &AcmeSettings,
    folder: &StateFolder,
    lock: &FolderLock,
    chain: &Chain,
) -> Result<(), AcmeError> {
    let account = account(settings, folder, lock).await?;
    let request = RevocationRequest { certificate: &chain.certificates[0], reason: None };
    account.revoke(&request).await.map_err(AcmeError::at("revoke the certificate"))
}
