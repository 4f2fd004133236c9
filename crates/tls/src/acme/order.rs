//! An order: from the names to a stored certificate.

use instant_acme::{Account, CertificateIdentifier, Identifier, NewOrder, Order, OrderStatus};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};

use super::authority;
use super::error::AcmeError;
use super::refusal::OrderError;
use super::settings::AcmeSettings;
use super::stored::{self, StoredCertificate};
use super::validation::{self, POLLING};
use crate::certificates::facts::KeyId;
use crate::challenges::ChallengeBoard;
use crate::state::{FolderLock, Secrecy, StateFolder};

const FILE: &str = "order.json";

/// An order at the authority that has no certificate yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OpenOrder {
    url: String,
    directory: String,
    names: Vec<String>,
    /// The file of the certificate's key.
    key: String,
}

/// An attempt by the holder of the folder's lock.
pub(super) struct Attempt<'a> {
    pub(super) settings: &'a AcmeSettings,
    /// The names of the certificate.
    pub(super) names: &'a [String],
    pub(super) folder: &'a StateFolder,
    pub(super) lock: &'a FolderLock,
    pub(super) board: &'a ChallengeBoard,
    /// The time of the attempt, in seconds since 1970.
    pub(super) now: i64,
}

impl Attempt<'_> {
    /// Obtains a certificate, in the order of an earlier attempt if possible. `replaced` is the certificate
    /// to renew.
    ///
    /// # Errors
    /// Returns the failed step, or the names that the authority refused. An order that can still succeed is
    /// kept for the next attempt.
    pub(super) async fn obtain(
        &self,
        replaced: Option<&StoredCertificate>,
    ) -> Result<StoredCertificate, OrderError> {
        let account = authority::account(self.settings, self.folder, self.lock).await?;
        let (mut order, open) = match self.resume(&account).await {
            Some(resumed) => resumed,
            None => self.begin(&account, replaced).await?,
        };
        let pem = match self.finish(&mut order, &open).await {
            Ok(pem) => pem,
            Err(error) => {
                if is_rejected(&mut order).await {
                    self.end()?;
                }
                return Err(error);
            }
        };
        let chain = match stored::accept(self.folder, &pem, self.names, self.now) {
            Ok(chain) => chain,
            Err(error) => {
                self.end()?;
                return Err(error.into());
            }
        };
        // If the disk is full, the next attempt downloads the same certificate again.
        let stored = stored::store(self.folder, self.lock, &pem, chain)?;
        self.end()?;
        Ok(stored)
    }

    fn end(&self) -> Result<(), AcmeError> {
        self.folder.remove(self.lock, FILE).map_err(AcmeError::at("end the order"))
    }

    /// Returns the order of an earlier attempt, if it is for the same certificate and can still succeed.
    async fn resume(&self, account: &Account) -> Option<(Order, OpenOrder)> {
        let bytes = self.folder.read(FILE).ok().flatten()?;
        let open: OpenOrder = serde_json::from_slice(&bytes).ok()?;
        let is_same = open.directory == self.settings.directory && open.names == self.names;
        // The name in the file is not trusted: it could lead outside the folder.
        let has_key = open.key.starts_with("key-") && self.folder.names().ok()?.contains(&open.key);
        if !is_same || !has_key {
            return None;
        }
        let mut order = account.order(open.url.clone()).await.ok()?;
        (order.state().status != OrderStatus::Invalid).then_some((order, open))
    }

    /// Creates a key and an order. The key is on the disk before the authority gets its public key.
    async fn begin(
        &self,
        account: &Account,
        replaced: Option<&StoredCertificate>,
    ) -> Result<(Order, OpenOrder), OrderError> {
        let failed = "create a key";
        let pair = KeyPair::generate().map_err(AcmeError::at(failed))?;
        let key = stored::key_name(&KeyId::of(&rcgen::PublicKeyData::subject_public_key_info(&pair)));
        let pem = pair.serialize_pem();
        self.folder
            .write(self.lock, &key, pem.as_bytes(), Secrecy::Private)
            .map_err(AcmeError::at(failed))?;
        let order = self.new_order(account, replaced).await;
        let mut order = match order {
            Ok(order) => order,
            Err(error) => {
                let _ = self.folder.remove(self.lock, &key);
                return Err(error);
            }
        };
        let (directory, names) = (self.settings.directory.clone(), self.names.to_vec());
        let open = OpenOrder { url: order.url().to_owned(), directory, names, key };
        let bytes = serde_json::to_vec(&open).map_err(AcmeError::at("store the order"))?;
        self.folder
            .write(self.lock, FILE, &bytes, Secrecy::Private)
            .map_err(AcmeError::at("store the order"))?;
        // The first state of an order may lack fields of later states.
        order.refresh().await.map_err(AcmeError::at("read the order"))?;
        Ok((order, open))
    }

    async fn new_order(
        &self,
        account: &Account,
        replaced: Option<&StoredCertificate>,
    ) -> Result<Order, OrderError> {
        let names: Vec<Identifier> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let replaced =
            replaced.and_then(|stored| CertificateIdentifier::try_from(&stored.chain.certificates[0]).ok());
        if let Some(identifier) = replaced
            && let Ok(order) = account.new_order(&NewOrder::new(&names).replaces(identifier)).await
        {
            return Ok(order);
        }
        // An authority that rejects the hint (RFC 9773 §5) may accept the order without it.
        account.new_order(&NewOrder::new(&names)).await.map_err(|error| {
            if is_unknown_account(&error) {
                let _ = self.folder.remove(self.lock, &authority::file(self.settings));
            }
            OrderError::of("order a certificate", error, self.names)
        })
    }

    /// Performs the steps that the state of an order demands, and returns the chain as PEM.
    async fn finish(&self, order: &mut Order, open: &OpenOrder) -> Result<String, OrderError> {
        if order.state().status == OrderStatus::Pending {
            validation::validate(order, self.names, &self.settings.validation, self.board).await?;
        }
        if order.state().status == OrderStatus::Ready {
            let request = self.request(open)?;
            let finalized = order.finalize_csr(&request).await;
            finalized.map_err(|error| OrderError::of("request the certificate", error, self.names))?;
        }
        let pem = order.poll_certificate(&POLLING).await;
        pem.map_err(|error| OrderError::of("get the certificate", error, self.names))
    }

    /// Returns the certificate signing request (RFC 2986) of an order, in DER.
    fn request(&self, open: &OpenOrder) -> Result<Vec<u8>, AcmeError> {
        let failed = "request the certificate";
        let text = self.folder.read(&open.key).map_err(AcmeError::at(failed))?;
        let text = text.ok_or_else(|| AcmeError::new(failed, "the key of the order is missing"))?;
        let der = PrivateKeyDer::from_pem_slice(&text).map_err(AcmeError::at(failed))?;
        let pair = KeyPair::try_from(&der).map_err(AcmeError::at(failed))?;
        let mut params = CertificateParams::new(open.names.clone()).map_err(AcmeError::at(failed))?;
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(&pair).map_err(AcmeError::at(failed))?.der().to_vec())
    }
}

fn is_unknown_account(error: &instant_acme::Error) -> bool {
    let instant_acme::Error::Api(problem) = error else { return false };
    problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist")
}

/// Whether an order can no longer succeed.
async fn is_rejected(order: &mut Order) -> bool {
    let status = order.refresh().await.map(|state| state.status);
    matches!(status, Ok(OrderStatus::Invalid))
}
