//! One file out of a `multipart/form-data` body, written away while it comes in.
//!
//! Owns: how much and how long is read. What is held in memory is a piece of the body, whatever the body is.

use super::openapi::{Describe, OperationDoc};
use super::problem::Problem;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use multer::Multipart;
use parking_lot::Mutex;
use parlor_engine::ports::{BlobStore, BlobUpload};
use parlor_engine::{Fault, Sniffer};
use parlor_model::{MediaType, Refusal};
use parlor_wire::files::file_name;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{Content, Object, RefOr, Required, Schema};

/// What may come before the file: the reader keeps it until it has found the file's beginning.
const MOST_BEFORE: u64 = 64 * 1024;
/// What may come besides the file.
const MOST_BESIDES: u64 = 128 * 1024;
/// The whole body must be here within this time, and no pause be longer than the other.
const BODY_TIMEOUT: Duration = Duration::from_secs(5 * 60);
const PAUSE: Duration = Duration::from_secs(10);
/// Whoever is refused is heard out for a moment: a connection closed in the middle of it would lose the answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_DRAINED_BYTES: usize = 32 * 1024 * 1024;

const REFUSALS: [StatusCode; 4] = [
    StatusCode::BAD_REQUEST,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
];

const NOT_A_FORM: &str = "Send multipart/form-data with one file, in a part named file";
const WRONG_KIND: &str =
    "Files of this kind are not taken; send JPEG, PNG, GIF, WebP, PDF, ZIP, gzip or text";
const TOO_LARGE: &str = "The file is too large";
const UNREADABLE: &str = "The body could not be read";
const TOO_SLOW: &str = "The body came too slowly";

/// A file that has come in and is not kept yet.
pub struct Received {
    pub name: Box<str>,
    pub media: MediaType,
    pub incoming: Box<dyn BlobUpload>,
}

/// A form of which nothing was read yet.
pub struct Form(Request);

impl<S: Sync> FromRequest<S> for Form {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self(request))
    }
}

impl Describe for Form {
    fn describe(operation_doc: &mut OperationDoc) {
        let bytes = KnownFormat::Binary;
        let file = Object::builder().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(bytes)));
        let form = Object::builder().property("file", file).required("file").build();
        let mut body = RequestBody::new();
        let content = Content::new(Some(RefOr::T(Schema::Object(form))));
        body.content.insert("multipart/form-data".into(), content.into());
        body.required = Some(Required::True);
        operation_doc.operation.request_body = Some(body.into());
        operation_doc.refuses(&REFUSALS);
    }
}

impl Form {
    /// Reads it to its end, with a file of no more than so many bytes.
    pub async fn receive(self, most: u64, blobs: Arc<dyn BlobStore>) -> Result<Received, Problem> {
        receive(self.0, most, blobs).await
    }
}

async fn receive(request: Request, most: u64, blobs: Arc<dyn BlobStore>) -> Result<Received, Problem> {
    let headers = request.headers();
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::Unread(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send the body as it is"));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| Problem::Unread(StatusCode::UNSUPPORTED_MEDIA_TYPE, NOT_A_FORM))?;
    let body = BoundedBody::new(request.into_body());
    let reading = read(Multipart::new(body.clone(), boundary), &body, most, blobs);
    let read = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    let read = read.unwrap_or(Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)));
    match &read {
        Ok(_) | Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, _)) => {}
        Err(_) => body.hear_out().await,
    }
    read
}

