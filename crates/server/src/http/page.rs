//! The dashboard's files.

use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sterna_dashboard::{Asset, POLICY, find};

/// A file of the dashboard, for paths that are not the API's; nothing if there is none.
pub(super) fn page(uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    let asset = find(uri.path(), text(ACCEPT_ENCODING).unwrap_or_default())?;
    let etag = etag(&asset);
    if text(IF_NONE_MATCH) == Some(&etag) {
        return Some(StatusCode::NOT_MODIFIED.into_response());
    }
    // The page itself names the files of this version, so it is asked for each time.
    let cache = match asset.is_immutable {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut answer = asset.bytes.into_response();
    let all = answer.headers_mut();
    all.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    all.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    all.insert(VARY, HeaderValue::from_static("accept-encoding"));
    all.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    all.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    all.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(encoding) = asset.encoding {
        all.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        all.insert(ETAG, etag);
    }
    Some(answer)
}

/// Another one for other bytes (FNV-1a; nobody gains by a collision).
fn etag(asset: &Asset) -> String {
    let mix =
        |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = asset.bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    format!("\"{hash:016x}\"")
}
