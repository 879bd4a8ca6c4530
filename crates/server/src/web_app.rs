//! Serves the web app: one HTML document for all its routes, its assets below `/app`, and a
//! Content-Security-Policy that allows no other scripts.

use crate::App;
use crate::http::problem::Problem;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parlor_model::Caller;
use parlor_model::query::NeedsSetup;
use parlor_web_assets::Asset;
use std::borrow::Cow;
use std::sync::Arc;

/// Path prefix of files whose names contain a hash of their content.
const HASHED: &str = "assets/";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// Browsers revalidate the file each time and get 304 while it is unchanged.
const REVALIDATE: &str = "no-cache";

/// Content-Security-Policy: scripts, styles and connections from this origin only, and no text can become a
/// script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub async fn home(headers: HeaderMap) -> Response {
    document(&headers)
}

/// Setup page; 404 once the first admin exists.
pub async fn setup(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    if app.hub.read(&Caller::ANONYMOUS, NeedsSetup).await? {
        return Ok(document(&headers));
    }
    Err(Problem::Status(StatusCode::NOT_FOUND, "This hub is already set up"))
}

/// Serves an asset of the web app, or else its HTML document: the client-side router resolves all other
/// paths.
pub async fn app(Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match parlor_web_assets::find(&format!("app/{path}")) {
        Some(asset) => {
            let caching = if path.starts_with(HASHED) { IMMUTABLE } else { REVALIDATE };
            Ok(asset_response(asset, content_type(&path), caching, &headers))
        }
        None if path.starts_with(HASHED) => Err(Problem::Status(StatusCode::NOT_FOUND, "Not found")),
        None => Ok(document(&headers)),
    }
}

fn document(headers: &HeaderMap) -> Response {
    asset_response(parlor_web_assets::index(), "text/html; charset=utf-8", REVALIDATE, headers)
}

fn asset_response(
    asset: Asset,
    content_type: &'static str,
    caching: &'static str,
    request_headers: &HeaderMap,
) -> Response {
    let tag = format!("\"{}\"", hex(&asset.digest[..16]));
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        headers.insert(name, HeaderValue::from_str(value).expect("header values are visible ASCII"));
    };
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(CACHE_CONTROL, caching);
    set(VARY, "accept-encoding");
    set(ETAG, &tag);
    let unchanged = request_headers.get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == tag.as_bytes());
    if unchanged {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    set(CONTENT_TYPE, content_type);
    let compressed = [("br", asset.brotli), ("gzip", asset.gzip)];
    let compressed =
        compressed.into_iter().find(|(name, form)| form.is_some() && accepts(request_headers, name));
    let bytes = match compressed {
        Some((name, Some(form))) => {
            set(CONTENT_ENCODING, name);
            form
        }
        _ => asset.bytes,
    };
    (headers, Body::from(to_bytes(bytes))).into_response()
}

/// Converts an asset to `Bytes`, without copying an embedded file.
fn to_bytes(bytes: Cow<'static, [u8]>) -> Bytes {
    match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    }
}

/// Whether the client accepts an encoding. `q=0` excludes it; other weights are ignored, because the hub
/// tries the best encoding first.
fn accepts(request_headers: &HeaderMap, encoding: &str) -> bool {
    let values = request_headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        "html" => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, encoding: &str, expected: bool) {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(header).unwrap())]);
        assert_eq!(accepts(&headers, encoding), expected, "{header}");
    }

    #[test]
    fn an_encoding_is_used_only_if_the_client_accepts_it() {
        check("gzip, deflate, br, zstd", "br", true);
        check("gzip;q=0.5 , BR;q=1", "br", true);
        check("gzip, br;q=0", "br", false);
        check("br;q=0.000", "br", false);
        check("identity", "gzip", false);
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn every_asset_has_a_known_content_type() {
        for path in parlor_web_assets::paths() {
            assert_ne!(content_type(&path), "application/octet-stream", "{path}");
        }
    }
}
