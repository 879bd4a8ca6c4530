//! What is announced is what the log tells afterwards: who resumes sees what who stayed saw.

use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_model::command::{AgentProfile, NewSignIn, NewUser, RoomChanges};
use parlor_model::{
    AgentId, Caller, Command, Epoch, Event, EventAudience, LoggedEvent, Member, MemberChange, MemberId,
    Receipt, Room, RoomRole, SecretHash, Seq, SiteRole, Time, UserId,
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

pub async fn person(test_hub: &TestHub, name: &str, byte: u8) -> (UserId, Caller) {
    let (username, password_hash) = (name.into(), "hash".into());
    let account = NewUser { username, display_name: None, role: SiteRole::User, password_hash };
    let created = test_hub.hub().execute(&Caller::OPERATOR, Command::CreateUser(account)).await;
    let Ok(Receipt::User(user)) = created else { panic!("an account: {created:?}") };
    let new = NewSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([byte; 32]),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: Time(NOW.0 + 1_000_000_000),
    };
    let signed_in = test_hub.hub().execute(&Caller::ANONYMOUS, Command::SignIn(new)).await;
    let Ok(Receipt::SignedIn { sign_in, .. }) = signed_in else { panic!("a sign-in: {signed_in:?}") };
    (user.id.clone(), Caller::person(user.id.clone(), sign_in.id.clone()))
}

pub async fn room(test_hub: &TestHub, owner: &Caller, members: Vec<MemberId>) -> Arc<Room> {
    let changes = RoomChanges { name: Some("A room".into()), ..Default::default() };
    let created = test_hub.hub().execute(owner, Command::CreateRoom { changes, members }).await;
    let Ok(Receipt::Room(room)) = created else { panic!("a room: {created:?}") };
    room
}

pub async fn done(test_hub: &TestHub, caller: &Caller, command: Command) {
    test_hub.hub().execute(caller, command).await.unwrap();
}

/// The news since the last time, which the log tells alike; it does not know any more who knew of an agent that is gone.
fn told(test_hub: &TestHub) -> Vec<Event> {
    let news = test_hub.news();
    let before = Seq(news.first().expect("something was announced").seq.0 - 1);
    let log: Vec<LoggedEvent> = test_hub.read(|s| s.tail(before, usize::MAX));
    let kept = |logged_event: &LoggedEvent| match &logged_event.event {
        Event::AgentRemoved { agent, .. } => {
            let event =
                Event::AgentRemoved { agent: agent.clone(), circle: Arc::new(EventAudience::everyone()) };
            LoggedEvent { event, ..logged_event.clone() }
        }
        _ => logged_event.clone(),
    };
    assert_eq!(news.iter().map(kept).collect::<Vec<_>>(), log);
    news.into_iter().map(|logged_event| logged_event.event).collect()
}

fn changes(told: &[Event]) -> Vec<(MemberChange, &[Member])> {
    let mut changes = Vec::new();
    for event in told {
        if let Event::MembersChanged { change, members, .. } = event {
            changes.push((change.clone(), &**members));
        }
    }
    changes
}

#[test]
fn a_newcomer_does_not_change_the_room() {
    each(async |test_hub| {
        let (_, ann) = person(test_hub, "ann", 1).await;
        let (bob, _) = person(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![]).await;
        test_hub.news();
        let (member, role) = (MemberId::User(bob), RoomRole::Member);
        done(
            test_hub,
            &ann,
            Command::AddMember { room: room.id.clone(), member: member.clone(), role, description: None },
        )
        .await;
        let told = told(test_hub);
        assert!(matches!(&told[..], [Event::MembersChanged { room: told, .. }] if *told == room));
        assert_eq!(changes(&told)[0].0, MemberChange::Added(member));
    });
}

#[test]
fn an_heir_is_told_as_the_owner_while_the_rest_leaves() {
    each(async |test_hub| {
        let (ann_id, ann) = person(test_hub, "ann", 1).await;
        let (bob_id, _) = person(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![MemberId::User(bob_id.clone())]).await;
        let id = AgentId::stored("coder");
        let (profile, subscriptions) = (AgentProfile::default(), Vec::new());
        done(test_hub, &ann, Command::CreateAgent { id: id.clone(), profile, subscriptions }).await;
        let (member, role) = (MemberId::Agent(id.clone()), RoomRole::Member);
        done(test_hub, &ann, Command::AddMember { room: room.id.clone(), member, role, description: None })
            .await;
        test_hub.news();

        done(test_hub, &Caller::OPERATOR, Command::RemoveUser { user: ann_id.clone() }).await;
        let told = told(test_hub);
        let changes = changes(&told);
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
fn the_agents_of_a_person_leave_the_room_with_them() {
    each(async |test_hub| {
        let (_, ann) = person(test_hub, "ann", 1).await;
        let (bob_id, bob) = person(test_hub, "bob", 2).await;
        let room = room(test_hub, &ann, vec![MemberId::User(bob_id.clone())]).await;
        let id = AgentId::stored("coder");
        let (profile, subscriptions) = (AgentProfile::default(), Vec::new());
        done(test_hub, &bob, Command::CreateAgent { id: id.clone(), profile, subscriptions }).await;
        let role = RoomRole::Admin;
        let promoted = MemberId::User(bob_id.clone());
        done(
            test_hub,
            &ann,
            Command::ChangeMember {
                room: room.id.clone(),
                member: promoted,
                role: Some(role),
                description: None,
            },
        )
        .await;
        let (member, role) = (MemberId::Agent(id.clone()), RoomRole::Member);
        done(test_hub, &bob, Command::AddMember { room: room.id.clone(), member, role, description: None })
            .await;
        test_hub.news();

        let member = MemberId::User(bob_id.clone());
        done(test_hub, &ann, Command::RemoveMember { room: room.id.clone(), member: member.clone() }).await;
        let told = told(test_hub);
        let gone: Vec<_> = changes(&told).into_iter().map(|(change, _)| change).collect();
        assert_eq!(gone, [MemberChange::Removed(member), MemberChange::Removed(MemberId::Agent(id))]);
    });
}
