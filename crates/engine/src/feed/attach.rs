//! Opens the feed of a single room or path.

use super::backlog::{Backlog, check_position};
use super::subscribe::{Subscribed, Subscription, Topics};
use super::{Kinds, LiveFrame, OpenedFrame, Resync, RoomFilter, Since, Subscriber};
use crate::paths::on_path;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{MessageRange, Snapshot};
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Hub};
use parlor_model::query::MayFollowRoom;
use parlor_model::{Caller, Destination, Operation, Position, Refusal, Seq};

/// Maximum number of earlier messages with which a feed begins.
const MAX_NEWEST: usize = 1000;

/// Start of a feed, and the frames before and after its missed events.
#[derive(Clone)]
pub struct Start {
    pub since: Since,
    /// Set if the position to resume from was unknown, and the feed begins now instead.
    pub resync: Option<Resync>,
    pub opened: Option<OpenedFrame>,
    pub live: Option<LiveFrame>,
}

/// Evidence that the caller may follow a room or path.
struct Followed {
    /// Position before the first earlier message of the feed; `None` if the feed has no earlier messages.
    rewound: Option<Seq>,
    /// Whether the role of the user permits the feed, not a grant.
    by_role: bool,
}

impl Hub {
    /// Subscribes a connection to a room or path. The events after the start are sent first, without gap or duplicate.
    pub(super) async fn attach(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        topic: &Destination,
        start: Start,
    ) -> Result<(), Refusal> {
        let Start { since, resync, mut opened, live } = start;
        let mut from = None;
        loop {
            let (who, what, kinds) = (caller.clone(), topic.clone(), subscriber.kinds);
            let read = move |hub: &Hub, snapshot: &mut dyn Snapshot| {
                hub.followed(&who, &what, kinds, since, snapshot)
            };
            let (reservation, Followed { rewound, by_role }, head) =
                self.reserve(&subscriber.user, None, read).await?;
            let position = match since {
                Since::After(position) => Some(position),
                // The log may be shorter than the history.
                Since::Newest(_) | Since::From(_) => {
                    rewound.map(|seq| Position { epoch: head.epoch, seq: seq.max(head.trimmed_through) })
                }
                Since::Now => None,
            };
            if let (Some(position), None) = (position, from) {
                check_position(position, head)?;
                from = Some(position.seq);
                // The replay covers everything after the position, so the connection must not receive live events
                // at the same time. Without a position, an existing subscription continues: events missed during
                // an interruption could not be replayed.
                self.fanout().leave(subscriber.id, topic);
            }
            let topics = match topic {
                Destination::Room(room) => {
                    Topics::Rooms { rooms: std::slice::from_ref(room), following: None }
                }
                Destination::Path(path) => Topics::Path { path, by_role },
            };
            let subscription = Subscription {
                id: subscriber.id,
                topics,
                kinds: subscriber.kinds,
                since: from,
                resync,
                opened: opened.as_ref(),
                live: live.as_ref(),
            };
            match self.fanout().subscribe(&reservation, &subscription) {
                Subscribed::Live => return Ok(()),
                Subscribed::Invalid => {}
                Subscribed::NeedsFacts => self.load_present_users().await?,
                Subscribed::Disconnected => {
                    return Err(match topic {
                        Destination::Room(room) => Refusal::NotAMember { room: room.clone() },
                        Destination::Path(_) => Refusal::NotSignedIn,
                    });
                }
                Subscribed::NeedsReplay => {
                    let backlog = match topic {
                        Destination::Room(room) => Backlog::Rooms(RoomFilter::Only(room.clone())),
                        Destination::Path(path) => Backlog::Path(path.clone()),
                    };
                    let after = from.unwrap_or_default();
                    self.send_opened(subscriber, opened.take(), after);
                    from = Some(self.send_missed(caller, subscriber, &backlog, after).await?);
                }
            }
        }
    }

    /// Whether the caller may follow a room or path, and where its feed begins.
    fn followed(
        &self,
        caller: &Caller,
        topic: &Destination,
        kinds: Kinds,
        since: Since,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Result<Followed, Refusal>, Fault> {
        let permitted = self.with_view(caller, snapshot, |caller, view| {
            PermitError::split(permit(caller, topic, kinds, view))
        })?;
        let (cleared_through, by_role) = match permitted {
            Ok(permitted) => permitted,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let rewound = rewound(topic, cleared_through, since, snapshot)?;
        Ok(Ok(Followed { rewound, by_role }))
    }
}

/// Requires a caller that may follow the room or path. A feed of a room without kinds receives only the loss of the
/// room, so it needs any right in the room. Returns the position through which the caller has cleared the
/// history, and whether the role of the caller permits the feed, not a grant.
fn permit(
    caller: &CallerContext,
    topic: &Destination,
    kinds: Kinds,
    view: &mut ReadView<'_>,
) -> Result<(Seq, bool), PermitError> {
    match topic {
        Destination::Room(room) if kinds == Kinds::NONE => {
            let operations = [Operation::Subscribe, Operation::Publish, Operation::Presence];
            view.at_room_for_any(caller, &operations, room)?;
            Ok((Seq(0), false))
        }
        Destination::Room(room) => {
            MayFollowRoom { room: room.clone() }.permit(caller, view)?;
            let user = caller.caller.user().ok_or(Refusal::NotSignedIn)?;
            let member = view.member(room, user)?;
            Ok((member.map_or(Seq(0), |member| member.room_preferences.cleared_through), false))
        }
        Destination::Path(path) => {
            let auth = on_path(caller, Operation::Subscribe, path)?;
            Ok((Seq(0), !auth.is_limited()))
        }
    }
}

/// Returns the position before the first earlier message of a feed; `None` if no message precedes the feed, or if
/// `since` is a position or now.
fn rewound(
    topic: &Destination,
    cleared_through: Seq,
    since: Since,
    snapshot: &mut dyn Snapshot,
) -> Result<Option<Seq>, Fault> {
    let range = MessageRange { after: cleared_through, ..MessageRange::all_of(topic) };
    let first = match since {
        Since::Now | Since::After(_) => None,
        Since::Newest(count) => snapshot.messages_in_range(&range, count.min(MAX_NEWEST))?.pop(),
        Since::From(time) => {
            let range = MessageRange { start: Some(time), forwards: true, ..range };
            snapshot.messages_in_range(&range, 1)?.pop()
        }
    };
    Ok(first.map(|message| Seq(message.seq.0.saturating_sub(1))))
}
