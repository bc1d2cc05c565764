//! `/v1/predictions`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, Predict, Prediction};

use super::extract::Body;
use super::{Answer, blocking};
use crate::Server;

/// Predicts the time of a move. Changes nothing.
#[utoipa::path(
    post, path = "/v1/predictions", tag = "migrations", operation_id = "predict",
    request_body = Predict,
    responses((status = 200, body = Prediction), (status = "default", body = Error)),
)]
pub(super) async fn predict(
    State(server): State<Arc<Server>>,
    Body(request): Body<Predict>,
) -> Answer<Prediction> {
    blocking(server, move |server| server.moves.predict(&request)).await
}
