//! Files, going out: under `/uploads`, apart from everything that a browser runs.
//!
//! Only images are shown in place. Everything else is downloaded, and whatever it is, it comes with a policy under
//! which nothing runs and that takes our origin away from it.

use crate::App;
use crate::auth;
use crate::http::bearer;
use crate::http::multipart::blocking;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::range::{RequestedRange, wanted};
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
use parlor_model::{Answer, Caller, EntityKind, MediaType, Query, Refusal, Upload, UploadId};
use parlor_wire::files;
use serde::Deserialize;
use std::io::SeekFrom;
use std::sync::Arc;

const PIECE: u64 = 64 * 1024;

/// Who asks, where a page cannot send a header along: the only place where a query may say it.
#[derive(Deserialize)]
pub struct FileAccessQuery {
    /// An access token.
    token: Option<String>,
    /// A link that somebody made.
    sig: Option<String>,
}

pub async fn read(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Parameters(shown): Parameters<FileAccessQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = UploadId::parse(&id).map_err(|_| Refusal::NotFound(EntityKind::Upload))?;
    let caller = caller(&app, &headers, &shown, &id).await?;
    let Answer::Upload(upload) = app.hub.read(&caller, Query::Upload { id }).await? else {
        return Err(Refusal::Unavailable.into());
    };
    let (status, part) = match wanted(&headers, upload.file.size) {
        RequestedRange::Whole => (StatusCode::OK, 0..upload.file.size),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Nothing => {
            let size = (CONTENT_RANGE, format!("bytes */{}", upload.file.size));
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [size]).into_response());
        }
    };
    let (blobs, digest, start) = (app.blobs.clone(), upload.digest, part.start);
    let content = blocking(move || {
        let mut content = blobs.open(&digest)?;
        if let Some(content) = &mut content {
            let found = content.seek(SeekFrom::Start(start));
            found.map_err(|error| Fault::new("reading a file", Severity::Transient, error))?;
        }
        Ok(content)
    });
    let Some(content) = content.await? else {
        tracing::warn!(%digest, "a file is not where it is kept; was it left out of a backup?");
        return Err(Refusal::NotFound(EntityKind::Upload).into());
    };
    let length = part.end - part.start;
    let mut response = (status, pieces(content, length)).into_response();
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
    shown: Parameters<FileAccessQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    read(app, Path(id), shown, headers).await
}

async fn caller(
    app: &App,
    headers: &HeaderMap,
    shown: &FileAccessQuery,
    id: &UploadId,
) -> Result<Caller, Problem> {
    if let Some(token) = bearer(headers) {
        return Ok(auth::caller(app, token).await?);
    }
    match shown {
        // A link that is wrong or has run out says nothing about the file.
        FileAccessQuery { sig: Some(link), .. } => app
            .tokens
            .verify_link(link, id, app.hub.now())
            .ok_or(Problem::Refused(Refusal::NotFound(EntityKind::Upload))),
        // No keys: they live long, and addresses are kept in many places.
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

/// So much of the content from here on, one piece in memory at a time.
fn pieces(content: Box<dyn Content>, length: u64) -> Body {
    Body::from_stream(stream::try_unfold((content, length), |(mut content, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE.min(left) as usize];
            content.read_exact(&mut piece)?;
            let left = left - piece.len() as u64;
            Ok(Some((Bytes::from(piece), (content, left))))
        });
        read.await.unwrap_or_else(|panicked| Err(std::io::Error::other(panicked)))
    }))
}
