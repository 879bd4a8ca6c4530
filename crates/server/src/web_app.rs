//! The web page: one document for every address of its own, its files below `/app`, and a policy that runs nothing
//! but these files.

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
use parlor_web_assets::Asset;
use std::borrow::Cow;
use std::sync::Arc;

/// Files whose names change with their content.
const HASHED: &str = "assets/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Asked about each time, and answered with 304 while nothing changed.
const REVALIDATE: &str = "no-cache";

/// Nothing runs, looks or connects but what comes from here; and nothing that somebody wrote can become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub async fn home(headers: HeaderMap) -> Response {
    document(&headers)
}

/// There until the first admin exists.
pub async fn setup(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    if app.hub.needs_setup().await? {
        return Ok(document(&headers));
    }
    Err(Problem::Status(StatusCode::NOT_FOUND, "This hub is already set up"))
}

/// A file of the page, or the page: which of its views an address means, it knows itself.
pub async fn app(Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match parlor_web_assets::find(&format!("app/{path}")) {
        Some(asset) => {
            let caching = if path.starts_with(HASHED) { FOR_EVER } else { REVALIDATE };
            Ok(answer(asset, kind(&path), caching, &headers))
        }
        None if path.starts_with(HASHED) => Err(Problem::Status(StatusCode::NOT_FOUND, "Not found")),
        None => Ok(document(&headers)),
    }
}

fn document(headers: &HeaderMap) -> Response {
    answer(parlor_web_assets::index(), "text/html; charset=utf-8", REVALIDATE, headers)
}

fn answer(asset: Asset, kind: &'static str, caching: &'static str, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", hex(&asset.digest[..16]));
    let mut headers = HeaderMap::new();
    let mut tell = |name: HeaderName, value: &str| {
        headers.insert(name, HeaderValue::from_str(value).expect("these are plain texts"));
    };
    tell(CONTENT_SECURITY_POLICY, POLICY);
    tell(CACHE_CONTROL, caching);
    tell(VARY, "accept-encoding");
    tell(ETAG, &tag);
    let known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    tell(CONTENT_TYPE, kind);
    let smaller = [("br", asset.brotli), ("gzip", asset.gzip)];
    let smaller = smaller.into_iter().find(|(name, form)| form.is_some() && accepts(asked, name));
    let bytes = match smaller {
        Some((name, Some(form))) => {
            tell(CONTENT_ENCODING, name);
            form
        }
        _ => asset.bytes,
    };
    (headers, Body::from(shared(bytes))).into_response()
}

/// Embedded files are never copied.
fn shared(bytes: Cow<'static, [u8]>) -> Bytes {
    match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    }
}

/// `gzip;q=0` is a no; other weights do not matter, as we always have the better one first.
fn accepts(asked: &HeaderMap, encoding: &str) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
}

fn kind(path: &str) -> &'static str {
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
    fn a_form_is_sent_to_who_takes_it() {
        check("gzip, deflate, br, zstd", "br", true);
        check("gzip;q=0.5 , BR;q=1", "br", true);
        check("gzip, br;q=0", "br", false);
        check("br;q=0.000", "br", false);
        check("identity", "gzip", false);
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn every_file_of_the_page_is_of_a_known_kind() {
        for path in parlor_web_assets::paths() {
            assert_ne!(kind(&path), "application/octet-stream", "{path}");
        }
    }
}
