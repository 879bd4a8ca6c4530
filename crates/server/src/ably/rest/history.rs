//! `GET /channels/{channel}/messages`: the history of a channel, page by page.

use super::super::channel_error;
use super::super::http::AblyRequest;
use super::{ChannelName, authenticated, channel, parameters};
use crate::App;
use axum::extract::State;
use axum::response::Response;
use parlor_model::query::ListDestinationHistory;
use parlor_model::{Destination, Epoch, Position, Seq};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::egress;
use parlor_wire::ably::frames::Message;
use parlor_wire::ably::jaibber::room_frame;
use parlor_wire::ably::rest::{Direction, HistoryQuery, link};
use std::sync::Arc;

pub async fn history(State(app): State<Arc<App>>, name: ChannelName, request: AblyRequest) -> Response {
    let result = page(&app, name, &request).await;
    request.finish(result)
}

async fn page(app: &App, name: ChannelName, request: &AblyRequest) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let channel = channel(name)?;
    let query = HistoryQuery::parse(request.pairs())?;
    let epoch = app.hub.epoch();
    let list = ListDestinationHistory {
        destination: channel.destination(),
        forwards: query.direction == Direction::Forwards,
        start: query.start,
        end: query.end,
        until: seq_of(query.until, epoch)?,
        cursor: seq_of(query.cursor, epoch)?,
        limit: query.limit,
    };
    let read = app.hub.read(&caller.caller, list).await;
    let found = read.map_err(|refusal| channel_error(&refusal))?;
    let last = found.messages.last().filter(|_| found.more);
    let next = last.map(|message| Position { epoch, seq: message.seq });
    let name = channel.name();
    let restored: Vec<Message<'_>> = found.messages.iter().map(|message| egress::restore(message)).collect();
    let frames =
        found.messages.iter().zip(&restored).filter_map(|(message, restored)| match &message.destination {
            Destination::Room(_) => room_frame(message, epoch, &name),
            Destination::Path(_) => Some(egress::path_frame(restored, message, epoch, &name)),
        });
    let messages: Vec<Message<'_>> = frames.flat_map(egress::in_history).collect();
    Ok(request.page(&messages, &link("messages", &parameters(request), next)))
}

/// The number of a position of this hub.
fn seq_of(position: Option<Position>, epoch: Epoch) -> Result<Option<Seq>, ErrorInfo> {
    match position {
        Some(position) if position.epoch != epoch => Err(ErrorInfo::new(
            codes::INVALID_PARAMETER,
            "The serial belongs to an earlier history of this hub",
        )),
        position => Ok(position.map(|position| position.seq)),
    }
}
