//! The OpenAPI document: what the handlers say of themselves, and what they leave out.
//!
//! A handler names the type of its answer, which has its own description. OpenAPI wants one
//! of each response as well; they are all alike, and are said here.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

/// What a success is.
const DONE: &str = "Sterna has carried out the request; this is the answer.";

/// What everything else is.
const REFUSED: &str = "The request was refused, or has failed: `message` says what \
                       happened, `hint` what to do next.";

/// Completes the document.
pub(super) fn completed(mut document: OpenApi) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            describe(operation);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all =
        [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
    all.into_iter().flatten()
}

fn describe(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = if status == "200" { DONE } else { REFUSED }.into();
        }
    }
}
