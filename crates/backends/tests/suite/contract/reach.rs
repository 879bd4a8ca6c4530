//! Recipients of routed messages, through a whole hub: which mailboxes may receive messages of which senders.

use super::news::{each, execute, room, signed_in_user};
use crate::test_hub::TestHub;
use parlor_model::command::{
    AddMember, AgentProfile, ChangeUser, CreateAgent, CreateKey, RemoveAgent, RemoveMember, Subscribe,
    UserChanges,
};
use parlor_model::{
    AgentId, Caller, EntityKind, Mailbox, MemberId, Path, Pattern, Payload, Refusal, RoomId, RoomRole, Route,
    Scope, SecretHash, SessionId, SiteRole, UserId,
};

pub async fn agent(test_hub: &TestHub, owner: &Caller, id: &str, patterns: &[&str]) {
    let subscriptions = patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    let (id, profile) = (AgentId::stored(id), AgentProfile::default());
    execute(test_hub, owner, CreateAgent { id, profile, subscriptions }).await;
}

async fn join(test_hub: &TestHub, owner: &Caller, room: &RoomId, agent: &str) {
    let (member, role) = (MemberId::Agent(AgentId::stored(agent)), RoomRole::Member);
    execute(test_hub, owner, AddMember { room: room.clone(), member, role, description: None }).await;
}

async fn change(test_hub: &TestHub, user: &UserId, changes: UserChanges) {
    execute(test_hub, &Caller::OPERATOR, ChangeUser { user: user.clone(), changes }).await;
}

async fn set_role(test_hub: &TestHub, user: &UserId, role: SiteRole) {
    change(test_hub, user, UserChanges { role: Some(role), ..Default::default() }).await;
}

/// Makes the user an admin and returns a key of theirs that may send as an external source.
async fn bridge(test_hub: &TestHub, owner: &UserId) -> Caller {
    set_role(test_hub, owner, SiteRole::Admin).await;
    let scopes = vec![Scope::Sources];
    let secret = SecretHash([99; 32]);
    let create = CreateKey { owner: Some(owner.clone()), name: "bridge".into(), scopes, secret };
    let key = test_hub.hub().execute(&Caller::OPERATOR, create).await.unwrap();
    Caller::program(owner.clone(), key.id.clone())
}

pub async fn send(test_hub: &TestHub, caller: &Caller, from: &str, path: &str) -> Vec<String> {
    send_with(test_hub, caller, from, path, "{}").await
}

/// Routes a message and returns the mailboxes that received it.
pub async fn send_with(
    test_hub: &TestHub,
    caller: &Caller,
    from: &str,
    path: &str,
    payload: &str,
) -> Vec<String> {
    let route = Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload(payload.into()),
        text: Some("hello".into()),
        source: "test".into(),
        external_id: None,
    };
    let posted = test_hub.hub().execute(caller, route).await.unwrap();
    let name = |mailbox: &Mailbox| match &mailbox.session {
        Some(session) => format!("{}:{session}", mailbox.agent),
        None => mailbox.agent.to_string(),
    };
    posted.deliveries.iter().map(|copy| name(&copy.mailbox)).collect()
}

const NO_MAILBOX: [&str; 0] = [];

#[test]
fn an_agent_of_another_user_is_reached_through_a_common_room_only() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (_, bob) = signed_in_user(test_hub, "bob", 2).await;
        agent(test_hub, &ann, "coder", &[]).await;
        agent(test_hub, &ann, "coder/sub", &[]).await;
        agent(test_hub, &bob, "writer", &["slack/**"]).await;
        assert_eq!(
            send(test_hub, &ann, "coder", "agent/coder/sub").await,
            ["coder/sub"],
            "an agent of the same owner"
        );
        for path in ["agent/writer", "agent/**", "agent/w*", "slack/team"] {
            assert!(!send(test_hub, &ann, "coder", path).await.contains(&"writer".into()), "{path}");
        }
        let room = room(test_hub, &bob, vec![MemberId::User(ann_id.clone())]).await;
        assert_eq!(
            send(test_hub, &ann, "coder", "agent/writer").await,
            NO_MAILBOX,
            "a common room with its owner is not enough"
        );
        join(test_hub, &bob, &room.id, "writer").await;
        assert_eq!(send(test_hub, &ann, "coder", "agent/writer").await, ["writer"]);
        assert_eq!(send(test_hub, &ann, "coder", "agent/**").await, ["coder/sub", "writer"]);
        assert_eq!(send(test_hub, &ann, "coder", "slack/team").await, ["writer"]);
        assert_eq!(
            send(test_hub, &bob, "writer", "agent/coder").await,
            NO_MAILBOX,
            "coder is in no room with Bob"
        );
        let member = MemberId::User(ann_id);
        execute(test_hub, &bob, RemoveMember { room: room.id.clone(), member }).await;
        assert_eq!(send(test_hub, &ann, "coder", "agent/writer").await, NO_MAILBOX);
    });
}

