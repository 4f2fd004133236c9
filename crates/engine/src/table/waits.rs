//! The calls by which models wait for many descriptors. A worker cannot make the calls of other models.

use tenfold_sys::seccomp::Call;

use super::calls::EPOLL;
use crate::models::libevent;
use crate::plan::Plan;
use crate::plan::choice::{Engine, Topology};

/// Calls by which a loop waits for many descriptors. A serving thread may make only the calls of its model.
const WAITS: &[Call] = &[
    Call::EPOLL_PWAIT,
    Call::EPOLL_PWAIT2,
    Call::EPOLL_WAIT,
    Call::IO_URING_ENTER,
    Call::POLL,
    Call::PSELECT6,
    Call::SELECT,
];

impl Plan {
    /// Whether serving threads need fewer calls than their process: a ring is made after the filter of the process, and
    /// with `handoff` only the accepting thread waits by `poll`.
    pub fn narrows_threads(&self) -> bool {
        self.engine == Engine::Uring || self.topology == Topology::Handoff
    }

    /// The calls by which other models wait. The method of libevent is known at run time.
    pub fn others_waits(&self) -> Vec<Call> {
        let method = match (self.engine, self.method) {
            (Engine::Libevent, Some(method)) => Some(method.to_string()),
            (Engine::Libevent, None) => libevent::method().map(str::to_owned),
            _ => None,
        };
        let own: Vec<Call> = match method.as_deref() {
            Some("epoll") => EPOLL.to_vec(),
            Some("poll") => vec![Call::POLL],
            Some("select") => vec![Call::PSELECT6],
            _ => self.engine.model().all_calls().collect(),
        };
        WAITS.iter().copied().filter(|wait| !own.contains(wait)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Bounds;
    use crate::plan::choice::{Method, Sender};
    use crate::table::Steps;

    fn waits(engine: Engine) -> Vec<Call> {
        let plan = Plan::new(engine, None, Some(1), Sender::Auto, None, Bounds::default());
        plan.expect("the plan is legal").others_waits()
    }

    #[test]
    fn calls_are_printed_as_prose() {
        let prose = |engine: Engine| Steps(engine.model().calls).to_string();
        assert_eq!(prose(Engine::Naive), "accept4, recv, write or sendfile, close");
        assert_eq!(
            prose(Engine::Epoll),
            "epoll_wait, accept4, recv, write or sendfile, epoll_ctl once a connection, close"
        );
        assert!(
            prose(Engine::Libevent).starts_with("epoll_wait or poll or select (libevent-method), accept4, ")
        );
        assert_eq!(prose(Engine::Select), "select, accept4, recv, write or sendfile, close");
        assert_eq!(
            prose(Engine::Uring),
            "io_uring_enter (multishot accept and recv, send, close), getpeername, sendfile for large files"
        );
    }

    #[test]
    fn a_model_has_its_own_wait_and_none_of_the_others() {
        assert_eq!(waits(Engine::Naive), WAITS);
        for (engine, own) in [
            (Engine::Select, Call::PSELECT6),
            (Engine::Poll, Call::POLL),
            (Engine::Uring, Call::IO_URING_ENTER),
        ] {
            let others: Vec<_> = WAITS.iter().copied().filter(|wait| *wait != own).collect();
            assert_eq!(waits(engine), others, "{engine}");
        }
        for engine in [Engine::Epoll, Engine::Asio, Engine::AsioProactor] {
            assert!(waits(engine).iter().all(|wait| !EPOLL.contains(wait)), "{engine}");
        }
    }

    #[test]
    fn libevent_waits_by_its_method_alone() {
        let plan = Plan::new(Engine::Libevent, None, Some(1), Sender::Auto, None, Bounds::default());
        let plan = plan.and_then(|plan| plan.with_method(Method::Poll, None)).expect("the plan is legal");
        let others = plan.others_waits();
        assert!(!others.contains(&Call::POLL) && others.contains(&Call::EPOLL_WAIT), "{others:?}");
    }
}
