//! `/v1/activity`, and the entries that requests leave there.

use std::sync::{Arc, LazyLock};

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use sterna_api::{Activities, COMMAND, Error, decode_command};
use sterna_os::clock::now_ms;
use sterna_state::Wanted;
use utoipa::IntoParams;

use super::extract::{Parameters, bytes_of};
use super::{Answer, blocking, routes};
use crate::Server;
use crate::access::Caller;
use crate::activity::{self, Outcome};

/// The most of a refusal that is read for its reason, in bytes.
const REFUSAL_MOST: usize = 64 << 10;

/// Operations that change nothing, or that programs do all the time: no entries.
const QUIET: [&str; 6] = [
    "predict",
    "recommend",
    "probed",
    "open_session",
    "end_session",
    "create_dashboard_link",
];

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// So many at most, up to 5000.
    #[serde(default = "limit")]
    #[param(default = 200, maximum = 5000)]
    limit: usize,
    /// Only those before this number.
    before: Option<u64>,
    /// Only those about this: `disk:db`, `datastore:fast`, `migration:4`. There are the
    /// kinds disk, datastore, migration, plan, class, policy, vm, host, pool and rule.
    of: Option<String>,
    /// Only those since this moment (seconds since 1970).
    from: Option<f64>,
    /// Only those before this moment (seconds since 1970).
    to: Option<f64>,
}

fn limit() -> usize {
    200
}

/// What was done, by whom, and what the daemon decided, the latest first. Entries are kept
/// for a year.
#[utoipa::path(
    get, path = "/v1/activity", tag = "status", operation_id = "list_activity",
    params(Asked),
    responses((status = 200, body = Activities), (status = "default", body = Error)),
)]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Parameters(asked): Parameters<Asked>,
) -> Answer<Activities> {
    let millis = |seconds: f64| (seconds.max(0.0) * 1e3) as u64;
    let wanted = Wanted {
        before: asked.before,
        about: asked.of.as_deref().map(activity::about).transpose()?,
        from_ms: asked.from.map(millis),
        to_ms: asked.to.map(millis),
        limit: asked.limit,
        ..Wanted::default()
    };
    blocking(server, move |server| server.activities(wanted)).await
}

/// What the document calls each operation, by method and path.
pub(super) static OPERATIONS: LazyLock<Vec<(Method, String, String)>> =
    LazyLock::new(|| {
        let (_, document) = routes().split_for_parts();
        let mut all = Vec::new();
        for (path, item) in document.paths.paths {
            let of = [
                (Method::POST, item.post),
                (Method::PUT, item.put),
                (Method::PATCH, item.patch),
                (Method::DELETE, item.delete),
            ];
            for (method, operation) in of {
                let name = operation.and_then(|operation| operation.operation_id);
                all.extend(name.map(|name| (method, path.clone(), name)));
            }
        }
        all
    });

/// Enters a request that changes something, with how it was answered.
pub(super) async fn enter(
    State(server): State<Arc<Server>>,
    path: Option<MatchedPath>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    let matched = path.as_ref().map(MatchedPath::as_str);
    let known = OPERATIONS.iter().find(|(method, path, _)| {
        method == request.method() && Some(path.as_str()) == matched
    });
    let operation = known.map(|(_, _, name)| name.clone());
    let Some(operation) = operation.filter(|name| !QUIET.contains(&&**name)) else {
        return next.run(request).await;
    };
    let (head, body) = request.into_parts();
    let body = match bytes_of(Request::new(body)).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    let asked = activity::Asked {
        who: caller.name(),
        operation,
        path: head.uri.path().into(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        command: command(&head.headers),
    };
    let answer = next.run(Request::from_parts(head, Body::from(body))).await;
    if asked.is_rehearsal() {
        return answer;
    }
    if answer.status().is_success() {
        server.activity.enter(asked.entry(now_ms(), Outcome::Done));
        return answer;
    }
    let (head, body) = answer.into_parts();
    let Ok(body) = to_bytes(body, REFUSAL_MOST).await else {
        return Response::from_parts(head, Body::empty());
    };
    let why = serde_json::from_slice::<Error>(&body)
        .map_or_else(|_| head.status.to_string(), |error| error.message);
    let outcome = match head.status.is_server_error() {
        true => Outcome::Failed(&why),
        false => Outcome::Refused(&why),
    };
    server.activity.enter(asked.entry(now_ms(), outcome));
    Response::from_parts(head, Body::from(body))
}

/// The command that the client says.
fn command(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(COMMAND)?.to_str().ok()?;
    Some(decode_command(text))
}
