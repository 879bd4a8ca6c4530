//! Numbers of subscribers and members of a place.

use crate::Hub;
use crate::feed::topic_subscribers::TopicSubscriber;
use crate::feed::{Kinds, SubscriberId};
use parlor_model::query::MayReadOccupancy;
use parlor_model::{Caller, Path, Refusal};
use std::collections::HashSet;

/// Numbers of a place at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Connections with an open feed of the place.
    pub connections: u64,
    /// Connections that receive its messages, and connections that receive its presence set.
    pub subscribers: u64,
    pub presence_subscribers: u64,
    /// Members that have entered, without those that the hub derives, and the number of their connections.
    pub members: u64,
    pub member_connections: u64,
}

impl Hub {
    pub async fn occupancy(&self, caller: &Caller, place: &Path) -> Result<Occupancy, Refusal> {
        self.may(caller, MayReadOccupancy { place: place.clone() }).await?;
        let state = self.fanout().state.lock();
        let (mut connections, mut occupancy) = (HashSet::<SubscriberId>::new(), Occupancy::default());
        let mut count = |subscriber: &TopicSubscriber| {
            connections.insert(subscriber.id);
            occupancy.subscribers += u64::from(subscriber.kinds.includes(Kinds::MESSAGES));
            occupancy.presence_subscribers += u64::from(subscriber.kinds.includes(Kinds::PRESENCE));
        };
        match place.room() {
            Some(room) => state.rooms.each(&room, &mut count),
            None => state.paths.each(place, &mut count),
        }
        occupancy.connections = connections.len() as u64;
        let members: Vec<&str> =
            state.occupants.sets.in_place(place).map(|(_, occupant)| &*occupant.connection).collect();
        occupancy.members = members.len() as u64;
        occupancy.member_connections = members.into_iter().collect::<HashSet<_>>().len() as u64;
        Ok(occupancy)
    }
}
