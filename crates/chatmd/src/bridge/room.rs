//! The connection of a bridge to its room.
//!
//! `client::Client` implements it over a WebSocket, for a bridge on another machine. The hub implements it over a feed,
//! for the bridges that it runs itself.

use parlor_model::Position;
use parlor_wire::broker::client::{HubFrame, Relay};

/// A line that is too long for a frame.
pub struct TooLarge;

/// A connection to a hub, authenticated as one account. Each request returns its number, and [`RoomConnection::next`]
/// returns its answer. The bridge bounds the number of open requests.
pub trait RoomConnection: Send {
    /// Follows the room from now on. The answer contains the position after which every message is pushed.
    fn listen(&mut self, room: &str) -> u64;

    fn members(&mut self, room: &str) -> u64;

    /// Requests at most `limit` messages after a position, or from the first message on.
    fn history(&mut self, room: &str, after: Option<Position>, limit: usize) -> u64;

    /// Posts a message for an author outside the hub. The hub receives messages in the order of these calls.
    fn relay(&mut self, relay: &Relay<'_>) -> Result<u64, TooLarge>;

    /// Returns the next answer or push. The error is the reason why the connection ended. Cancel-safe: no answer
    /// and no push is lost if the future is dropped.
    fn next(&mut self) -> impl Future<Output = Result<HubFrame, String>> + Send;

    /// Closes the connection. The hub might have stopped reading, so the caller sets a timeout.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}