#[test]
fn messages_to_an_agent_match_only_subscriptions_of_the_same_owner() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (_, bob) = signed_in_user(test_hub, "bob", 2).await;
        agent(test_hub, &ann, "coder", &[]).await;
        agent(test_hub, &ann, "spy", &["agent/**", "agent/writer", "**"]).await;
        agent(test_hub, &bob, "writer", &[]).await;
        agent(test_hub, &bob, "reader", &["agent/**"]).await;
        let room = room(test_hub, &bob, vec![MemberId::User(ann_id.clone())]).await;
        join(test_hub, &bob, &room.id, "writer").await;
        assert_eq!(send(test_hub, &ann, "coder", "agent/writer").await, ["reader", "writer"]);
        assert_eq!(send(test_hub, &bob, "writer", "agent/reader").await, ["reader"]);
        let source = bridge(test_hub, &ann_id).await;
        assert_eq!(send(test_hub, &source, "slack-bridge", "agent/writer").await, ["reader", "writer"]);
        assert_eq!(send(test_hub, &source, "slack-bridge", "agent/coder").await, ["coder", "spy"]);
        assert_eq!(
            send(test_hub, &source, "slack-bridge", "agent/nobody").await,
            NO_MAILBOX,
            "not even through **"
        );
        let external = send(test_hub, &source, "slack-bridge", "email/a").await;
        assert_eq!(external, ["spy"], "external messages reach subscribed agents of the key's owner");
    });
}

#[test]
fn messages_of_a_source_reach_agents_whose_owner_may_receive_them() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (bob_id, bob) = signed_in_user(test_hub, "bob", 2).await;
        let (cid_id, cid) = signed_in_user(test_hub, "cid", 3).await;
        for (owner, id) in [(&ann, "anns"), (&bob, "bobs"), (&cid, "cids")] {
            agent(test_hub, owner, id, &["**"]).await;
        }
        let source = bridge(test_hub, &ann_id).await;
        assert_eq!(
            send(test_hub, &source, "bridge", "slack/team/x").await,
            ["anns"],
            "only agents of the key's owner"
        );
        let hears = |patterns: &[&str]| UserChanges {
            hears: Some(patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect()),
            ..Default::default()
        };
        change(test_hub, &bob_id, hears(&["email/**", "slack/team/*"])).await;
        assert_eq!(send(test_hub, &source, "bridge", "slack/team/x").await, ["anns", "bobs"]);
        assert_eq!(send(test_hub, &source, "bridge", "email/any/thing").await, ["anns", "bobs"]);
        for path in ["slack/team/x/y", "slack/other/x", "slack/**"] {
            assert_eq!(send(test_hub, &source, "bridge", path).await, ["anns"], "{path}");
        }
        assert_eq!(
            send(test_hub, &ann, "anns", "slack/team/x").await,
            ["anns"],
            "an agent is not an external source"
        );
        set_role(test_hub, &cid_id, SiteRole::Admin).await;
        assert_eq!(
            send(test_hub, &source, "bridge", "slack/other/x").await,
            ["anns", "cids"],
            "agents of an admin"
        );
        change(test_hub, &bob_id, hears(&[])).await;
        assert_eq!(send(test_hub, &source, "bridge", "slack/team/x").await, ["anns", "cids"]);
    });
}

