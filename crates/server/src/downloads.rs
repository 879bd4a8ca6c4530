//! Serves uploaded files under `/uploads`, isolated from the web app.
//!
//! Only images are displayed inline; browsers download everything else. Every file is served with a
//! sandboxing Content-Security-Policy, so that it runs no script and has no access to the hub's origin.

use crate::App;
use crate::auth;
use crate::http::bearer;
use crate::http::multipart::blocking;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::range::{RequestedRange, requested_range};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parlor_engine::ports::Content;
use parlor_engine::{Fault, Severity};
use parlor_model::query::GetUpload;
use parlor_model::{Caller, EntityKind, MediaType, Refusal, Upload, UploadId};
use parlor_wire::files;
use serde::Deserialize;
use std::io::SeekFrom;
use std::sync::Arc;

/// Maximum bytes of a file held in memory per download.
const CHUNK_BYTES: u64 = 64 * 1024;

/// Credentials in the query string, for pages that cannot send a header (`<img src>`). No other route accepts
/// an access token in its URL.
#[derive(Deserialize)]
pub struct FileAccessQuery {
    /// Access token.
    token: Option<String>,
    /// Signature of a short-lived link.
    sig: Option<String>,
}

pub async fn read(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Parameters(params): Parameters<FileAccessQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = UploadId::parse(&id).map_err(|_| Refusal::NotFound(EntityKind::Upload))?;
    let caller = caller(&app, &headers, &params, &id).await?;
    let upload = app.hub.read(&caller, GetUpload { id }).await?;
    let (status, part) = match requested_range(&headers, upload.file.size) {
        RequestedRange::Whole => (StatusCode::OK, 0..upload.file.size),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Unsatisfiable => {
            let size = (CONTENT_RANGE, format!("bytes */{}", upload.file.size));
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [size]).into_response());
        }
    };
    let (blobs, digest, start) = (app.blobs.clone(), upload.digest, part.start);
    let content = blocking(move || {
        let mut content = blobs.open(&digest)?;
        if let Some(content) = &mut content {
            let found = content.seek(SeekFrom::Start(start));
            found.map_err(|error| Fault::new("reading an upload", Severity::Transient, error))?;
        }
        Ok(content)
    });
    let Some(content) = content.await? else {
        tracing::warn!(%digest, "the content of an upload is missing; was it left out of a backup?");
        return Err(Refusal::NotFound(EntityKind::Upload).into());
    };
    let length = part.end - part.start;
    let mut response = (status, chunked_body(content, length)).into_response();
    let headers = response.headers_mut();
    describe(headers, &upload)?;
    headers.insert(CONTENT_LENGTH, length.into());
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{}", part.start, part.end - 1, upload.file.size);
        headers.insert(CONTENT_RANGE, header(&range)?);
    }
    Ok(response)
}

pub async fn read_named(
    app: State<Arc<App>>,
    Path((id, _)): Path<(String, String)>,
    params: Parameters<FileAccessQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    read(app, Path(id), params, headers).await
}

async fn caller(
    app: &App,
    headers: &HeaderMap,
    params: &FileAccessQuery,
    id: &UploadId,
) -> Result<Caller, Problem> {
    if let Some(token) = bearer(headers) {
        return Ok(auth::caller(app, token).await?);
    }
    match params {
        // An invalid or expired link must not reveal whether the file exists.
        FileAccessQuery { sig: Some(link), .. } => app
            .tokens
            .verify_link(link, id, app.hub.now())
            .ok_or(Problem::Refused(Refusal::NotFound(EntityKind::Upload))),
        // API keys are not accepted here: they live long, and URLs end up in logs and browser histories.
        FileAccessQuery { token: Some(token), .. } => {
            let claims = app.tokens.verify(token, app.hub.now()).ok_or(Refusal::NotSignedIn)?;
            Ok(Caller::person(claims.user, claims.sign_in))
        }
        FileAccessQuery { token: None, sig: None } => Err(Refusal::NotSignedIn.into()),
    }
}

fn describe(headers: &mut HeaderMap, upload: &Upload) -> Result<(), Problem> {
    let media = upload.file.media;
    let text = matches!(media, MediaType::Text | MediaType::Markdown | MediaType::Csv);
    let kind = if text { format!("{}; charset=utf-8", media.as_str()) } else { media.as_str().to_owned() };
    headers.insert(CONTENT_TYPE, header(&kind)?);
    headers.insert(CONTENT_DISPOSITION, header(&files::disposition(&upload.file))?);
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (CACHE_CONTROL, "private, max-age=300"),
        (ACCEPT_RANGES, "bytes"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(())
}

fn header(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Refusal::Unavailable.into())
}

/// Streams `length` bytes from the current position of `content`, with one chunk in memory at a time.
fn chunked_body(content: Box<dyn Content>, length: u64) -> Body {
    Body::from_stream(stream::try_unfold((content, length), |(mut content, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES.min(left) as usize];
            content.read_exact(&mut chunk)?;
            let left = left - chunk.len() as u64;
            Ok(Some((Bytes::from(chunk), (content, left))))
        });
        read.await.unwrap_or_else(|panicked| Err(std::io::Error::other(panicked)))
    }))
}
