//! Mailboxes of agents and their sessions, conversation logs, and dead letters.

use super::agents::agent_id;
use super::messages::message_id;
use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::{Body, MaybeBody};
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{Data, Done, data};
use axum::extract::State;
use parlor_model::command::{ChangeSession, ClearDeadLetters, ResendDeadLetter, SessionChanges};
use parlor_model::query::{EntryPage, ListConversation, ListDeadLetters, ListMail, ListMailboxes, MailPage};
use parlor_model::{Mailbox, SessionId};
use parlor_wire::agentim::rest;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct LetterQuery {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// Number of newer entries to skip, default 0.
    offset: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
pub struct MailQuery {
    /// Session whose mailbox is read. Default: the agent's own mailbox.
    session: Option<String>,
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// Number of newer entries to skip, default 0.
    offset: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
pub struct LogQuery {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

fn page(limit: Option<usize>, offset: Option<usize>) -> MailPage {
    let (limit, offset) = (limit.unwrap_or(50).clamp(1, 200), offset.unwrap_or_default());
    MailPage { limit, offset, from: None, to: None }
}

/// The single entry after the entries that a page contains. An answer may be shorter than its page, because its size is
/// limited.
fn rest_of(page: MailPage, returned: usize) -> MailPage {
    MailPage { limit: 1, offset: page.offset.saturating_add(returned), ..page }
}

fn session_id(id: &str) -> Result<SessionId, Problem> {
    SessionId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn sessions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::AgentSessions<'static>>, Problem> {
    let found = app.hub.read(&caller, ListMailboxes { agent: agent_id(&id)? }).await?;
    Ok(data(rest::AgentSessions::from(&found)))
}

pub async fn change_session(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, session)): Path<(String, String)>,
    Body(body): Body<rest::SessionChanges>,
) -> Result<Data<rest::ChangedSession<'static>>, Problem> {
    let auto_run = match &body.auto_run {
        Some(Some(changes)) => Some(changes.parse().map_err(|rule| Problem::invalid("autoRun", rule))?),
        Some(None) => Some(None),
        None => None,
    };
    let room = match body.room_id {
        Some(Some(room)) => Some(Some(room_id(&room)?)),
        Some(None) => Some(None),
        None => None,
    };
    let (auto_run, room) = (auto_run.into(), room.into());
    let changes = SessionChanges { title: body.title, auto_run, room, ..SessionChanges::default() };
    let command = ChangeSession { agent: agent_id(&id)?, session: session_id(&session)?, changes };
    let changed = app.hub.execute(&caller, command).await?;
    Ok(data(rest::ChangedSession::from(&changed)))
}

pub async fn log(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, session)): Path<(String, String)>,
    Parameters(params): Parameters<LogQuery>,
) -> Result<Data<rest::ConversationPage<'static>>, Problem> {
    let limit = params.limit.unwrap_or(50).clamp(1, 200);
    let cursor = |text: String| text.parse().map_err(|_| Problem::invalid("cursor", "is not a cursor"));
    let page = EntryPage::Before(params.cursor.map(cursor).transpose()?);
    let (agent, session) = (agent_id(&id)?, session_id(&session)?);
    // One more, to know whether there is a further page.
    let entries = app.hub.read(&caller, ListConversation { agent, session, page, limit: limit + 1 }).await?;
    Ok(data(rest::ConversationPage::new(&entries, limit)))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(params): Parameters<MailQuery>,
) -> Result<Data<rest::MailPage<'static>>, Problem> {
    let session = params.session.as_deref().map(session_id).transpose()?;
    let mailbox = Mailbox { agent: agent_id(&id)?, session };
    let page = page(params.limit, params.offset);
    let mail = app.hub.read(&caller, ListMail { mailbox: mailbox.clone(), page }).await?;
    let more = ListMail { mailbox, page: rest_of(page, mail.len()) };
    let has_more = !mail.is_empty() && !app.hub.read(&caller, more).await?.is_empty();
    let now = app.hub.now();
    let items = mail.iter().map(|(message, delivery)| rest::MailCopy::new(message, delivery, now)).collect();
    Ok(data(rest::MailPage { items, has_more }))
}

pub async fn dead_letters(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<LetterQuery>,
) -> Result<Data<rest::DeadLetterPage<'static>>, Problem> {
    let page = page(params.limit, params.offset);
    let letters = app.hub.read(&caller, ListDeadLetters { page }).await?;
    let more = ListDeadLetters { page: rest_of(page, letters.len()) };
    let has_more = !letters.is_empty() && !app.hub.read(&caller, more).await?.is_empty();
    let items = letters.iter().map(rest::DeadLetter::from).collect();
    Ok(data(rest::DeadLetterPage { items, has_more }))
}

pub async fn resend(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    MaybeBody(body): MaybeBody<rest::Resend>,
) -> Result<Data<rest::Resent<'static>>, Problem> {
    let mailbox = match body {
        Some(rest::Resend { agent_id: Some(agent), session_id: session }) => {
            let session = session.as_deref().map(session_id).transpose()?;
            Some(Mailbox { agent: agent_id(&agent)?, session })
        }
        Some(rest::Resend { agent_id: None, session_id: Some(_) }) => {
            return Err(Problem::invalid("agentId", "is required with a session"));
        }
        Some(rest::Resend { agent_id: None, session_id: None }) | None => None,
    };
    let command = ResendDeadLetter { message: message_id(&id)?, mailbox };
    let resent = app.hub.execute(&caller, command).await?;
    let mailboxes = resent.iter().map(|copy| rest::MailboxKey::from(&copy.mailbox)).collect();
    Ok(data(rest::Resent { mailboxes }))
}

pub async fn clear(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, ClearDeadLetters).await?;
    Ok(Done)
}
