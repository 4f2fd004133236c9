//! HTTPS to the authority, sequential and bounded in time and size.
//!
//! The calls block, because the process does nothing else. Only the library's interface is asynchronous.

use std::cell::Cell;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tenfold_http::clock::parse_date;
use ureq::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::error::AcmeError;
use crate::certificates::roots::trusted;
use crate::config::provider;

/// The bound of a request and its response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of a response; a long chain has 20 KB.
const MAX_RESPONSE: u64 = 1 << 20;

/// The most seconds that an authority can demand to wait.
const MAX_WAIT: u64 = 86_400;

/// A client over blocking sockets.
pub(super) struct HttpsTransport {
    agent: Agent,
}

impl HttpsTransport {
    /// Returns a client that trusts the certificates in `roots`, or the system's.
    pub(super) fn new(roots: Option<&Path>) -> Result<HttpsTransport, AcmeError> {
        let trusted = trusted(roots).map_err(AcmeError::at("trust the authority"))?;
        let trusted: Vec<Certificate<'static>> =
            trusted.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(trusted)))
            .unversioned_rustls_crypto_provider(provider())
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Ok(HttpsTransport { agent: config.new_agent() })
    }
}

impl HttpClient for HttpsTransport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let agent = self.agent.clone();
        Box::pin(async move {
            // The calls block, so this is the only point at which an attempt can time out.
            tokio::task::yield_now().await;
            let (parts, body) = request.into_parts();
            // The library can collect the bytes of responses, but not of requests.
            let mut body = BytesResponse::from(Response::new(body)).body;
            let body = body.into_bytes().await.map_err(Error::Other)?;
            let answer = match parts.method {
                Method::POST => agent.run(Request::from_parts(parts, body.to_vec())),
                _ => agent.run(Request::from_parts(parts, ())),
            };
            received(answer)
        })
    }
}

fn received(answer: Result<Response<Body>, ureq::Error>) -> Result<BytesResponse, Error> {
    let other = |error: ureq::Error| Error::Other(Box::new(error));
    let (mut parts, mut body) = answer.map_err(other)?.into_parts();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    limit_wait(&mut parts.headers, now.as_secs());
    if matches!(parts.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        DEMANDED.set(seconds(&parts.headers));
    }
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.split(';').next().is_some_and(|kind| kind.trim_end().ends_with("json")))
    });
    if (parts.status.is_client_error() || parts.status.is_server_error()) && !is_json {
        // The library would report that the page is not JSON.
        return Err(Error::Other(format!("the response is {}, without a reason", parts.status).into()));
    }
    let bytes = body.with_config().limit(MAX_RESPONSE).read_to_vec().map_err(other)?;
    Ok(BytesResponse { parts, body: Box::new(Bytes::from(bytes)) })
}

thread_local! {
    /// The seconds that the last refusal demanded to wait. The requests of a client are sequential, on its thread.
    static DEMANDED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the wait that the authority demanded since the last call, by `Retry-After` of a 429 or 503; zero: none.
pub(super) fn take_demanded_wait() -> Duration {
    Duration::from_secs(DEMANDED.take())
}

/// The seconds of `Retry-After`, after [`limit_wait`]; 0 without the field.
fn seconds(headers: &HeaderMap) -> u64 {
    let value = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Limits the wait that an authority demands at `now`, and makes a date (RFC 9110 §10.2.3) a number of seconds. The
/// library adds the wait to the time, which could overflow.
fn limit_wait(headers: &mut HeaderMap, now: u64) {
    let Some(value) = headers.get(RETRY_AFTER) else { return };
    let value = value.as_bytes().trim_ascii();
    // The library also accepts a sign.
    let digits = value.strip_prefix(b"+").unwrap_or(value);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let seconds = match is_number {
        true => std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).or(Some(u64::MAX)),
        false => parse_date(value).map(|until| until.saturating_sub(now)),
    };
    if let Some(seconds) = seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds.min(MAX_WAIT)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each request fails immediately, and the library may make any number of them.
    #[test]
    fn the_bound_of_an_attempt_ends_an_endless_sequence_of_requests() {
        let file = std::env::temp_dir().join(format!("tenfold-roots-{}.pem", std::process::id()));
        let root = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("legal");
        std::fs::write(&file, root.cert.pem()).expect("a temporary file can be made");
        let transport = HttpsTransport::new(Some(&file)).expect("it has a certificate");
        std::fs::remove_file(&file).expect("it was made");
        let endless = async {
            loop {
                let request = Request::get("https://127.0.0.1:1/").body(BodyWrapper::from(Vec::new()));
                assert!(transport.request(request.expect("legal")).await.is_err(), "nothing listens");
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a clock");
        let ended =
            runtime.block_on(async { tokio::time::timeout(Duration::from_millis(50), endless).await });
        assert!(ended.is_err(), "the attempt did not time out");
    }

    #[test]
    fn a_refusal_without_json_names_its_status_and_its_wait() {
        let answer = |status: u16, kind: &str, wait: &str| {
            let response = Response::builder().status(status).header(CONTENT_TYPE, kind);
            let response = response.header(RETRY_AFTER, wait).body(Body::builder().data("<html>"));
            let failed = received(Ok(response.expect("legal"))).err().map(|error| error.to_string());
            (failed, take_demanded_wait().as_secs())
        };
        let (failed, wait) = answer(503, "text/html", "120");
        assert!(failed.is_some_and(|why| why.contains("503 Service Unavailable, without a reason")));
        assert_eq!((wait, take_demanded_wait()), (120, Duration::ZERO));
        assert_eq!(answer(429, "application/problem+json; charset=utf-8", "7"), (None, 7));
        let last = "Fri, 31 Dec 9999 23:59:59 GMT";
        assert_eq!(answer(429, "application/problem+json", last), (None, MAX_WAIT));
        assert_eq!(answer(429, "application/problem+json", "tomorrow"), (None, 0));
        assert_eq!(answer(200, "text/html", "7"), (None, 0));
    }

    #[test]
    fn a_wait_that_no_clock_can_express_is_a_day() {
        for (sent, expected) in [
            ("5", "5"),
            ("86400", "86400"),
            ("86401", "86400"),
            ("18446744073709551615", "86400"),
            ("99999999999999999999", "86400"),
            (" 18446744073709551615 ", "86400"),
            ("+18446744073709551615", "86400"),
            ("Fri, 31 Dec 9999 23:59:59 GMT", "86400"),
            ("Sun, 06 Nov 1994 08:51:37 GMT", "120"),
            (" Sunday, 06-Nov-94 08:51:37 GMT", "120"),
            ("Sun Nov  6 08:49:36 1994", "0"),
            ("Sun, 06 Nov 1994 08:51:37", "Sun, 06 Nov 1994 08:51:37"),
            ("", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(sent).expect("a value"));
            limit_wait(&mut headers, 784_111_777);
            assert_eq!(headers[RETRY_AFTER], expected, "{sent}");
        }
        let mut headers = HeaderMap::new();
        limit_wait(&mut headers, 784_111_777);
        assert!(headers.is_empty());
    }
}
