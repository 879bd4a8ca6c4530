//! Published events equal the logged events, so that a resuming client receives the same events as a
//! connected one.

use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_engine::commands;
use parlor_model::command::{
    AddMember, AgentProfile, ChangeMember, CreateAgent, CreateRoom, CreateSignIn, CreateUser, NewUser,
    RemoveMember, RemoveUser, RoomChanges, SignedIn,
};
use parlor_model::{
    AgentId, Caller, Edit, Epoch, Event, EventAudience, LoggedEvent, Member, MemberChange, MemberId, Room,
    RoomRole, SecretHash, Seq, SiteRole, Time, UserId,
};
use std::sync::Arc;

pub const NOW: Time = Time(1_700_000_000_000_000);

/// Runs a test on a hub over each store.
pub fn each(test: impl AsyncFn(&TestHub)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for kind in kinds() {
        println!("store: {}", kind.name);
        runtime.block_on(async {
            let mut test_hub = TestHub::open((kind.make)(Epoch(1)), NOW);
            test(&test_hub).await;
            test_hub.close().await;
        });
    }
}

pub async fn signed_in_user(test_hub: &TestHub, name: &str, byte: u8) -> (UserId, Caller) {
    let (username, password_hash) = (name.into(), "hash".into());
    let account = NewUser { username, display_name: None, role: SiteRole::User, password_hash };
    let user = test_hub.hub().execute(&Caller::OPERATOR, CreateUser { account }).await.unwrap();
    let new = CreateSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([byte; 32]),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: Time(NOW.0 + 1_000_000_000),
    };
    let SignedIn { sign_in, .. } = test_hub.hub().execute(&Caller::ANONYMOUS, new).await.unwrap();
    (user.id.clone(), Caller::person(user.id.clone(), sign_in.id.clone()))
}

pub async fn room(test_hub: &TestHub, owner: &Caller, members: Vec<MemberId>) -> Arc<Room> {
    let changes = RoomChanges { name: Some("A room".into()), ..Default::default() };
    test_hub.hub().execute(owner, CreateRoom { changes, members }).await.unwrap()
}

pub async fn execute(test_hub: &TestHub, caller: &Caller, command: impl commands::Command) {
    test_hub.hub().execute(caller, command).await.map(drop).unwrap();
}

/// Takes the events published since the last call and checks that the log returns the same events. The log
/// does not store the audience of a removed agent.
fn published_events(test_hub: &TestHub) -> Vec<Event> {
    let published = test_hub.published();
    let before = Seq(published.first().expect("at least one event was published").seq.0 - 1);
    let log: Vec<LoggedEvent> = test_hub.read(|s| s.tail(before, usize::MAX));
    let as_logged = |logged_event: &LoggedEvent| match &logged_event.event {
        Event::AgentRemoved { agent, .. } => {
            let event =
                Event::AgentRemoved { agent: agent.clone(), audience: Arc::new(EventAudience::everyone()) };
            LoggedEvent { event, ..logged_event.clone() }
        }
        _ => logged_event.clone(),
    };
    assert_eq!(published.iter().map(as_logged).collect::<Vec<_>>(), log);
    published.into_iter().map(|logged_event| logged_event.event).collect()
}

fn changes(events: &[Event]) -> Vec<(MemberChange, &[Member])> {
    let mut changes = Vec::new();
    for event in events {
        if let Event::MembersChanged { change, members, .. } = event {
            changes.push((change.clone(), &**members));
        }
    }
    changes
}

#[test]
fn adding_a_member_publishes_no_room_change() {
    each(async |test_hub| {
        let (_, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (bob, _) = signed_in_user(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![]).await;
        test_hub.published();
        let (member, role) = (MemberId::User(bob), RoomRole::Member);
        execute(
            test_hub,
            &ann,
            AddMember { room: room.id.clone(), member: member.clone(), role, description: None },
        )
        .await;
        let events = published_events(test_hub);
        assert!(matches!(&events[..], [Event::MembersChanged { room: changed, .. }] if *changed == room));
        assert_eq!(changes(&events)[0].0, MemberChange::Added(member));
    });
}

#[test]
fn the_new_owner_is_published_before_the_members_who_leave() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (bob_id, _) = signed_in_user(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![MemberId::User(bob_id.clone())]).await;
        let id = AgentId::stored("coder");
        let (profile, subscriptions) = (AgentProfile::default(), Vec::new());
        execute(test_hub, &ann, CreateAgent { id: id.clone(), profile, subscriptions }).await;
        let (member, role) = (MemberId::Agent(id.clone()), RoomRole::Member);
        execute(test_hub, &ann, AddMember { room: room.id.clone(), member, role, description: None }).await;
        test_hub.published();

        execute(test_hub, &Caller::OPERATOR, RemoveUser { user: ann_id.clone() }).await;
        let events = published_events(test_hub);
        let changes = changes(&events);
        assert_eq!(
            changes.iter().map(|(change, _)| change.clone()).collect::<Vec<_>>(),
            [
                MemberChange::Changed(MemberId::User(bob_id.clone())),
                MemberChange::Removed(MemberId::User(ann_id)),
                MemberChange::Removed(MemberId::Agent(id)),
            ]
        );
        for (_, members) in changes {
            assert!(
                matches!(members, [only] if only.member.user() == Some(&bob_id) && only.role == RoomRole::Owner)
            );
        }
    });
}

#[test]
fn agents_leave_a_room_with_their_owner() {
    each(async |test_hub| {
        let (_, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (bob_id, bob) = signed_in_user(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![MemberId::User(bob_id.clone())]).await;
        let id = AgentId::stored("coder");
        let (profile, subscriptions) = (AgentProfile::default(), Vec::new());
        execute(test_hub, &bob, CreateAgent { id: id.clone(), profile, subscriptions }).await;
        let role = RoomRole::Admin;
        let promoted = MemberId::User(bob_id.clone());
        execute(
            test_hub,
            &ann,
            ChangeMember {
                room: room.id.clone(),
                member: promoted,
                role: Some(role),
                description: Edit::Keep,
            },
        )
        .await;
        let (member, role) = (MemberId::Agent(id.clone()), RoomRole::Member);
        execute(test_hub, &bob, AddMember { room: room.id.clone(), member, role, description: None }).await;
        test_hub.published();

        let member = MemberId::User(bob_id.clone());
        execute(test_hub, &ann, RemoveMember { room: room.id.clone(), member: member.clone() }).await;
        let events = published_events(test_hub);
        let removed: Vec<_> = changes(&events).into_iter().map(|(change, _)| change).collect();
        assert_eq!(removed, [MemberChange::Removed(member), MemberChange::Removed(MemberId::Agent(id))]);
    });
}
