//! Whom a routed message reaches, through a whole hub: who may know of whom decides.

use super::news::{done, each, person, room};
use crate::test_hub::TestHub;
use parlor_model::command::{AgentProfile, UserChanges};
use parlor_model::{
    AgentId, Caller, Command, EntityKind, Mailbox, MemberId, Path, Pattern, Payload, Receipt, Refusal,
    RoomId, RoomRole, Route, Scope, SecretHash, SessionId, SiteRole, UserId,
};

pub async fn agent(house: &TestHub, owner: &Caller, id: &str, patterns: &[&str]) {
    let subscriptions = patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    let (id, profile) = (AgentId::stored(id), AgentProfile::default());
    done(house, owner, Command::CreateAgent { id, profile, subscriptions }).await;
}

async fn join(house: &TestHub, owner: &Caller, room: &RoomId, agent: &str) {
    let (member, role) = (MemberId::Agent(AgentId::stored(agent)), RoomRole::Member);
    done(house, owner, Command::AddMember { room: room.clone(), member, role, description: None }).await;
}

async fn change(house: &TestHub, user: &UserId, changes: UserChanges) {
    done(house, &Caller::OPERATOR, Command::ChangeUser { user: user.clone(), changes }).await;
}

async fn make(house: &TestHub, user: &UserId, role: SiteRole) {
    change(house, user, UserChanges { role: Some(role), ..Default::default() }).await;
}

/// Who may speak as a source: a key of this person, who becomes an admin.
async fn bridge(house: &TestHub, owner: &UserId) -> Caller {
    make(house, owner, SiteRole::Admin).await;
    let scopes = vec![Scope::Sources];
    let secret = SecretHash([99; 32]);
    let create = Command::CreateKey { owner: Some(owner.clone()), name: "bridge".into(), scopes, secret };
    let created = house.hub().execute(&Caller::OPERATOR, create).await;
    let Ok(Receipt::Key(key)) = created else { panic!("a key: {created:?}") };
    Caller::program(owner.clone(), key.id.clone())
}

pub async fn send(house: &TestHub, caller: &Caller, from: &str, path: &str) -> Vec<String> {
    send_with(house, caller, from, path, "{}").await
}

/// The mailboxes that got a copy.
pub async fn send_with(
    house: &TestHub,
    caller: &Caller,
    from: &str,
    path: &str,
    payload: &str,
) -> Vec<String> {
    let route = Command::Route(Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload(payload.into()),
        text: Some("hello".into()),
        source: "test".into(),
        external_id: None,
    });
    let sent = house.hub().execute(caller, route).await;
    let Ok(Receipt::Posted(posted)) = sent else { panic!("sent: {sent:?}") };
    let name = |mailbox: &Mailbox| match &mailbox.session {
        Some(session) => format!("{}:{session}", mailbox.agent),
        None => mailbox.agent.to_string(),
    };
    posted.deliveries.iter().map(|copy| name(&copy.mailbox)).collect()
}

const NOBODY: [&str; 0] = [];

#[test]
fn an_agent_of_another_is_reached_from_a_common_room_only() {
    each(async |house| {
        let (ann_id, ann) = person(house, "ann", 1).await;
        let (_, bob) = person(house, "bob", 2).await;
        agent(house, &ann, "coder", &[]).await;
        agent(house, &ann, "coder/sub", &[]).await;
        agent(house, &bob, "writer", &["slack/**"]).await;
        assert_eq!(send(house, &ann, "coder", "agent/coder/sub").await, ["coder/sub"], "one's own");
        for path in ["agent/writer", "agent/**", "agent/w*", "slack/team"] {
            assert!(!send(house, &ann, "coder", path).await.contains(&"writer".into()), "{path}");
        }
        let room = room(house, &bob, vec![MemberId::User(ann_id.clone())]).await;
        assert_eq!(send(house, &ann, "coder", "agent/writer").await, NOBODY, "it is its owner who is near");
        join(house, &bob, &room.id, "writer").await;
        assert_eq!(send(house, &ann, "coder", "agent/writer").await, ["writer"]);
        assert_eq!(send(house, &ann, "coder", "agent/**").await, ["coder/sub", "writer"]);
        assert_eq!(send(house, &ann, "coder", "slack/team").await, ["writer"]);
        assert_eq!(send(house, &bob, "writer", "agent/coder").await, NOBODY, "coder is in no room of Bob's");
        let member = MemberId::User(ann_id);
        done(house, &bob, Command::RemoveMember { room: room.id.clone(), member }).await;
        assert_eq!(send(house, &ann, "coder", "agent/writer").await, NOBODY);
    });
}