async fn read(
    mut form: Multipart<'static>,
    body: &BoundedBody,
    most: u64,
    blobs: Arc<dyn BlobStore>,
) -> Result<Received, Problem> {
    let field = in_time(form.next_field()).await?.ok_or(unread(NOT_A_FORM))?;
    if field.name() != Some("file") {
        return Err(unread(NOT_A_FORM));
    }
    let name = file_name(field.file_name().unwrap_or_default());
    body.allow(most + MOST_BESIDES);
    let mut field = field;
    let mut file =
        UploadInProgress { incoming: blocking(move || blobs.receive()).await?, sniffer: Sniffer::default() };
    let mut size = 0;
    while let Some(piece) = in_time(field.chunk()).await? {
        size += piece.len() as u64;
        if size > most {
            return Err(Problem::Unread(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE));
        }
        file = blocking(move || file.with(&piece)).await?;
    }
    drop(field);
    if in_time(form.next_field()).await?.is_some() {
        return Err(unread(NOT_A_FORM));
    }
    let media = file.sniffer.kind(&name);
    let media = media.ok_or(Problem::Status(StatusCode::UNSUPPORTED_MEDIA_TYPE, WRONG_KIND))?;
    Ok(Received { name, media, incoming: file.incoming })
}

struct UploadInProgress {
    incoming: Box<dyn BlobUpload>,
    sniffer: Sniffer,
}

impl UploadInProgress {
    fn with(mut self, piece: &[u8]) -> Result<Self, Fault> {
        self.sniffer.look(piece);
        self.incoming.write(piece)?;
        Ok(self)
    }
}

fn unread(sentence: &'static str) -> Problem {
    Problem::Unread(StatusCode::BAD_REQUEST, sentence)
}

async fn in_time<T>(next: impl Future<Output = multer::Result<T>>) -> Result<T, Problem> {
    match tokio::time::timeout(PAUSE, next).await {
        Err(_) => Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)),
        Ok(Ok(found)) => Ok(found),
        Ok(Err(multer::Error::StreamReadFailed(error))) => Err(match error.downcast_ref::<TooMuch>() {
            Some(TooMuch) => Problem::Unread(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE),
            None => unread(UNREADABLE),
        }),
        Ok(Err(_)) => Err(unread(NOT_A_FORM)),
    }
}

/// What the disk could not do is ours, and nothing was changed by it.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fault)) => {
            tracing::error!(%fault, "a file could not be kept or read");
            Err(Refusal::Unavailable)
        }
        Err(_) => Err(Refusal::Unavailable),
    }
}

/// A body of which no more is read than is allowed so far.
#[derive(Clone)]
struct BoundedBody {
    /// Shared with the reader of the form, which is gone when the rest is heard out.
    body: Arc<Mutex<BodyDataStream>>,
    read: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
    gave: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("more than is allowed")]
struct TooMuch;

impl BoundedBody {
    fn new(body: Body) -> Self {
        Self {
            body: Arc::new(Mutex::new(body.into_data_stream())),
            read: Arc::default(),
            most: Arc::new(AtomicU64::new(MOST_BEFORE)),
            gave: Arc::default(),
        }
    }

    fn allow(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    async fn hear_out(&self) {
        let rest = futures_util::stream::poll_fn(|context| self.body.lock().poll_next_unpin(context));
        let heard = rest.take_while(|piece| std::future::ready(piece.is_ok())).scan(0, |heard, piece| {
            *heard += piece.map_or(0, |piece| piece.len());
            std::future::ready((*heard < MAX_DRAINED_BYTES).then_some(()))
        });
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, heard.for_each(|()| std::future::ready(()))).await;
    }
}

impl Stream for BoundedBody {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // The reader of the form takes whatever lies ready before it looks at any of it: it gets one piece at a time,
        // or a file that comes quickly would be too much before its beginning was found.
        if self.gave.swap(false, Ordering::Relaxed) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Asked before each piece, so at most one goes beyond what is allowed.
        if self.read.load(Ordering::Relaxed) > self.most.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(TooMuch.into())));
        }
        let piece = ready!(self.body.lock().poll_next_unpin(context));
        if let Some(Ok(bytes)) = &piece {
            self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.gave.store(true, Ordering::Relaxed);
        }
        Poll::Ready(piece.map(|piece| piece.map_err(Into::into)))
    }
}
