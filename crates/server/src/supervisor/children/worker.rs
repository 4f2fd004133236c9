//! The life of a worker process, from the fork to its exit.

use std::os::fd::RawFd;
use std::sync::Arc;

use tenfold_accounts::web::protect::ProtectedFolder;
use tenfold_engine::layer::Layered;
use tenfold_engine::{Dispatch, run};
use tenfold_site::{Hosts, MemberFolders, Remarks, Site};
use tenfold_sys::file::{FileError, Root};
use tenfold_sys::process::Pid;
use tenfold_sys::sacrifice;
use tenfold_sys::select::FD_SETSIZE;
use tenfold_sys::socket::Listener;
use tenfold_sys::user::SystemUser;
use tenfold_tls::certificates::files::LoadedCertificates;
use tenfold_tls::challenges::ChallengeBoard;
use tenfold_tls::connection::{HandshakeResult, TlsServer};
use tenfold_tls::shared::SharedBytes;
use tenfold_tls::signing::remote::SigningClient;

use crate::admission::Admission;
use crate::config::resolve::ResolvedConfig;
use crate::config::resolve::certificates;
use crate::config::values::Settings;
use crate::config::values::bounds::HANDSHAKES;
use crate::diagnostics::{self, debug};
use crate::log::open;
use crate::members::channel::AccountsClient;
use crate::members::client::WorkerMembers;
use crate::members::client::filter::Starts;
use crate::sandbox;
use crate::status::counters::{Counter, Tally};
use crate::supervisor::book::NAME;
use crate::supervisor::children::child::end_with;
use crate::supervisor::children::privileges;
use crate::supervisor::generation::Generation;
use crate::supervisor::state::Serve;
use crate::worker::app::{App, RequestRules, TransportRules};
use crate::worker::null::NullProtocol;
use crate::worker::proxies;
use crate::worker::shared::WorkerShared;

/// Added to `oom_score_adj` of a worker: if memory runs out, the kernel prefers workers, which the supervisor replaces.
/// systemd adds as much for the programs of a session.
const OFFERED: i32 = 100;

/// The resources that a worker gets.
pub(crate) struct WorkerTask {
    pub(crate) place: usize,
    pub(crate) supervisor: Pid,
    pub(crate) generation: Generation,
    pub(crate) listeners: Vec<Listener>,
    /// The asking end to the accounts process, if there is one, and the count of its starts.
    pub(crate) client: Option<(AccountsClient, Starts)>,
    /// The keys of TLS tickets.
    pub(crate) tickets: Option<SharedBytes>,
    /// The responses to the challenges of an authority.
    pub(crate) challenges: Option<ChallengeBoard>,
}

/// Serves until the worker is asked to leave, and ends the process.
pub(crate) fn run_and_exit(work: WorkerTask, user: Option<&SystemUser>, how: &Serve) -> ! {
    let place = work.place + 1;
    // The supervisor applies the level of the generation after the fork.
    diagnostics::set_level(work.generation.settings.log_level);
    end_with(&format!("worker {place}"), || serve(work, user, how))
}

fn serve(work: WorkerTask, user: Option<&SystemUser>, how: &Serve) -> Result<(), String> {
    let WorkerTask { place, supervisor, generation, listeners, client, tickets, challenges } = work;
    let shares = generation.config.shares.clone().unwrap_or_default();
    let lane = generation.lane + place;
    // Used until the process ends.
    let addresses = generation.addresses.map(|addresses| &**Box::leak(Box::new(addresses)));
    let admission = addresses.map(|addresses| Admission::new(addresses, lane, shares));
    let has_book = generation.book.is_some();
    let Generation {
        mut settings, config, mut roots, log, rows, gate, reports, remarks, web, signing, ..
    } = generation;
    let signing = signing.map(|signing| signing.into_ends(place));
    settings.limits.open_files = config.open_files;
    // The user of the workers may not be able to enter protected folders.
    let protect = if web.is_some() { &settings.members.protect[..] } else { &[] };
    for (root, site) in roots.iter_mut().zip(std::iter::once(&config.site).chain(&config.hosts)) {
        root.follow(site.routes.links);
        let of_auth = site.paths_of_auth();
        root.remember(of_auth.iter().map(String::as_str).chain(protect.iter().map(ProtectedFolder::name)));
    }
    if let Err(error) = sacrifice::offer(OFFERED) {
        debug!("worker {}: cannot raise /proc/self/oom_score_adj: {error}", place + 1);
    }
    if !privileges::give_up(user, supervisor)? {
        return Ok(());
    }
    let plan = &config.plan;
    // The rows are used until the process ends.
    let (all, reports) = (Box::leak(Box::new(rows)), Box::leak(Box::new(reports)));
    let rows = place..place + plan.counted_threads() / plan.processes();
    if sandbox::CONFINES {
        let refused = Tally::new(all.row(rows.start), true).word(Counter::RefusedCalls);
        let process =
            sandbox::Process { name: format!("worker {}", place + 1), row: reports.row(place), refused };
        let written: Vec<_> = open::paths_of(&log).collect();
        let serving = sandbox::SandboxSubject {
            plan,
            several_listeners: listeners.len() > 1,
            layered: config.certificates.is_some(),
            kernel_tls: config.kernel_tls.used().is_some(),
            members: web.is_some(),
            watches: settings.watch,
            signs: signing.is_some(),
            roots: &roots,
            written: &written,
        };
        sandbox::confine_worker(process, &serving)?;
    }
    let shared = plan.is_many() || plan.dispatch != Dispatch::Inline;
    let worker = WorkerShared::new(all, rows, gate, shared, log)?;
    match how.null {
        Some(response) => {
            let null = NullProtocol::new(response, settings.limits, worker);
            run(plan, &listeners, null)
        }
        None => {
            tenfold_http::show_server(settings.server_field);
            let mut hosts = hosts(roots, has_book, &settings, &config, user)?;
            let remarks: &'static _ = Box::leak(Box::new(remarks));
            hosts = hosts.with_remarks(Remarks::new(remarks.row(0), |remark| {
                diagnostics::warn_of_file(&format!("{remark} (logged once)"));
            }));
            if web.is_some() {
                hosts = hosts.for_members(member_folders(&settings.members.protect));
            }
            let members =
                web.zip(client).map(|(web, (client, starts))| WorkerMembers::new(web, client, starts, plan));
            let transport = TransportRules::new(&settings, config.certificates.as_deref(), &listeners);
            let before = RequestRules { members, challenges: challenges.clone(), transport };
            let app = App::new(hosts, &settings, admission, before, plan, worker.clone())?;
            let signer = signing.map(|ends| ends.client(plan)).transpose()?;
            let tls = match &config.certificates {
                Some(loaded) => {
                    let shared = (tickets, challenges, signer.as_ref());
                    Some(
                        tls_layer(&settings, loaded, shared, &app, &worker)?
                            .with_kernel(config.kernel_tls.used()),
                    )
                }
                None => None,
            };
            let proxies = proxies::listeners(&settings, &worker);
            let served = match (tls, proxies) {
                (None, None) => run(plan, &listeners, app),
                (tls, proxies) => run(plan, &listeners, Layered::new(tls, app, plan).behind(proxies)),
            };
            worker.end();
            served
        }
    }
}