#[test]
fn what_is_sent_to_an_agent_is_overheard_only_by_agents_of_its_owner() {
    each(async |house| {
        let (ann_id, ann) = person(house, "ann", 1).await;
        let (_, bob) = person(house, "bob", 2).await;
        agent(house, &ann, "coder", &[]).await;
        agent(house, &ann, "spy", &["agent/**", "agent/writer", "**"]).await;
        agent(house, &bob, "writer", &[]).await;
        agent(house, &bob, "reader", &["agent/**"]).await;
        let room = room(house, &bob, vec![MemberId::User(ann_id.clone())]).await;
        join(house, &bob, &room.id, "writer").await;
        assert_eq!(send(house, &ann, "coder", "agent/writer").await, ["reader", "writer"]);
        assert_eq!(send(house, &bob, "writer", "agent/reader").await, ["reader"]);
        let source = bridge(house, &ann_id).await;
        assert_eq!(send(house, &source, "slack-bridge", "agent/writer").await, ["reader", "writer"]);
        assert_eq!(send(house, &source, "slack-bridge", "agent/coder").await, ["coder", "spy"]);
        assert_eq!(send(house, &source, "slack-bridge", "agent/nobody").await, NOBODY, "not even by **");
        let outside = send(house, &source, "slack-bridge", "email/a").await;
        assert_eq!(outside, ["spy"], "what comes from outside is heard by her own who listen");
    });
}

#[test]
fn a_source_is_heard_by_agents_whose_owner_may_hear_it() {
    each(async |house| {
        let (ann_id, ann) = person(house, "ann", 1).await;
        let (bob_id, bob) = person(house, "bob", 2).await;
        let (cid_id, cid) = person(house, "cid", 3).await;
        for (owner, id) in [(&ann, "anns"), (&bob, "bobs"), (&cid, "cids")] {
            agent(house, owner, id, &["**"]).await;
        }
        let source = bridge(house, &ann_id).await;
        assert_eq!(send(house, &source, "bridge", "slack/team/x").await, ["anns"], "hers, and no other");
        let hears = |patterns: &[&str]| UserChanges {
            hears: Some(patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect()),
            ..Default::default()
        };
        change(house, &bob_id, hears(&["email/**", "slack/team/*"])).await;
        assert_eq!(send(house, &source, "bridge", "slack/team/x").await, ["anns", "bobs"]);
        assert_eq!(send(house, &source, "bridge", "email/any/thing").await, ["anns", "bobs"]);
        for path in ["slack/team/x/y", "slack/other/x", "slack/**"] {
            assert_eq!(send(house, &source, "bridge", path).await, ["anns"], "{path}");
        }
        assert_eq!(send(house, &ann, "anns", "slack/team/x").await, ["anns"], "agents are no sources");
        make(house, &cid_id, SiteRole::Admin).await;
        assert_eq!(send(house, &source, "bridge", "slack/other/x").await, ["anns", "cids"], "an admin's");
        change(house, &bob_id, hears(&[])).await;
        assert_eq!(send(house, &source, "bridge", "slack/team/x").await, ["anns", "cids"]);
    });
}

