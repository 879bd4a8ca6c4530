//! Receives one file from a `multipart/form-data` body and streams it to the blob store.
//!
//! Limits size and time of the body. Only one chunk of the body is in memory at a time.

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

/// Maximum bytes before the file: the multipart parser buffers them until it finds the start of the file.
const MAX_PREAMBLE_BYTES: u64 = 64 * 1024;
/// Maximum bytes of the body in addition to the file.
const MAX_OVERHEAD_BYTES: u64 = 128 * 1024;
/// Timeout for the complete body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Timeout for the next chunk of the body.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time spent reading the rest of a rejected body: closing the connection while the client still
/// sends would lose the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes read from the rest of a rejected body.
const MAX_DRAINED_BYTES: usize = 32 * 1024 * 1024;

const REFUSALS: [StatusCode; 4] = [
    StatusCode::BAD_REQUEST,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
];

const NOT_A_FORM: &str = "Send multipart/form-data with one file, in a part named file";
const UNSUPPORTED_TYPE: &str = "Unsupported file type; send JPEG, PNG, GIF, WebP, PDF, ZIP, gzip or text";
const TOO_LARGE: &str = "The file is too large";
const UNREADABLE: &str = "The body could not be read";
const TOO_SLOW: &str = "The body was not received in time";

/// A completely received file that is not stored yet.
pub struct Received {
    pub name: Box<str>,
    pub media: MediaType,
    pub incoming: Box<dyn BlobUpload>,
}

/// An unread multipart request.
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
    /// Reads the form to its end, with a file of at most `max_bytes`.
    pub async fn receive(self, max_bytes: u64, blobs: Arc<dyn BlobStore>) -> Result<Received, Problem> {
        receive(self.0, max_bytes, blobs).await
    }
}

async fn receive(request: Request, max_bytes: u64, blobs: Arc<dyn BlobStore>) -> Result<Received, Problem> {
    let headers = request.headers();
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::Unread(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Send the body without Content-Encoding",
        ));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| Problem::Unread(StatusCode::UNSUPPORTED_MEDIA_TYPE, NOT_A_FORM))?;
    let body = BoundedBody::new(request.into_body());
    let reading = read(Multipart::new(body.clone(), boundary), &body, max_bytes, blobs);
    let read = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    let read = read.unwrap_or(Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)));
    match &read {
        Ok(_) | Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, _)) => {}
        Err(_) => body.drain().await,
    }
    read
}

async fn read(
    mut form: Multipart<'static>,
    body: &BoundedBody,
    max_bytes: u64,
    blobs: Arc<dyn BlobStore>,
) -> Result<Received, Problem> {
    let field = with_timeout(form.next_field()).await?.ok_or(bad_request(NOT_A_FORM))?;
    if field.name() != Some("file") {
        return Err(bad_request(NOT_A_FORM));
    }
    let name = file_name(field.file_name().unwrap_or_default());
    body.allow(max_bytes + MAX_OVERHEAD_BYTES);
    let mut field = field;
    let mut file =
        UploadInProgress { incoming: blocking(move || blobs.receive()).await?, sniffer: Sniffer::default() };
    let mut size = 0;
    while let Some(chunk) = with_timeout(field.chunk()).await? {
        size += chunk.len() as u64;
        if size > max_bytes {
            return Err(Problem::Unread(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE));
        }
        file = blocking(move || file.with(&chunk)).await?;
    }
    drop(field);
    if with_timeout(form.next_field()).await?.is_some() {
        return Err(bad_request(NOT_A_FORM));
    }
    let media = file.sniffer.kind(&name);
    let media = media.ok_or(Problem::Status(StatusCode::UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_TYPE))?;
    Ok(Received { name, media, incoming: file.incoming })
}

struct UploadInProgress {
    incoming: Box<dyn BlobUpload>,
    sniffer: Sniffer,
}

impl UploadInProgress {
    fn with(mut self, chunk: &[u8]) -> Result<Self, Fault> {
        self.sniffer.look(chunk);
        self.incoming.write(chunk)?;
        Ok(self)
    }
}

fn bad_request(sentence: &'static str) -> Problem {
    Problem::Unread(StatusCode::BAD_REQUEST, sentence)
}

async fn with_timeout<T>(next: impl Future<Output = multer::Result<T>>) -> Result<T, Problem> {
    match tokio::time::timeout(CHUNK_TIMEOUT, next).await {
        Err(_) => Err(Problem::Unread(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)),
        Ok(Ok(found)) => Ok(found),
        Ok(Err(multer::Error::StreamReadFailed(error))) => Err(match error.downcast_ref::<BodyTooLarge>() {
            Some(BodyTooLarge) => Problem::Unread(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE),
            None => bad_request(UNREADABLE),
        }),
        Ok(Err(_)) => Err(bad_request(NOT_A_FORM)),
    }
}

/// Runs blocking file work. A fault is logged and reported to the client as unavailable.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fault)) => {
            tracing::error!(%fault, "failed to store or read a file");
            Err(Refusal::Unavailable)
        }
        Err(_) => Err(Refusal::Unavailable),
    }
}

/// A body that fails when more bytes are read than currently allowed.
#[derive(Clone)]
struct BoundedBody {
    /// Shared with the multipart parser, so that the rest can be drained after the parser was dropped.
    body: Arc<Mutex<BodyDataStream>>,
    read: Arc<AtomicU64>,
    max_bytes: Arc<AtomicU64>,
    /// Whether the previous poll returned a chunk.
    just_yielded: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body exceeds its size limit")]
struct BodyTooLarge;

impl BoundedBody {
    fn new(body: Body) -> Self {
        Self {
            body: Arc::new(Mutex::new(body.into_data_stream())),
            read: Arc::default(),
            max_bytes: Arc::new(AtomicU64::new(MAX_PREAMBLE_BYTES)),
            just_yielded: Arc::default(),
        }
    }

    fn allow(&self, max_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    async fn drain(&self) {
        let rest = futures_util::stream::poll_fn(|context| self.body.lock().poll_next_unpin(context));
        let drained = rest.take_while(|chunk| std::future::ready(chunk.is_ok())).scan(0, |drained, chunk| {
            *drained += chunk.map_or(0, |chunk| chunk.len());
            std::future::ready((*drained < MAX_DRAINED_BYTES).then_some(()))
        });
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained.for_each(|()| std::future::ready(()))).await;
    }
}

impl Stream for BoundedBody {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // The multipart parser buffers all available chunks before it parses any. It gets one chunk per
        // wake-up, or a fast upload would exceed the preamble limit before the start of the file is found.
        if self.just_yielded.swap(false, Ordering::Relaxed) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Checked before each chunk, so at most one chunk exceeds the limit.
        if self.read.load(Ordering::Relaxed) > self.max_bytes.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(BodyTooLarge.into())));
        }
        let chunk = ready!(self.body.lock().poll_next_unpin(context));
        if let Some(Ok(bytes)) = &chunk {
            self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.just_yielded.store(true, Ordering::Relaxed);
        }
        Poll::Ready(chunk.map(|chunk| chunk.map_err(Into::into)))
    }
}
