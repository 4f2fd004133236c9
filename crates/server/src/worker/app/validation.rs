//! Requests of an authority that validates names (RFC 8555 §8.3).

use tenfold_http::{Connection, Method, Request, ResponseWriter, echo};
use tenfold_site::ResponseSummary;
use tenfold_tls::challenges::HTTP_PREFIX;

use super::state::SharedService;

impl SharedService {
    /// Responds if the request is for the response to a challenge. Other paths of the folder are the site's.
    pub(super) fn validate(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> bool {
        let Some(board) = &self.challenges else { return false };
        let asked = request.target.path.strip_prefix(HTTP_PREFIX);
        let is_get = matches!(request.method, Method::Get | Method::Head);
        let body = asked.filter(|_| is_get).and_then(|token| board.http_response(token));
        let Some(body) = body else { return false };
        let sent = echo(request, body.as_bytes(), response);
        self.record(ResponseSummary::of(200, sent), request, connection, response, None);
        true
    }
}
