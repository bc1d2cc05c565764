//! The OpenAPI document in the repository is the one that the code makes.

use std::path::Path;

#[test]
fn the_committed_document_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/sterna.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == sterna_daemon::openapi_document(),
        "openapi/sterna.json has drifted; write it anew: \
         cargo run -p sterna-daemon --example openapi > openapi/sterna.json"
    );
}
