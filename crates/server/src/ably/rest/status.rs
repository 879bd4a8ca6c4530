//! `GET /channels/{channel}`: numbers of the subscribers and members of a channel.

use super::super::channel_error;
use super::super::http::AblyRequest;
use super::{ChannelName, authenticated, channel};
use crate::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use parlor_wire::ably::codes::ErrorInfo;
use parlor_wire::ably::rest::{ChannelStatus, Metrics, Occupancy, Status};
use std::sync::Arc;

pub async fn status(State(app): State<Arc<App>>, name: ChannelName, request: AblyRequest) -> Response {
    let result = answer(&app, name, &request).await;
    request.finish(result)
}

async fn answer(app: &App, name: ChannelName, request: &AblyRequest) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let channel = channel(name)?;
    let occupancy = app.hub.occupancy(&caller.caller, &channel.destination().path()).await;
    let occupancy = occupancy.map_err(|refusal| channel_error(&refusal))?;
    let metrics = Metrics {
        connections: occupancy.connections,
        // The hub does not record which connections of a channel could publish.
        publishers: occupancy.connections,
        subscribers: occupancy.subscribers,
        presence_connections: occupancy.member_connections,
        presence_members: occupancy.members,
        presence_subscribers: occupancy.presence_subscribers,
    };
    let is_active = occupancy.connections > 0 || occupancy.members > 0;
    let status = Status { is_active, occupancy: Occupancy { metrics } };
    Ok(request.success(StatusCode::OK, &ChannelStatus { channel_id: &channel.name(), status }))
}
