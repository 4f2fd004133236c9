//! The bounds of one address, from the settings and the plan.

use tenfold_engine::{Engine, Plan, Topology};

use crate::admission::{AddressShares, ConnectionBound, HandshakeBound, RequestRate};
use crate::config::values::{ListenEntry, Settings};

/// Handshakes a second of one address by default: a core performs 10,000, and many clients may share an address.
const DEFAULT_HANDSHAKES: u32 = 200;
/// The length of a burst of handshakes after a pause, in seconds of the rate: clients that return after an outage.
const HANDSHAKE_BURST: u32 = 10;

/// The default share of one address: one in this many connections of the server, or of a worker if workers share
/// their listeners.
const DEFAULT_PART: usize = 4;
/// The lower bound of the default, because one address may be an office or a provider. Other addresses still have half.
const LEAST_DEFAULT: usize = 256;

/// The shares of a server that runs by `plan`; `None` if the settings have no bound.
pub(crate) fn of(settings: &Settings, plan: &Plan) -> Option<AddressShares> {
    let rate = |each: u32| RequestRate::new(each, settings.request_burst.unwrap_or(each));
    let requests = settings.max_requests_per_address.map(rate);
    let connections = connections(settings, plan);
    let handshakes = handshakes(settings);
    let bounds_any = requests.is_some()
        || connections != ConnectionBound::Unbounded
        || handshakes != HandshakeBound::Unbounded;
    let trusted = || settings.proxies.proxies.clone();
    bounds_any.then(|| AddressShares { connections, requests, handshakes, trusted: trusted() })
}

fn handshakes(settings: &Settings) -> HandshakeBound {
    let rate = |each: u32| RequestRate::new(each, each.saturating_mul(HANDSHAKE_BURST));
    let is_open = |entry: &ListenEntry| settings.has_tls(entry) && entry.is_open();
    match settings.max_handshakes_per_address {
        Some(each) => HandshakeBound::Explicit(rate(each)),
        None if settings.is_explicit("max-handshakes-per-address") => HandshakeBound::Unbounded,
        None if settings.listen.iter().any(is_open) => HandshakeBound::Default(rate(DEFAULT_HANDSHAKES)),
        None => HandshakeBound::Unbounded,
    }
}

fn connections(settings: &Settings, plan: &Plan) -> ConnectionBound {
    match settings.max_connections_per_address {
        Some(bound) => ConnectionBound::Explicit(bound),
        None if settings.is_explicit("max-connections-per-address") => ConnectionBound::Unbounded,
        // The engine has one connection at a time.
        None if plan.engine == Engine::Naive => ConnectionBound::Unbounded,
        None if settings.listen.iter().any(ListenEntry::is_open) => {
            // A full worker refuses connections, even if other workers have room, because the kernel may wake it first.
            let workers = match plan.topology {
                Topology::Threads | Topology::Handoff => 1,
                _ => plan.workers,
            };
            let all = plan.bounds.connections.saturating_mul(workers);
            let bound = (all / DEFAULT_PART).max(LEAST_DEFAULT.min(all / 2)).max(1);
            ConnectionBound::Default(u32::try_from(bound).unwrap_or(u32::MAX))
        }
        None => ConnectionBound::Unbounded,
    }
}