#[test]
fn a_key_grants_no_more_than_its_owner_currently_has() {
    each(async |test_hub| {
        let (ann_id, _) = signed_in_user(test_hub, "ann", 1).await;
        let (bob_id, _) = signed_in_user(test_hub, "bob", 2).await;
        set_role(test_hub, &bob_id, SiteRole::Admin).await;
        let source = bridge(test_hub, &ann_id).await;
        assert_eq!(send(test_hub, &source, "bridge", "slack/x").await, NO_MAILBOX);
        set_role(test_hub, &ann_id, SiteRole::User).await;
        let route = |path| Route {
            from: "bridge".into(),
            path: Path::parse(path).unwrap(),
            command: "say".into(),
            payload: Payload("{}".into()),
            text: None,
            source: "test".into(),
            external_id: None,
        };
        let refused = test_hub.hub().execute(&source, route("slack/x")).await;
        assert_eq!(
            refused,
            Err(Refusal::NotFound(EntityKind::Agent)),
            "she may not send as a source any more"
        );
        set_role(test_hub, &ann_id, SiteRole::Admin).await;
        assert!(test_hub.hub().execute(&source, route("slack/x")).await.is_ok());
    });
}

#[test]
fn a_wildcard_path_is_a_broadcast_from_an_agent_and_literal_from_a_source() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        agent(test_hub, &ann, "coder", &["agent/**"]).await;
        agent(test_hub, &ann, "coder/sub", &[]).await;
        agent(test_hub, &ann, "one", &["slack/*"]).await;
        agent(test_hub, &ann, "team", &["slack/team"]).await;
        assert_eq!(send(test_hub, &ann, "coder", "agent/*").await, ["one", "team"]);
        assert_eq!(send(test_hub, &ann, "one", "agent/coder/**").await, ["coder", "coder/sub"]);
        assert_eq!(send(test_hub, &ann, "coder", "agent/**").await, ["coder/sub", "one", "team"]);
        let source = bridge(test_hub, &ann_id).await;
        assert_eq!(send(test_hub, &source, "slack-bridge", "slack/*").await, ["one"]);
        assert_eq!(
            send(test_hub, &source, "slack-bridge", "slack/**").await,
            ["one"],
            "as a literal, one segment"
        );
        for path in ["**", "agent/*", "agent/**", "agent/coder/**"] {
            assert_eq!(send(test_hub, &source, "slack-bridge", path).await, NO_MAILBOX, "{path}");
        }
    });
}

#[test]
fn a_room_path_reaches_its_members_and_their_sessions() {
    each(async |test_hub| {
        let (_, ann) = signed_in_user(test_hub, "ann", 1).await;
        let room = room(test_hub, &ann, vec![]).await;
        for (id, patterns) in [("coder", &["room/**"][..]), ("out", &["room/**", "**"]), ("speaker", &["**"])]
        {
            agent(test_hub, &ann, id, patterns).await;
        }
        join(test_hub, &ann, &room.id, "coder").await;
        join(test_hub, &ann, &room.id, "speaker").await;
        let mailbox = Mailbox { agent: AgentId::stored("coder"), session: Some(SessionId::main()) };
        let pattern = Pattern::stored(Path::of_room(&room.id).as_str());
        execute(test_hub, &ann, Subscribe { mailbox, pattern }).await;
        let received = send(test_hub, &ann, "speaker", Path::of_room(&room.id).as_str()).await;
        assert_eq!(received, ["coder:main", "coder"]);
    });
}

#[test]
fn a_removed_agent_receives_nothing_and_its_name_is_free() {
    each(async |test_hub| {
        let (ann_id, ann) = signed_in_user(test_hub, "ann", 1).await;
        let (_, bob) = signed_in_user(test_hub, "bob", 2).await;
        agent(test_hub, &ann, "coder", &["slack/**"]).await;
        agent(test_hub, &ann, "coder/sub", &["slack/**"]).await;
        let source = bridge(test_hub, &ann_id).await;
        assert_eq!(send(test_hub, &source, "slack-bridge", "slack/team").await, ["coder", "coder/sub"]);
        execute(test_hub, &ann, RemoveAgent { id: AgentId::stored("coder") }).await;
        assert_eq!(send(test_hub, &source, "slack-bridge", "slack/team").await, NO_MAILBOX);
        agent(test_hub, &bob, "coder/sub", &[]).await;
        assert_eq!(
            send(test_hub, &source, "slack-bridge", "slack/team").await,
            NO_MAILBOX,
            "a new agent does not inherit subscriptions"
        );
        assert_eq!(send(test_hub, &source, "slack-bridge", "agent/coder/sub").await, ["coder/sub"]);
    });
}
