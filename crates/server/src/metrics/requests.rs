//! Requests of the API, counted by the path that they were for and the status they got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use sterna_os::lock;

use crate::Server;

/// What requests count as that were for no path there is: a stranger's guesses would be
/// rows without end.
const NO_ROUTE: &str = "none";

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<(String, u16), u64>>);

impl Requests {
    fn count(&self, route: &str, code: u16) {
        *lock(&self.0).entry((route.to_owned(), code)).or_default() += 1;
    }

    /// All counts: by the path as the API's document has it, and the status.
    pub(super) fn all(&self) -> Vec<((String, u16), u64)> {
        lock(&self.0).iter().map(|(of, many)| (of.clone(), *many)).collect()
    }
}

/// Counts a request when it has been answered.
pub(crate) async fn count(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answer = next.run(request).await;
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    server.metrics.requests.count(route, answer.status().as_u16());
    answer
}
