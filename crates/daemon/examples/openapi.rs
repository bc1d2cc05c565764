//! Prints the API's OpenAPI document, to write `openapi/sterna.json` anew.
#![forbid(unsafe_code)]

fn main() {
    print!("{}", sterna_daemon::openapi_document());
}
