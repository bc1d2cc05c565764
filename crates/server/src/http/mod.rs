//! The API over HTTP: parse, call the daemon, convert. No decisions here.
//!
//! The daemon's calls block (they wait for disks), so each request is carried
//! out on a thread that may. The OpenAPI document is made from the handlers and
//! the API's types; the copy in the repository is held to it by a test.

mod activity;
mod advice;
mod by_name;
mod changes;
mod classes;
mod datastores;
mod disks;
mod document;
mod drs;
mod events;
mod extract;
mod hosts;
mod loopback;
mod memory;
mod metrics;
mod migrations;
mod page;
mod plans;
mod policies;
mod pools;
mod predictions;
mod rules;
mod sessions;
mod status;
mod storage_drs;
mod timelines;
mod top;
mod transfers;
mod visitors;
mod vms;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sterna_api::{Error, ErrorCode, Hello, Tick};
use sterna_state::Waiting;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::document::completed;
pub use self::loopback::{Loopback, listen};
pub use self::visitors::{Visitors, serve};
use crate::Server;
use crate::metrics::requests;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sterna",
        description = "Moves disks of running VMs between storage systems. Served on a \
                       unix socket. Sizes are bytes, rates bytes per second, moments \
                       seconds since 1970 (UTC).",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    // What `/v1/events` says besides what other requests answer with.
    components(schemas(Hello, Tick)),
    tags(
        (name = "datastores", description = "Datastores: places that hold disk images"),
        (name = "disks", description = "Virtual disks"),
        (name = "migrations", description = "Moves of disks between datastores"),
        (name = "plans", description = "Moves of many disks, in waves"),
        (name = "classes", description = "Service classes of disks"),
        (name = "policies", description = "Limits, cruise controls and queue depths of \
                                           classes"),
        (name = "vms", description = "Virtual machines whose disks QEMU serves itself"),
        (name = "hosts", description = "Where virtual machines run, and should run"),
        (name = "memory", description = "Memory of virtual machines, and swap"),
        (name = "status", description = "The daemon itself"),
    )
)]
struct Document;

fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(status::show))
        .routes(routes!(status::tasks))
        .routes(routes!(top::show))
        .routes(routes!(timelines::show))
        .routes(routes!(events::show))
        .routes(routes!(activity::list))
        .routes(routes!(sessions::show, sessions::open, sessions::end))
        .routes(routes!(sessions::link))
        .routes(routes!(metrics::show))
        .merge(memory::routes())
        .routes(routes!(datastores::list, datastores::add))
        .routes(routes!(datastores::show, datastores::remove))
        .routes(routes!(datastores::probed))
        .routes(routes!(datastores::maintenance))
        .routes(routes!(datastores::images))
        .routes(routes!(datastores::remove_image))
        .routes(routes!(disks::list, disks::create))
        .routes(routes!(disks::import))
        .routes(routes!(disks::recover))
        .routes(routes!(disks::show, disks::remove))
        .routes(routes!(disks::stats))
        .routes(routes!(disks::usual))
        .routes(routes!(disks::hours))
        .routes(routes!(disks::attach, disks::detach))
        .routes(routes!(predictions::predict))
        .routes(routes!(storage_drs::show, storage_drs::change))
        .routes(routes!(storage_drs::recommend))
        .routes(routes!(advice::show))
        .routes(routes!(storage_drs::rules, storage_drs::add_rule))
        .routes(routes!(storage_drs::remove_rule))
        .routes(routes!(migrations::list, migrations::start))
        .routes(routes!(migrations::show, migrations::change))
        .routes(routes!(migrations::guard))
        .routes(routes!(migrations::pause))
        .routes(routes!(migrations::resume))
        .routes(routes!(migrations::cancel))
        .routes(routes!(plans::list, plans::evacuate))
        .routes(routes!(plans::show, plans::remove))
        .routes(routes!(plans::apply))
        .routes(routes!(plans::pause))
        .routes(routes!(plans::resume))
        .routes(routes!(plans::cancel))
        .routes(routes!(classes::list, classes::create))
        .routes(routes!(classes::show, classes::change, classes::delete))
        .routes(routes!(classes::explain))
        .routes(routes!(classes::kept))
        .routes(routes!(policies::list, policies::create))
        .routes(routes!(policies::show, policies::remove))
        .routes(routes!(vms::list, vms::add))
        .routes(routes!(vms::names))
        .routes(routes!(vms::show, vms::remove))
        .routes(routes!(vms::start_move))
        .routes(routes!(vms::adopt))
        .routes(routes!(vms::release))
        .routes(routes!(hosts::list, hosts::add))
        .routes(routes!(hosts::show, hosts::remove))
        .routes(routes!(hosts::program))
        .routes(routes!(hosts::place))
        .routes(routes!(pools::list, pools::create))
        .routes(routes!(pools::show, pools::change, pools::delete))
        .routes(routes!(rules::list, rules::add))
        .routes(routes!(rules::remove))
        .routes(routes!(drs::show, drs::change))
        .routes(routes!(drs::recommend))
        .routes(routes!(drs::explain))
        .merge(transfers::routes())
}

