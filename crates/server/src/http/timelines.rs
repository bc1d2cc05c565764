//! `/v1/timelines`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{Error, Timeline};
use utoipa::IntoParams;

use super::extract::Parameters;
use super::{Answer, blocking};
use crate::Server;

/// What to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// `disk:NAME`, `class:NAME`, `datastore:NAME` or `all`.
    of: String,
    /// The first moment, in seconds since 1970; ten minutes before the last unless given.
    from: Option<f64>,
    /// The last moment, in seconds since 1970; now unless given.
    to: Option<f64>,
    /// How many points at most, 1 to 4000.
    #[serde(default = "points")]
    #[param(default = 600, minimum = 1, maximum = 4000)]
    points: usize,
    /// All points in windows of one length, that of the oldest: a percentile then means the
    /// same at each of them.
    #[serde(default)]
    even: bool,
}

fn points() -> usize {
    600
}

/// What a disk, a class or a datastore did over time, up to a day ago. The last ten minutes
/// are known second by second; what is longer ago, in windows of 10 s, 60 s or 15 min. With
/// `even` all windows have one length.
#[utoipa::path(
    get, path = "/v1/timelines", tag = "status", operation_id = "timeline",
    params(Asked),
    responses((status = 200, body = Timeline), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Parameters(asked): Parameters<Asked>,
) -> Answer<Timeline> {
    let Asked { of, from, to, points, even } = asked;
    blocking(server, move |server| server.timeline(&of, [from, to], points, even)).await
}
