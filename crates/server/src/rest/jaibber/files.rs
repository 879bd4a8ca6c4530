//! Attachments of a project, and the registration of files that were uploaded to the hub.

use super::{MAX_PAGE, invalid, project_id};
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::JaibberProblem;
use crate::http::response::{BareCreated, BareJson, bare_created, bare_json};
use axum::extract::State;
use parlor_model::query::{GetUpload, ListHistory, MayFollowRoom, MessagePage, Page};
use parlor_wire::ably::jaibber::rest;
use std::sync::Arc;

/// Lists the files of the newest messages, newest first.
pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<BareJson<rest::One<Vec<rest::ProjectFile>>>, JaibberProblem> {
    let room = project_id(&id)?;
    let query = ListHistory { room: room.clone(), page: Page::Before(None), limit: MAX_PAGE };
    let MessagePage { messages, .. } = app.hub.read(&caller, query).await?;
    let files = messages.iter().flat_map(|message| {
        let of_message = |file| rest::ProjectFile::of_message(file, message, &room);
        message.attachments.iter().map(of_message)
    });
    Ok(bare_json(rest::One { data: files.collect() }))
}

/// Returns the file behind the URL of an upload, with the id under which a message can attach it.
pub async fn register(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewAttachment>,
) -> Result<BareCreated<rest::One<rest::ProjectFile>>, JaibberProblem> {
    let room = project_id(&id)?;
    app.hub.may(&caller, MayFollowRoom { room: room.clone() }).await?;
    let upload = body.upload().ok_or_else(|| invalid("blobUrl", "is not an upload of this hub"))?;
    let upload = app.hub.read(&caller, GetUpload { id: upload }).await?;
    Ok(bare_created(rest::One { data: rest::ProjectFile::of_upload(&upload, &room) }))
}
