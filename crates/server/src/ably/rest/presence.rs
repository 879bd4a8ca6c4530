//! Presence over REST: the members of a channel, their recent changes, and the members of several channels.

use super::super::channel_error;
use super::super::credentials::AblyCaller;
use super::super::http::AblyRequest;
use super::{ChannelName, authenticated, channel, parameters};
use crate::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use parlor_engine::feed::OccupantHistory;
use parlor_model::{Occupant, OccupantChange, Position, Seq};
use parlor_wire::ably::channel::{Channel, QualifiedChannel};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::PresenceMessage;
use parlor_wire::ably::occupants;
use parlor_wire::ably::presence::PresenceAction;
use parlor_wire::ably::rest::{BatchPresence, BatchPresenceItem, Direction, HistoryQuery, link};
use std::sync::Arc;

/// Maximum number of channels of one batch request.
const MAX_CHANNELS: usize = 100;
/// Maximum bytes of the members in one answer.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

pub async fn members(State(app): State<Arc<App>>, name: ChannelName, request: AblyRequest) -> Response {
    let result = page_of_members(&app, name, &request).await;
    request.finish(result)
}

async fn page_of_members(app: &App, name: ChannelName, request: &AblyRequest) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let channel = channel(name)?;
    let query = HistoryQuery::parse(request.pairs())?;
    let (client, connection) = (request.parameter("clientId"), request.parameter("connectionId"));
    let mut occupants = occupants_of(app, &caller, &channel).await?;
    occupants.retain(|occupant| {
        client.is_none_or(|client| *occupant.client == *client)
            && connection.is_none_or(|connection| *occupant.connection == *connection)
    });
    // The cursor is the number of members on earlier pages.
    let skipped = query.cursor.map_or(0, |cursor| cursor.seq.0 as usize);
    let mut budget = MAX_ANSWER_BYTES;
    let page = occupants.iter().skip(skipped).take(query.limit);
    let page: Vec<_> = page.take_while(|occupant| is_within(&mut budget, occupant)).collect();
    let end = skipped.saturating_add(page.len());
    let next = (occupants.len() > end).then(|| numbered(app, end as u64));
    let members: Vec<PresenceMessage<'_>> = page
        .into_iter()
        .map(|occupant| occupants::message(occupant, PresenceAction::Present, &channel))
        .collect();
    Ok(request.page(&members, &link("presence", &parameters(request), next)))
}

async fn occupants_of(
    app: &App,
    caller: &AblyCaller,
    channel: &Channel,
) -> Result<Vec<Arc<Occupant>>, ErrorInfo> {
    let found = app.hub.occupants(&caller.caller, &channel.destination().path()).await;
    found.map_err(|refusal| channel_error(&refusal))
}

/// Takes the bytes of a member from what is left of an answer. Returns `false` if nothing was left. The last member may
/// exceed the limit, so that every page has at least one.
fn is_within(budget: &mut usize, occupant: &Occupant) -> bool {
    let has_space = *budget > 0;
    *budget = budget.saturating_sub(occupant.length());
    has_space
}

/// Converts a number to the position in a link.
fn numbered(app: &App, number: u64) -> Position {
    Position { epoch: app.hub.epoch(), seq: Seq(number) }
}

pub async fn history(State(app): State<Arc<App>>, name: ChannelName, request: AblyRequest) -> Response {
    let result = page_of_history(&app, name, &request).await;
    request.finish(result)
}

async fn page_of_history(app: &App, name: ChannelName, request: &AblyRequest) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let channel = channel(name)?;
    let query = HistoryQuery::parse(request.pairs())?;
    let history = OccupantHistory {
        forwards: query.direction == Direction::Forwards,
        start: query.start,
        end: query.end,
        cursor: query.cursor.map(|cursor| cursor.seq.0),
        // One more record than the page shows whether another page follows.
        limit: query.limit + 1,
    };
    let place = channel.destination().path();
    let found = app.hub.presence_history(&caller.caller, &place, history).await;
    let mut records = found.map_err(|refusal| channel_error(&refusal))?;
    let has_more = records.len() > query.limit;
    records.truncate(query.limit);
    let next = records.last().filter(|_| has_more).map(|last| numbered(app, last.number));
    let messages: Vec<PresenceMessage<'_>> = records
        .iter()
        .map(|record| {
            let action = match record.change {
                OccupantChange::Entered => PresenceAction::Enter,
                OccupantChange::Updated => PresenceAction::Update,
                OccupantChange::Left => PresenceAction::Leave,
            };
            occupants::message(&record.occupant, action, &channel)
        })
        .collect();
    // The client sends the query of a link to the path of the request, whose last segment is the resource.
    Ok(request.page(&messages, &link("history", &parameters(request), next)))
}

/// `GET /presence`: the members of several channels.
pub async fn batch(State(app): State<Arc<App>>, request: AblyRequest) -> Response {
    let result = batch_of(&app, &request).await;
    request.finish(result)
}

async fn batch_of(app: &App, request: &AblyRequest) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let mut names: Vec<&str> = Vec::new();
    for name in request.parameter("channels").unwrap_or_default().split(',').take(MAX_CHANNELS + 1) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() || names.len() > MAX_CHANNELS {
        return Err(ErrorInfo::new(codes::INVALID_PARAMETER, "channels must name 1 to 100 channels"));
    }
    let (mut found, mut budget) = (Vec::with_capacity(names.len()), MAX_ANSWER_BYTES);
    for name in names {
        let members = async {
            let channel = QualifiedChannel::parse(name)?.channel;
            let occupants = occupants_of(app, &caller, &channel).await?;
            if !occupants.iter().all(|occupant| is_within(&mut budget, occupant)) {
                return Err(ErrorInfo::new(
                    codes::TOO_LARGE,
                    "The members of the channels exceed the answer",
                ));
            }
            Ok::<_, ErrorInfo>((channel, occupants))
        };
        found.push((name, members.await));
    }
    let results = found.iter().map(|(name, members)| match members {
        Ok((channel, occupants)) => BatchPresenceItem::Members {
            channel: (*name).into(),
            presence: occupants
                .iter()
                .map(|occupant| occupants::message(occupant, PresenceAction::Present, channel))
                .collect(),
        },
        Err(error) => BatchPresenceItem::Failed { channel: (*name).into(), error: error.clone() },
    });
    Ok(request.success(StatusCode::OK, &BatchPresence::of(results.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{OccupantSource, Time};

    #[test]
    fn a_page_has_at_least_one_member_also_if_it_exceeds_the_limit() {
        let data = Some(parlor_model::Payload("\"".repeat(50).into()));
        let occupant = Occupant {
            connection: "c".into(),
            client: "ann".into(),
            id: "c:0:0".into(),
            order: Some((0, 0)),
            at: Time(0),
            source: OccupantSource::Client { data },
        };
        let mut budget = occupant.length() - 1;
        assert!(is_within(&mut budget, &occupant));
        assert!(!is_within(&mut budget, &occupant));
        let mut budget = occupant.length() + 1;
        assert!(is_within(&mut budget, &occupant) && is_within(&mut budget, &occupant));
        assert!(!is_within(&mut budget, &occupant));
    }
}
