//! Lists the events that a protocol has no frame for, so that a missing frame is a decision and not an oversight.

use crate::check;
use crate::samples::{EPOCH, events, logged};
use parlor_model::Event;
use parlor_wire::events::egress::Filter;
use parlor_wire::{agentim, broker, events as chat_events};
use std::collections::{BTreeMap, BTreeSet};

macro_rules! names {
    ($($name:ident),+ $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),+];

        fn name(event: &Event) -> &'static str {
            match event { $(Event::$name { .. } => stringify!($name),)+ }
        }
    };
}

// A new event does not compile until it is here, and fails the test until it is among the samples.
names!(
    MessagePosted,
    MailResent,
    MessageEdited,
    MessageDeleted,
    ReactionsChanged,
    MessagePinned,
    MessageUnpinned,
    BookmarkChanged,
    RoomChanged,
    RoomRemoved,
    MembersChanged,
    RoomRead,
    RoomPreferencesChanged,
    RoomCleared,
    TaskChanged,
    TaskRemoved,
    UserChanged,
    UserRemoved,
    SignInsEnded,
    SignInEnded,
    KeyRevoked,
    TokensRevoked,
    AgentChanged,
    AgentRemoved,
    SettingsChanged,
    RunChanged,
    ApprovalAsked,
    ApprovalDecided,
    PlanChanged,
    Tombstone,
);

#[test]
fn events_without_a_frame_are_listed_for_each_protocol() {
    let mut with_frame: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut sampled = BTreeSet::new();
    for event in events() {
        let name = name(&event);
        sampled.insert(name);
        let logged = logged(event);
        let filter = Filter::default();
        for (protocol, has_frame) in [
            ("agentim", agentim::egress::event(&logged, EPOCH).is_some()),
            ("broker rooms", broker::rooms::event(&logged, EPOCH).is_some()),
            ("chat events", !chat_events::egress::event(&logged, EPOCH, &filter, None).is_empty()),
        ] {
            let names = with_frame.entry(protocol).or_default();
            if has_frame {
                names.insert(name);
            }
        }
    }
    assert_eq!(sampled, NAMES.iter().copied().collect(), "every event needs a sample");
    let without = with_frame.iter().flat_map(|(protocol, names)| {
        NAMES.iter().filter(|name| !names.contains(*name)).map(move |name| format!("{protocol}: {name}"))
    });
    check("events-without-frame.txt", &without.collect::<Vec<_>>());
}
