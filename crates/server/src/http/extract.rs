//! Reading requests; what cannot be read is answered in the API's form.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sterna_api::{Error, is_printable};

use super::by_name::from_json;
use super::{BODY_MOST, Refusal};

/// How long a body may take: a client on the same machine takes a moment.
const BODY: Duration = Duration::from_secs(30);

/// A JSON body: an object, without control characters in anything that it says.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = BadBody;

    async fn from_request(request: Request, state: &S) -> Result<Self, BadBody> {
        let bytes = all_of(request, state).await?;
        Ok(Body(read(&bytes)?))
    }
}

/// The same, where nothing at all means what is usual.
pub(super) struct MaybeBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for MaybeBody<T> {
    type Rejection = BadBody;

    async fn from_request(request: Request, state: &S) -> Result<Self, BadBody> {
        let bytes = all_of(request, state).await?;
        if matches!(bytes.trim_ascii(), b"" | b"null") {
            return Ok(MaybeBody(T::default()));
        }
        Ok(MaybeBody(read(&bytes)?))
    }
}

/// All of a request's body, in time.
pub(super) async fn bytes_of(request: Request) -> Result<Bytes, BadBody> {
    all_of(request, &()).await
}

async fn all_of<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, BadBody> {
    let bytes = Bytes::from_request(request, state);
    let Ok(bytes) = tokio::time::timeout(BODY, bytes).await else {
        let why = format!("it did not arrive within {} s", BODY.as_secs());
        return Err(invalid("body", &why).into());
    };
    bytes.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => BadBody::TooLarge,
        _ => invalid("body", &error.body_text()).into(),
    })
}

/// Why a body is not taken.
pub(super) enum BadBody {
    /// It is larger than [`BODY_MOST`].
    TooLarge,
    /// It is wrong.
    Refused(Refusal),
}

impl From<Refusal> for BadBody {
    fn from(refusal: Refusal) -> Self {
        BadBody::Refused(refusal)
    }
}

impl IntoResponse for BadBody {
    fn into_response(self) -> Response {
        match self {
            BadBody::TooLarge => {
                let most = BODY_MOST >> 20;
                let refusal = invalid("body", &format!("it is larger than {most} MiB"));
                (StatusCode::PAYLOAD_TOO_LARGE, Json(refusal.0)).into_response()
            }
            BadBody::Refused(refusal) => refusal.into_response(),
        }
    }
}

/// What a body says. Names and paths with control characters would break everything that
/// shows them, line by line or on a terminal.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let wrong = |error: serde_json::Error| invalid("body", &error.to_string());
    let value: Value = serde_json::from_slice(bytes).map_err(wrong)?;
    if !value.is_object() {
        return Err(invalid("body", "it is not a JSON object"));
    }
    if let Some(text) = unprintable(&value) {
        let error = Error::invalid(format!("{text:?} has control characters"));
        return Err(Refusal(error.hint("choose a name or a path without them")));
    }
    // From the text, so that what is wrong is said with its line and column.
    from_json(bytes).map_err(wrong)
}

/// Something that it says, or a key, that has control characters.
fn unprintable(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => (!is_printable(text)).then_some(text),
        Value::Array(all) => all.iter().find_map(unprintable),
        Value::Object(all) => all.iter().find_map(|(key, value)| {
            if is_printable(key) { unprintable(value) } else { Some(key) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
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
    let error = Error::invalid(format!("the request's {part} is wrong: {reason}"));
    Refusal(error.hint("see /v1/openapi.json"))
}

#[cfg(test)]
mod tests {
    use sterna_api::AddDatastore;

    use super::*;

    fn said(text: &str) -> String {
        let read = read::<AddDatastore>(text.as_bytes());
        read.map_or_else(|Refusal(error)| error.message, |_| "ok".into())
    }

    #[test]
    fn a_body_is_an_object() {
        assert_eq!(said(r#"{"name": "a", "location": "/a"}"#), "ok");
        for other in [r#"["a", "/a", null]"#, "null", "1", r#""a""#] {
            let whole = "the request's body is wrong: it is not a JSON object";
            assert_eq!(said(other), whole);
        }
        let wrong = said("{\"name\": \"a\",\n \"where\": \"/a\"}");
        assert!(wrong.contains("unknown field `where`") && wrong.contains("line 2"));
    }

    #[test]
    fn no_name_and_no_path_has_control_characters() {
        let escape = r#"{"name": "a", "location": "/a\u001b[31m"}"#;
        assert_eq!(said(escape), r#""/a\u{1b}[31m" has control characters"#);
        assert!(said(r#"{"name": "a", "location": "/a\nb"}"#).contains("control"));
        assert!(said(r#"{"na\nme": "a"}"#).contains("control"));
    }
}