/// The OpenAPI document, as it is kept in `openapi/sterna.json`.
pub fn openapi_document() -> String {
    let (_, document) = routes().split_for_parts();
    let text = completed(document).to_pretty_json().expect("the document is plain data");
    format!("{text}\n")
}

/// Everything that the API's socket serves.
pub fn router(server: Arc<Server>) -> Router {
    let (router, document) = routes().split_for_parts();
    // As text: with each request, a router copies what its handlers have.
    let document = completed(document).to_json().expect("the document is plain data");
    let document: Arc<str> = document.into();
    let json = [(CONTENT_TYPE, "application/json")];
    router
        .route("/v1/openapi.json", get(async move || (json, document.to_string())))
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(server.clone(), activity::enter))
        .layer(from_fn_with_state(server.clone(), requests::count))
        .layer(DefaultBodyLimit::max(BODY_MOST))
        .with_state(server)
}

/// The largest body in bytes: a plan for some ten thousand disks.
const BODY_MOST: usize = 2 << 20;

/// The path is there, and cannot be asked like that. What it can be asked is in the
/// `Allow` that the router adds.
async fn not_so(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let error = Error::invalid(format!("the API does not accept {method} at this path"));
    let body = error.hint("see the answer's `Allow`, and /v1/openapi.json");
    (StatusCode::METHOD_NOT_ALLOWED, Json(body)).into_response()
}

async fn nothing_there(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    // With a slash too many, too, a script is not to get a page with status 200.
    let is_api = uri.path().trim_start_matches('/').starts_with("v1/");
    let is_page = method == Method::GET && !is_api;
    if let Some(page) = is_page.then(|| page::page(&uri, &headers)).flatten() {
        return page;
    }
    let error = Error::new(ErrorCode::NotFound, "the API has no such path");
    Refusal(error.hint("see /v1/openapi.json")).into_response()
}

/// The most of a message, in characters: with all that a client may send in a name or a path,
/// quoted, it would be a page of nothing.
const MESSAGE_MOST: usize = 8 << 10;

/// An error on its way out.
struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.0.code {
            ErrorCode::Invalid => StatusCode::BAD_REQUEST,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::Exists
            | ErrorCode::InUse
            | ErrorCode::Cancelled
            | ErrorCode::Paused
            | ErrorCode::Interrupted
            | ErrorCode::Unmet => StatusCode::CONFLICT,
            ErrorCode::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
            ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut error = self.0;
        for text in [&mut error.message, &mut error.hint] {
            if let Some((end, _)) = text.char_indices().nth(MESSAGE_MOST) {
                text.truncate(end);
                text.push('\u{2026}');
            }
        }
        (status, Json(error)).into_response()
    }
}

/// What a handler gives.
type Answer<T> = Result<Json<T>, Refusal>;

/// Carries out what may block, on a thread that may. A state directory that stands still
/// holds what touches it, so nobody waits for the answer any longer then.
async fn blocking<T: Send + 'static>(
    server: Arc<Server>,
    work: impl FnOnce(&Arc<Server>) -> sterna_api::Result<T> + Send + 'static,
) -> Answer<T> {
    if let Some(silent) = state_is_silent(&server) {
        return Err(silent.hint(STATE_HANGS).into());
    }
    let (mine, waits) = (Arc::clone(&server), Waiting::default());
    let watch = waits.clone();
    let mut done = changes::on_a_thread(move || watch.watch(|| work(&mine)));
    loop {
        let Ok(done) = tokio::time::timeout(STATE_LOOK, &mut done).await else {
            let silent = state_is_silent(&server).filter(|_| waits.is_so());
            let Some(silent) = silent else { continue };
            let hint = format!(
                "{STATE_HANGS}; the daemon may then carry out a requested change"
            );
            return Err(silent.hint(hint).into());
        };
        let failed = |error| Error::internal(format!("the request failed: {error}"));
        return Ok(Json(done.map_err(failed)??));
    }
}

/// The refusal of everything, while the state directory does not answer.
fn state_is_silent(server: &Server) -> Option<Error> {
    let silent = server.storage.store.silent_for();
    (silent >= STATE_WITHIN).then(|| {
        Error::unavailable(format!(
            "the state directory {} has not answered for {} s",
            server.storage.places.state.display(),
            silent.as_secs()
        ))
    })
}

/// How long the state directory may take for one change. A disk that is busy takes some
/// seconds, and no script is to fail for that; whoever asks is told something within the time
/// after which people give up.
const STATE_WITHIN: Duration = Duration::from_secs(8);
/// How often it is looked at while somebody waits.
const STATE_LOOK: Duration = Duration::from_millis(500);
/// What to do about it.
const STATE_HANGS: &str = "Sterna still serves all disks; check whether the file system \
                           of the state directory is frozen (fsfreeze) or its device \
                           hangs, and ask again when it answers";
