//! File uploads: attachments, avatars, images of chat messages, and short-lived links to files.

use crate::App;
use crate::http::Authenticated;
use crate::http::multipart::{Form, Received, blocking};
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Data, data};
use axum::extract::State;
use parlor_engine::ports::StoredBlob;
use parlor_engine::{Sniffer, blob_gc};
use parlor_model::command::AddUpload;
use parlor_model::query::{GetUpload, MayUpload};
use parlor_model::{Caller, File, Refusal, Upload, UploadId};
use parlor_wire::agentim::rest;
use parlor_wire::files::FileFrame;
use std::sync::Arc;

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    form: Form,
) -> Result<Data<FileFrame<'static>>, Problem> {
    let upload = receive_upload(&app, caller, form, false).await?;
    Ok(data(FileFrame::of(&upload.id, &upload.file)))
}

pub async fn create_avatar(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    form: Form,
) -> Result<Data<rest::Avatar<'static>>, Problem> {
    let upload = receive_upload(&app, caller, form, true).await?;
    Ok(data(rest::Avatar::from(&*upload)))
}

async fn receive_upload(
    app: &Arc<App>,
    caller: Caller,
    form: Form,
    avatar: bool,
) -> Result<Arc<Upload>, Problem> {
    // Checked first, so that an unauthorised caller cannot make the hub write a file.
    app.hub.may(&caller, MayUpload).await?;
    let user = caller.user().ok_or(Refusal::NotSignedIn)?;
    let _permit = app.upload_limiter.user(user, None)?;
    let max_bytes = if avatar { app.config.avatar_bytes } else { app.config.upload_bytes };
    let received = form.receive(max_bytes, app.blobs.clone()).await?;
    // In its own task: if the client disconnects, the blob must still be held until the store refers to it.
    let stored = app.tasks.spawn(store_upload(app.clone(), caller, received, avatar));
    Ok(stored.await.unwrap_or(Err(Refusal::Unavailable))?)
}

/// Stores an image that was sent inline with a chat message as an upload of the caller.
pub async fn store_image(
    app: &Arc<App>,
    caller: &Caller,
    name: &str,
    content: Vec<u8>,
) -> Result<Arc<Upload>, Problem> {
    app.hub.may(caller, MayUpload).await?;
    let mut sniffer = Sniffer::default();
    sniffer.look(&content);
    let media = sniffer.kind(name).filter(|media| media.as_str().starts_with("image/"));
    let media = media.ok_or_else(|| Problem::invalid("images", "must be JPEG, PNG, GIF or WebP"))?;
    let blobs = app.blobs.clone();
    let incoming = blocking(move || {
        let mut incoming = blobs.receive()?;
        incoming.write(&content)?;
        Ok(incoming)
    });
    let received = Received { name: name.into(), media, incoming: incoming.await? };
    let stored = app.tasks.spawn(store_upload(app.clone(), caller.clone(), received, false));
    Ok(stored.await.unwrap_or(Err(Refusal::Unavailable))?)
}

async fn store_upload(
    app: Arc<App>,
    caller: Caller,
    received: Received,
    avatar: bool,
) -> Result<Arc<Upload>, Refusal> {
    let Received { name, media, incoming } = received;
    let StoredBlob { digest, size, hold } = blocking(move || incoming.keep()).await?;
    let file = File { name, media, size };
    let outcome = app.hub.execute(&caller, AddUpload { file, digest, avatar }).await;
    drop(hold);
    if outcome.is_err() {
        let discard = move || {
            blob_gc::remove(&app.hub, &*app.blobs, &[digest]);
            Ok(())
        };
        blocking(discard).await?;
    }
    outcome
}

/// Creates a short-lived link that opens the file without a token, while the caller may see the file.
pub async fn link(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Link>, Problem> {
    let id = UploadId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.may(&caller, GetUpload { id: id.clone() }).await?;
    let (link, expires) = app.tokens.issue_link(&caller, &id, app.hub.now()).ok_or(Refusal::NotSignedIn)?;
    Ok(data(rest::Link::new(&id, &link, expires)))
}