/// TLS on the listeners that have it.
fn tls_layer(
    settings: &Settings,
    loaded: &LoadedCertificates,
    (tickets, challenges, signer): (Option<SharedBytes>, Option<ChallengeBoard>, Option<&Arc<SigningClient>>),
    app: &App,
    worker: &Arc<WorkerShared>,
) -> Result<TlsServer, String> {
    let covered: Vec<_> = settings.listen.iter().map(|entry| settings.has_tls(entry)).collect();
    let tickets = tickets.ok_or("there are no keys for tickets")?;
    let tls = certificates::server_config(
        loaded,
        settings.tls_preset,
        tickets,
        challenges,
        signer,
        settings.http2(),
    )?;
    let counting = worker.clone();
    let count = move |result| {
        counting.with(|local| local.tally.add(counter(result), 1));
    };
    let gate = app.clone();
    let server = TlsServer::new(tls, &covered, count);
    let server = server.with_bounds(HANDSHAKES, move |peer| gate.admit_handshake(peer));
    Ok(match signer.cloned() {
        Some(signer) => server.with_signer(move || signer.is_late()),
        None => server,
    })
}

fn counter(result: HandshakeResult) -> Counter {
    match result {
        HandshakeResult::Full => Counter::TlsFull,
        HandshakeResult::Resumed => Counter::TlsResumed,
        HandshakeResult::Failed => Counter::TlsFailed,
        HandshakeResult::TooMany => Counter::TooManyHandshakes,
    }
}

/// The sites, each on its folder. If `has_book`, the first one also has the manual.
fn hosts(
    mut roots: Vec<Root>,
    has_book: bool,
    settings: &Settings,
    config: &ResolvedConfig,
    user: Option<&SystemUser>,
) -> Result<Hosts, String> {
    if config.plan.waits_in_select() {
        roots.iter_mut().for_each(|root| root.keep_files_above(FD_SETSIZE as RawFd));
    }
    let mut book = if has_book { roots.pop() } else { None };
    let mut sites = Vec::new();
    for (root, site) in roots.into_iter().zip(std::iter::once(&config.site).chain(&config.hosts)) {
        readable(&root, user)?;
        let book = book.take().map(|book| (NAME, book));
        sites.push(Site::with_second_root(root, book, site.clone()));
    }
    let mut sites = sites.into_iter();
    let first = sites.next().ok_or("there is nothing to serve")?;
    let names = settings.hosts.iter().map(|host| host.names.clone());
    Ok(Hosts::new(first, names.zip(sites)))
}

/// Checks that this process, which is `user`, can read the files beneath `root`.
pub(crate) fn readable(root: &Root, user: Option<&SystemUser>) -> Result<(), String> {
    let path = root.path().display();
    root.look("").map(drop).map_err(|why| match (user, why) {
        (Some(user), FileError::Forbidden) => format!(
            "user {} cannot enter {path}: move the site, for example to /srv, or name a user with --user",
            user.name
        ),
        (Some(user), _) => format!("cannot read the root {path} as user {}: {why}", user.name),
        (None, _) => format!("cannot read the root {path}: {why}"),
    })
}

fn member_folders(protect: &[ProtectedFolder]) -> MemberFolders {
    let (names, folders) = (protect.iter().map(|folder| folder.name().to_owned()), protect.to_vec());
    MemberFolders::new(names.collect(), move |path| folders.iter().any(|folder| folder.holds(path)))
}
