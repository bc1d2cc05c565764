//! Reading requests; what cannot be read is answered in the API's form.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Refusal;
use crate::error::DaemonError;

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| invalid("body", &error.to_string()))?;
        serde_json::from_slice(&bytes)
            .map(Body)
            .map_err(|error| invalid("body", &error.to_string()))
    }
}

/// Parameters behind a `?`.
pub(super) struct Parameters<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let query = query.map_err(|error| invalid("query", &error.body_text()))?;
        Ok(Parameters(query.0))
    }
}

/// The name or number in the path.
pub(super) struct Which<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Which<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        let path = path.map_err(|error| invalid("path", &error.body_text()))?;
        Ok(Which(path.0))
    }
}

fn invalid(part: &str, reason: &str) -> Refusal {
    let error = DaemonError::invalid(format!("the request's {part} is wrong: {reason}"));
    Refusal(error.hint("see /v1/openapi.json"))
}
