//! The state of the service that answers requests.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::time;

use tenfold_http::semantics::forwarded::TrustedProxies;
use tenfold_http::{Connection, FieldName, FieldValue, Limits, OwnedRequest, ResponseWriter};
use tenfold_site::Hosts;
use tenfold_tls::challenges::ChallengeBoard;

use super::passwords::Passwords;
use super::request_ids::RequestIds;
use super::server_timing::ServerTiming;
use super::transport::TransportRules;
use crate::admission::Admission;
use crate::admission::lane::WorkLane;
use crate::members::client::WorkerMembers;
use crate::worker::shared::WorkerShared;

/// The rules that apply before those of a site.
pub(crate) struct RequestRules {
    /// The members' pages and folders, if there are any.
    pub(crate) members: Option<WorkerMembers>,
    /// The responses to an authority that validates names, if one may ask for them.
    pub(crate) challenges: Option<ChallengeBoard>,
    /// The rules that follow from TLS.
    pub(crate) transport: TransportRules,
}

/// The service that all threads of a worker share.
pub(super) struct SharedService {
    /// Itself, for deferred answers.
    pub(super) this: Weak<SharedService>,
    pub(super) hosts: Hosts,
    /// The path that echoes the bodies of requests, if any.
    pub(super) echo: Option<String>,
    /// The bounds of addresses, if there are any.
    pub(super) admission: Option<Admission>,
    /// The members' pages and folders, if there are any.
    pub(super) members: Option<WorkerMembers>,
    pub(super) transport: TransportRules,
    /// Whether responses may have fields of this worker in addition to the fields of the site.
    pub(super) amends: bool,
    /// The serving model, if responses name it.
    pub(super) timing: Option<ServerTiming>,
    /// The responses to an authority that validates names, if one may ask for them.
    pub(super) challenges: Option<ChallengeBoard>,
    /// Whether anything precedes the site.
    pub(super) guarded: bool,
    pub(super) limits: Limits,
    pub(super) worker: Arc<WorkerShared>,
    /// Whether the log shows the times of responses.
    pub(super) measures: bool,
    /// Whether the log shows the user of a request.
    pub(super) shows_user: bool,
    /// Whether an admin listener shows the duration of responses.
    pub(super) observed: bool,
    /// The threads for work that would delay other connections.
    pub(super) lane: WorkLane,
    /// The verification of passwords of basic authentication.
    pub(super) passwords: Passwords,
    /// The time of the last report of a system error, in seconds since 1970.
    pub(super) complained: AtomicU64,
    /// Whether requests may have an identifier, or another client than the peer of their connection.
    pub(super) describes: bool,
    /// The proxies whose fields name the clients of requests.
    pub(super) proxies: TrustedProxies,
    /// The identifiers of requests, if they have any.
    pub(super) request_ids: Option<RequestIds>,
    /// Whether it was reported that a proxy's fields name different clients.
    pub(super) said_ambiguous: AtomicBool,
}

/// A request with a deferred answer.
pub(super) struct DeferredRequest {
    pub(super) request: OwnedRequest,
    pub(super) connection: Connection,
    /// The start time of its answer, if it is measured.
    pub(super) began: Option<time::Instant>,
    /// Whether it is for one member only.
    pub(super) private: bool,
}

impl DeferredRequest {
    /// Forbids caches to store a response that is for one member only (RFC 9111 §5.2.2).
    pub(super) fn keep_private(&self, response: &mut ResponseWriter<'_>) {
        if self.private {
            response.replace_field(FieldName::CACHE_CONTROL, FieldValue::constant("private, no-store"));
        }
    }
}
