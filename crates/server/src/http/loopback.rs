//! The dashboard on an address of this host.
//!
//! **Rule.** A browser is no friend: any page that it shows may ask this address. So each
//! request must name this very address as its host (a name that somebody else has made lead
//! here is refused), a change must come from a page of this origin, and all of the API
//! needs a session ([`crate::access`]). The page itself is for everybody: it knows nothing.
//!
//! The listener is made when the daemon is told to (`--dashboard`), or when the first link
//! is asked for.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use sterna_api::{Error, Role};
use sterna_os::lock;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::router;
use super::visitors::serve_at;
use crate::Server;
use crate::access::Caller;

/// The cookie that has a session's token.
pub(super) const COOKIE_NAME: &str = "sterna-session";

/// Requests that ask, although they are no `GET`s: their question has a body. A viewer may
/// make them.
const QUESTIONS: [&str; 2] = ["/v1/predictions", "/v1/storage-drs/recommendations"];

/// The dashboard's listener, if there is one.
#[derive(Debug, Default)]
pub struct Loopback {
    at: Mutex<Option<(SocketAddr, watch::Sender<bool>)>>,
}

impl Loopback {
    /// Closes it.
    pub fn close(&self) {
        if let Some((_, stopping)) = lock(&self.at).take() {
            stopping.send_replace(true);
        }
    }
}

/// Listens for browsers at that address, or at any port, unless it does already. To be
/// called where there is a runtime.
pub fn listen(
    server: &Arc<Server>,
    wanted: Option<SocketAddr>,
) -> sterna_api::Result<SocketAddr> {
    let mut at = lock(&server.dashboard.loopback.at);
    if let Some((address, _)) = *at {
        return Ok(address);
    }
    let wanted = wanted.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
    let failed = |error: io::Error| {
        Error::unavailable(format!("cannot serve the dashboard at {wanted}: {error}"))
            .hint("give `--dashboard` an address that nothing else uses, or port 0")
    };
    let socket = std::net::TcpListener::bind(wanted).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    let listener = TcpListener::from_std(socket).map_err(failed)?;
    let (stopping, stopped) = watch::channel(false);
    let router = guarded(router(server.clone()), server.clone(), address);
    let visitors = server.visitors.clone();
    tokio::spawn(serve_at(listener, router, visitors, stopped));
    *at = Some((address, stopping));
    tracing::info!(%address, "dashboard");
    Ok(address)
}

/// The router, for whoever comes by way of that address.
fn guarded(router: Router, server: Arc<Server>, address: SocketAddr) -> Router {
    router.layer(from_fn_with_state((server, address), check))
}

async fn check(
    State((server, address)): State<(Arc<Server>, SocketAddr)>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let Some(host) = text(headers, &HOST).filter(|host| is_ours(host, address)) else {
        return refuse(StatusCode::MISDIRECTED_REQUEST, "this address has another name");
    };
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = format!("http://{host}");
    if changes && text(headers, &ORIGIN) != Some(&origin) {
        return refuse(StatusCode::FORBIDDEN, "the request comes from another page");
    }
    let path = request.uri().path();
    let is_open = !path.starts_with("/v1/")
        || path == "/v1/session" && *request.method() == Method::POST;
    if is_open {
        return next.run(request).await;
    }
    let Some(open) = session(&server, headers) else {
        return refuse(StatusCode::UNAUTHORIZED, "there is no session");
    };
    let may = !changes || open.role == Role::Operator || QUESTIONS.contains(&path);
    if !may && path != "/v1/session" {
        return refuse(StatusCode::FORBIDDEN, "a viewer changes nothing");
    }
    request.extensions_mut().insert(Caller::Browser(open));
    next.run(request).await
}

fn text<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether this is a name of the address, with its port.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let port = address.port();
    host == address.to_string() || host == format!("localhost:{port}")
}

/// The session that a request is of.
fn session(server: &Server, headers: &HeaderMap) -> Option<crate::access::Open> {
    let token = token(headers)?;
    lock(&server.dashboard.sessions).find(token, Instant::now())
}

/// The token of a session, if the request has one.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let cookies = text(headers, &COOKIE)?.split(';');
    let mut pairs = cookies.filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, token)| token)
}

fn refuse(status: StatusCode, why: &str) -> Response {
    let hint = "ask for a new link: `sterna dashboard`";
    (status, Json(Error::invalid(why).hint(hint))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_address_itself_or_localhost() {
        let address = "127.0.0.1:8443".parse().unwrap();
        assert!(is_ours("127.0.0.1:8443", address) && is_ours("localhost:8443", address));
        for other in ["evil.example", "evil.example:8443", "127.0.0.1", "127.0.0.1:1"] {
            assert!(!is_ours(other, address), "{other}");
        }
        assert!(is_ours("[::1]:8443", "[::1]:8443".parse().unwrap()));
    }

    #[test]
    fn the_token_is_found_among_other_cookies() {
        let mut headers = HeaderMap::new();
        assert_eq!(token(&headers), None);
        headers.insert(COOKIE, "a=b; sterna-session=12; c=d".parse().unwrap());
        assert_eq!(token(&headers), Some("12"));
    }
}
