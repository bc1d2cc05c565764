//! `/v1/session` and `/v1/dashboard/links`.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sterna_api::{CreateDashboardLink, DashboardLink, Error, OpenSession, Role, Session};
use sterna_os::lock;

use super::extract::Body;
use super::loopback::{COOKIE_NAME, listen, token};
use super::{Answer, Refusal};
use crate::Server;
use crate::access::{Caller, LINK_VALID};

/// The session that asks.
#[utoipa::path(
    get, path = "/v1/session", tag = "status", operation_id = "show_session",
    responses((status = 200, body = Session), (status = "default", body = Error)),
)]
pub(super) async fn show(caller: Caller) -> Json<Session> {
    Json(view(&caller))
}

/// Opens a session with a link that works once. The answer's cookie has its token.
#[utoipa::path(
    post, path = "/v1/session", tag = "status", operation_id = "open_session",
    request_body = OpenSession,
    responses((status = 200, body = Session), (status = "default", body = Error)),
)]
pub(super) async fn open(
    State(server): State<Arc<Server>>,
    Body(request): Body<OpenSession>,
) -> Result<Response, Refusal> {
    let now = Instant::now();
    let Some(allowed) = lock(&server.dashboard.links).take(&request.link, now) else {
        let error = Error::invalid("the link has been used, or is too old")
            .hint("ask for a new link: `sterna dashboard`");
        return Ok((StatusCode::UNAUTHORIZED, Json(error)).into_response());
    };
    let (token, open) = lock(&server.dashboard.sessions).open(allowed, now)?;
    tracing::info!(user = open.user, role = ?open.role, "dashboard session opened");
    let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
    Ok(([(SET_COOKIE, cookie)], Json(view(&Caller::Browser(open)))).into_response())
}

/// Ends the session that asks. Answers with what it was.
#[utoipa::path(
    delete, path = "/v1/session", tag = "status", operation_id = "end_session",
    responses((status = 200, body = Session), (status = "default", body = Error)),
)]
pub(super) async fn end(
    State(server): State<Arc<Server>>,
    caller: Caller,
    headers: HeaderMap,
) -> Response {
    if let Some(token) = token(&headers) {
        lock(&server.dashboard.sessions).end(token);
    }
    let cookie = format!("{COOKIE_NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    ([(SET_COOKIE, cookie)], Json(view(&caller))).into_response()
}

/// Makes a link to the dashboard that works once. Only the unix socket gives links.
#[utoipa::path(
    post, path = "/v1/dashboard/links", tag = "status",
    operation_id = "create_dashboard_link",
    request_body = CreateDashboardLink,
    responses((status = 200, body = DashboardLink), (status = "default", body = Error)),
)]
pub(super) async fn link(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Body(request): Body<CreateDashboardLink>,
) -> Answer<DashboardLink> {
    if let Caller::Browser(_) = caller {
        let error = Error::invalid("the dashboard gives no links to itself");
        return Err(error.hint("on the host: `sterna dashboard`").into());
    }
    let address = listen(&server, None)?;
    let made = lock(&server.dashboard.links).make(
        request.role,
        caller.name(),
        Instant::now(),
    )?;
    let url = format!("http://{address}/#link={made}");
    Ok(Json(DashboardLink { url, expires_s: LINK_VALID.as_secs() }))
}

fn view(caller: &Caller) -> Session {
    let expires_s = match caller {
        Caller::Local(_) => None,
        Caller::Browser(open) => {
            Some(open.until.saturating_duration_since(Instant::now()).as_secs())
        }
    };
    let user = match caller {
        Caller::Local(_) => caller.name(),
        Caller::Browser(open) => open.user.clone(),
    };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let role: Role = caller.role();
    Session { role, user, host, expires_s }
}