#[test]
fn a_key_gives_no_more_than_its_owner_has_by_now() {
    each(async |house| {
        let (ann_id, _) = person(house, "ann", 1).await;
        let (bob_id, _) = person(house, "bob", 2).await;
        make(house, &bob_id, SiteRole::Admin).await;
        let source = bridge(house, &ann_id).await;
        assert_eq!(send(house, &source, "bridge", "slack/x").await, NOBODY);
        make(house, &ann_id, SiteRole::User).await;
        let route = |path| {
            Command::Route(Route {
                from: "bridge".into(),
                path: Path::parse(path).unwrap(),
                command: "say".into(),
                payload: Payload("{}".into()),
                text: None,
                source: "test".into(),
                external_id: None,
            })
        };
        let refused = house.hub().execute(&source, route("slack/x")).await;
        assert_eq!(refused, Err(Refusal::NotFound(EntityKind::Agent)), "she speaks as no source any more");
        make(house, &ann_id, SiteRole::Admin).await;
        assert!(house.hub().execute(&source, route("slack/x")).await.is_ok());
    });
}

#[test]
fn a_wildcard_is_a_broadcast_from_an_agent_and_plain_text_from_a_source() {
    each(async |house| {
        let (ann_id, ann) = person(house, "ann", 1).await;
        agent(house, &ann, "coder", &["agent/**"]).await;
        agent(house, &ann, "coder/sub", &[]).await;
        agent(house, &ann, "one", &["slack/*"]).await;
        agent(house, &ann, "team", &["slack/team"]).await;
        assert_eq!(send(house, &ann, "coder", "agent/*").await, ["one", "team"]);
        assert_eq!(send(house, &ann, "one", "agent/coder/**").await, ["coder", "coder/sub"]);
        assert_eq!(send(house, &ann, "coder", "agent/**").await, ["coder/sub", "one", "team"]);
        let source = bridge(house, &ann_id).await;
        assert_eq!(send(house, &source, "slack-bridge", "slack/*").await, ["one"]);
        assert_eq!(send(house, &source, "slack-bridge", "slack/**").await, ["one"], "as text, one segment");
        for path in ["**", "agent/*", "agent/**", "agent/coder/**"] {
            assert_eq!(send(house, &source, "slack-bridge", path).await, NOBODY, "{path}");
        }
    });
}

#[test]
fn a_room_is_heard_by_its_members_and_their_sessions() {
    each(async |house| {
        let (_, ann) = person(house, "ann", 1).await;
        let room = room(house, &ann, vec![]).await;
        for (id, patterns) in [("coder", &["room/**"][..]), ("out", &["room/**", "**"]), ("speaker", &["**"])]
        {
            agent(house, &ann, id, patterns).await;
        }
        join(house, &ann, &room.id, "coder").await;
        join(house, &ann, &room.id, "speaker").await;
        let mailbox = Mailbox { agent: AgentId::stored("coder"), session: Some(SessionId::main()) };
        let pattern = Pattern::stored(Path::of_room(&room.id).as_str());
        done(house, &ann, Command::Subscribe { mailbox, pattern }).await;
        let heard = send(house, &ann, "speaker", Path::of_room(&room.id).as_str()).await;
        assert_eq!(heard, ["coder:main", "coder"]);
    });
}

#[test]
fn a_removed_agent_hears_nothing_and_its_name_is_free() {
    each(async |house| {
        let (ann_id, ann) = person(house, "ann", 1).await;
        let (_, bob) = person(house, "bob", 2).await;
        agent(house, &ann, "coder", &["slack/**"]).await;
        agent(house, &ann, "coder/sub", &["slack/**"]).await;
        let source = bridge(house, &ann_id).await;
        assert_eq!(send(house, &source, "slack-bridge", "slack/team").await, ["coder", "coder/sub"]);
        done(house, &ann, Command::RemoveAgent { id: AgentId::stored("coder") }).await;
        assert_eq!(send(house, &source, "slack-bridge", "slack/team").await, NOBODY);
        agent(house, &bob, "coder/sub", &[]).await;
        assert_eq!(send(house, &source, "slack-bridge", "slack/team").await, NOBODY, "nothing is inherited");
        assert_eq!(send(house, &source, "slack-bridge", "agent/coder/sub").await, ["coder/sub"]);
    });
}
