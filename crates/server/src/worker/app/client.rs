//! Responses to the client of a request, which is the peer of the connection or of a trusted proxy.

use std::sync::atomic::Ordering;

use tenfold_http::semantics::forwarded::ForwardedClient;
use tenfold_http::{Answer, Connection, Request, ResponseWriter, echo};
use tenfold_site::{Answered, ResponseSummary};

use super::state::{DeferredRequest, SharedService};
use crate::diagnostics::warning;

impl SharedService {
    /// Calls `respond` with the request and the connection as a trusted proxy describes its client's, and with an
    /// identifier of the request if requests have them.
    #[cold]
    pub(super) fn for_client(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        respond: impl FnOnce(&Request<'_>, &Connection) -> Answer,
    ) -> Answer {
        let client = match self.proxies.reads(&connection.peer) {
            true => self.proxies.client(request),
            false => ForwardedClient::default(),
        };
        if client.ambiguous && !self.said_ambiguous.swap(true, Ordering::Relaxed) {
            warning!(
                "X-Forwarded-For and Forwarded of a trusted proxy name different clients: neither is used; name the \
                 field that the proxy sets with forwarded-fields (not said again)"
            );
        }
        let request_id =
            self.request_ids.as_ref().map(|ids| ids.of(request, &connection.peer, &self.proxies));
        let connection = Connection { request_id, ..client.connection(connection) };
        match client.host.and_then(|host| request.with_host(host)) {
            Some(request) => respond(&request, &connection),
            None => respond(request, &connection),
        }
    }

    #[inline]
    pub(super) fn respond(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        #[cfg(feature = "test-layer")]
        crate::sandbox::attempt(request.target.path);
        self.amend(connection, response);
        if self.guarded
            && let Some(answer) = self.guard(request, connection, response)
        {
            return answer;
        }
        let began = self.began();
        match self.hosts.respond(request, response) {
            Answered::Staged(outcome) => {
                self.record(outcome, request, connection, response, began);
                Answer::Done
            }
            Answered::Work(work) => self.work(
                work,
                DeferredRequest {
                    request: request.to_owned(),
                    connection: connection.clone(),
                    began,
                    private: false,
                },
                response,
            ),
        }
    }

    pub(super) fn respond_to_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        self.amend(connection, response);
        if let Some(members) = &self.members
            && let Some(path) = members.path(request)
            && let wanted = members.web.submit(&path, request, body, connection)
            && let Some(answer) = self.member(members, wanted, request, connection, response)
        {
            return answer;
        }
        let began = self.began();
        let body = echo(request, body, response);
        self.record(ResponseSummary::of(200, body), request, connection, response, began);
        Answer::Done
    }
}
