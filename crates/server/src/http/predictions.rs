//! `/v1/predictions`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sterna_api::{Error, ErrorCode, MIGRATION_CLASS, Predict, Prediction};
use utoipa::IntoParams;

use super::extract::{Body, Parameters};
use super::{Refusal, blocking};
use crate::Server;

/// How to answer.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Manner {
    /// If nothing can be predicted yet, the answer has the status 202 and says why: a browser
    /// reports each failure, and this is none.
    #[serde(default)]
    or_why: bool,
}

/// Predicts the time of a move. Changes nothing.
#[utoipa::path(
    post, path = "/v1/predictions", tag = "migrations", operation_id = "predict",
    params(Manner), request_body = Predict,
    responses(
        (status = 200, body = Prediction),
        (status = 202, description = "Nothing can be predicted yet; asked with `or_why`.",
         body = Error),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn predict(
    State(server): State<Arc<Server>>,
    Parameters(Manner { or_why }): Parameters<Manner>,
    Body(request): Body<Predict>,
) -> Response {
    let predict = move |server: &Arc<Server>| {
        let copies = server.levels.most_bytes(MIGRATION_CLASS);
        server.moves.predict(&request, copies)
    };
    match blocking(server, predict).await {
        Err(Refusal(why)) if or_why && why.code == ErrorCode::Unavailable => {
            (StatusCode::ACCEPTED, Json(why)).into_response()
        }
        answer => answer.into_response(),
    }
}
