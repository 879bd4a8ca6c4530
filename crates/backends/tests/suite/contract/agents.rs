//! Agents, their sessions, subscriptions and gateways.

use super::turns::ended;
use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, AgentChange, Change, MailChange, RoomChange, RunChange};
use parlor_model::{
    Agent, AgentHost, AutoRun, Gateway, GatewayId, Mailbox, Pattern, Payload, RunOutcome, Seq, Session,
    Subscription, Time, Visibility,
};
use std::sync::Arc;

#[test]
fn agents_keep_every_field_and_are_ordered_by_id() {
    each(|ports| {
        let names = ["zed", "coder/sub", "coder"];
        ports.change(names.map(|id| put_agent(id, "ann")).into());
        ports.change(vec![put_agent("other", "bob")]);
        assert_eq!(ports.read(|s| s.agent(&agent_id("coder/sub"))), Some(agent("coder/sub", "ann")));
        let own = ports.read(|s| s.agents_of(&user_id("ann")));
        assert_eq!(own, ["coder", "coder/sub", "zed"].map(|id| agent(id, "ann")));
        assert_eq!(ports.read(|s| s.agents_of(&user_id("nobody"))), []);
    });
}

#[test]
fn the_store_returns_all_agents_and_subscriptions_for_the_routing_index() {
    each(|ports| {
        let all = [
            subscription(mailbox("coder", None), "slack/**", 3),
            subscription(mailbox("coder", Some("main")), "slack/**", 3),
            subscription(mailbox("coder", None), "room/*", 3),
            subscription(mailbox("writer", None), "slack/**", 3),
        ];
        ports.change(vec![put_agent("coder", "ann"), put_agent("writer", "bob")]);
        ports.change(all.iter().cloned().map(|it| Change::Mail(MailChange::PutSubscription(it))).collect());
        ports.change(vec![Change::Mail(MailChange::PutSubscription(all[0].clone()))]);
        let (mut agents, found) = ports.store.subscriptions().unwrap();
        agents.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!(agents, [agent("coder", "ann"), agent("writer", "bob")]);
        assert_eq!(found.len(), all.len(), "each subscription once");
        assert!(all.iter().all(|expected| found.contains(expected)));
    });
}

#[test]
fn only_agents_below_a_name_are_found() {
    each(|ports| {
        let names = ["coder/z", "coder", "coder/a/b", "coder0", "coder-x", "coderx/y", "code", "coder/a"];
        ports.change(names.map(|id| put_agent(id, "ann")).into());
        let below = |ports: &Ports, id| ports.read(|s| s.agents_below(&agent_id(id)));
        assert_eq!(below(ports, "coder"), ["coder/a", "coder/a/b", "coder/z"].map(|id| agent(id, "ann")));
        assert_eq!(below(ports, "coder/a"), [agent("coder/a/b", "ann")]);
        assert_eq!(below(ports, "coderx"), [agent("coderx/y", "ann")], "also below a name without an agent");
        assert_eq!(below(ports, "cod"), []);
    });
}

#[test]
fn sessions_are_returned_in_order_of_creation() {
    each(|ports| {
        ports.change(vec![put_agent("coder", "ann"), put_agent("writer", "ann")]);
        let made = [session("coder", "main", 7), session("coder", "z", 5), session("coder", "a", 5)];
        ports.change(made.iter().cloned().map(|it| Change::Mail(MailChange::PutSession(it))).collect());
        ports.change(vec![Change::Mail(MailChange::PutSession(session("writer", "main", 6)))]);
        let sessions = |ports: &Ports, agent| ports.read(|s| s.sessions(&agent_id(agent)));
        assert_eq!(sessions(ports, "coder"), made);
        assert_eq!(sessions(ports, "writer"), [session("writer", "main", 6)]);
        assert_eq!(sessions(ports, "nobody"), []);
        let renamed = Session { title: "New".into(), ..made[0].clone() };
        ports.change(vec![Change::Mail(MailChange::PutSession(renamed.clone()))]);
        assert_eq!(sessions(ports, "coder"), [renamed, made[1].clone(), made[2].clone()]);
    });
}

#[test]
fn a_session_keeps_every_field() {
    each(|ports| {
        let auto_run = AutoRun { triage_model: Some("haiku".into()), max_batch: 3, ..AutoRun::of(true) };
        let full = Session {
            last_used_at: Some(Time(9)),
            is_default: true,
            auto_run: Some(auto_run),
            room: Some(room_id("lobby")),
            settings: [("color".into(), Payload("{\"a\":[1]}".into()))].into(),
            ..session("coder", "side", 5)
        };
        for stored in [full.clone(), session("coder", "side", 5), full] {
            ports.change(vec![Change::Mail(MailChange::PutSession(stored.clone()))]);
            assert_eq!(ports.read(|s| s.sessions(&agent_id("coder"))), [stored]);
        }
    });
}

#[test]
fn each_mailbox_has_its_own_subscriptions_in_order_of_addition() {
    each(|ports| {
        let (coder, main) = (mailbox("coder", None), mailbox("coder", Some("main")));
        let own = [
            subscription(coder.clone(), "z", 3),
            subscription(coder.clone(), "a", 4),
            subscription(coder.clone(), "b/**", 4),
        ];
        let of_session = subscription(main.clone(), "z", 9);
        for subscription in [&own[2], &own[1], &of_session, &own[0]] {
            ports.change(vec![Change::Mail(MailChange::PutSubscription(subscription.clone()))]);
        }
        let subscriptions = |ports: &Ports, mailbox: &Mailbox| ports.read(|s| s.subscriptions_of(mailbox));
        assert_eq!(subscriptions(ports, &coder), own);
        assert_eq!(subscriptions(ports, &main), std::slice::from_ref(&of_session));
        assert_eq!(subscriptions(ports, &mailbox("writer", None)), []);

        ports.change(vec![Change::Mail(MailChange::RemoveSubscription(
            coder.clone(),
            Pattern::parse("z").unwrap(),
        ))]);
        ports.change(vec![Change::Mail(MailChange::RemoveSubscription(
            coder.clone(),
            Pattern::parse("never").unwrap(),
        ))]);
        assert_eq!(subscriptions(ports, &coder), own[1..]);
        assert_eq!(subscriptions(ports, &main), [of_session], "the subscription of the session stays");
        assert_eq!(ports.store.subscriptions().unwrap().1.len(), 3);
    });
}

#[test]
fn removing_an_agent_deletes_everything_it_owned() {
    each(|ports| {
        let posted = Arc::new(message("hello", "lobby", "ann", 1));
        ports.change(vec![put_room("lobby"), put_member("lobby", person("ann"), 1), put_user("ann", 1)]);
        ports.post(message("hello", "lobby", "ann", 1));
        for name in ["coder", "coder/sub"] {
            let (own, main) = (mailbox(name, None), mailbox(name, Some("main")));
            ports.change(vec![
                put_agent(name, "ann"),
                Change::Mail(MailChange::PutSession(session(name, "main", 2))),
                Change::Mail(MailChange::PutSubscription(subscription(own.clone(), "slack/**", 3))),
                Change::Mail(MailChange::PutSubscription(subscription(main.clone(), "slack/**", 3))),
                put_member("lobby", agent_member(name), 4),
                Change::Mail(MailChange::PutDelivery {
                    delivery: delivery("hello", main.clone()),
                    seq: Seq(1),
                }),
                Change::Mail(MailChange::PutDelivery { delivery: delivery("hello", own), seq: Seq(1) }),
                Change::Mail(MailChange::DeadLetterDelivery {
                    mailbox: main,
                    message: posted.clone(),
                    reason: "not_acknowledged".into(),
                }),
            ]);
        }
        ports.change(vec![Change::Agent(AgentChange::RemoveAgent(agent_id("coder")))]);
        let kept: (Vec<Agent>, Vec<Subscription>) = ports.store.subscriptions().unwrap();
        assert_eq!(kept.0, [agent("coder/sub", "ann")], "agents below the removed one stay");
        assert!(
            kept.1.len() == 2
                && kept.1.iter().all(|subscription| subscription.agent == agent_id("coder/sub"))
        );
        ports.read(|s| {
            for (name, count) in [("coder", 0), ("coder/sub", 1)] {
                let (own, main) = (mailbox(name, None), mailbox(name, Some("main")));
                assert_eq!(s.agent(&agent_id(name))?.iter().count(), count);
                assert_eq!(s.sessions(&agent_id(name))?.len(), count);
                assert_eq!(s.subscriptions_of(&own)?.len(), count);
                assert_eq!(s.subscriptions_of(&main)?.len(), count);
                assert_eq!(s.mail(&own, ALL_MAIL)?.len(), count);
                assert_eq!(s.memberships(&agent_member(name))?.len(), count);
                let mine =
                    s.dead_letters(ALL_MAIL)?.into_iter().filter(|it| it.mailbox == Some(main.clone()));
                assert_eq!(mine.count(), count);
            }
            Ok(())
        });
    });
}

#[test]
fn a_replaced_agent_leaves_its_mail_and_history_to_the_new_one() {
    each(|ports| {
        let posted = Arc::new(message("hello", "lobby", "ann", 1));
        ports.change(vec![put_room("lobby"), put_member("lobby", person("ann"), 1), put_user("ann", 1)]);
        ports.post(message("hello", "lobby", "ann", 1));
        for name in ["first", "second"] {
            let (own, side) = (mailbox(name, None), mailbox(name, Some("side")));
            ports.change(vec![
                put_agent(name, "ann"),
                Change::Mail(MailChange::PutSession(session(name, "main", 2))),
                Change::Mail(MailChange::PutSession(session(name, "side", 3))),
                Change::Mail(MailChange::PutSubscription(subscription(side.clone(), "slack/**", 3))),
                put_member("lobby", agent_member(name), 4),
                Change::Mail(MailChange::PutDelivery { delivery: delivery("hello", own), seq: Seq(1) }),
                Change::Mail(MailChange::DeadLetterDelivery {
                    mailbox: side,
                    message: posted.clone(),
                    reason: "not_acknowledged".into(),
                }),
                Change::Run(RunChange::PutRun(Arc::new(ended(name, name, "c", 5, RunOutcome::Complete)))),
            ]);
        }
        ports.change(vec![put_agent("new", "ann")]);
        for old in ["first", "second"] {
            let replaced = AgentChange::ReplaceAgent { old: agent_id(old), new: agent_id("new") };
            ports.change(vec![Change::Agent(replaced)]);
        }
        ports.read(|s| {
            for old in ["first", "second"] {
                assert_eq!(s.agent(&agent_id(old))?, None);
                assert_eq!(s.memberships(&agent_member(old))?, []);
                assert_eq!(s.sessions(&agent_id(old))?, []);
                assert_eq!(s.mail(&mailbox(old, None), ALL_MAIL)?, []);
                assert_eq!(s.latest_runs(&agent_id(old), 9)?, []);
            }
            let sessions: Vec<_> =
                s.sessions(&agent_id("new"))?.into_iter().map(|session| session.id).collect();
            assert_eq!(sessions.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["main", "side"]);
            assert_eq!(s.subscriptions_of(&mailbox("new", Some("side")))?.len(), 1);
            let deliveries = s.deliveries(&message_id("hello"))?;
            assert_eq!(deliveries.len(), 1, "mail of the second agent is removed with it");
            assert_eq!(deliveries[0].mailbox, mailbox("new", None));
            let letters: Vec<_> =
                s.dead_letters(ALL_MAIL)?.into_iter().map(|letter| letter.mailbox).collect();
            assert_eq!(letters, [Some(mailbox("new", Some("side")))]);
            assert_eq!(s.latest_runs(&agent_id("new"), 9)?.len(), 2, "the runs of both");
            Ok(())
        });
    });
}

#[test]
fn agents_of_other_users_are_visible_through_a_common_room() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_user("bob", 1), put_user("cyd", 1)]);
        ports.change(vec![put_room("lobby"), put_room("other")]);
        for (name, owner) in [("zed", "bob"), ("coder", "bob"), ("own", "ann"), ("far", "bob")] {
            ports.change(vec![put_agent(name, owner)]);
        }
        for (room, member) in [
            ("lobby", person("ann")),
            ("other", person("ann")),
            ("other", person("bob")),
            ("lobby", agent_member("zed")),
            ("other", agent_member("zed")),
            ("other", agent_member("coder")),
            ("lobby", agent_member("own")),
        ] {
            ports.change(vec![put_member(room, member, 2)]);
        }
        let near = |ports: &Ports, user| ports.read(|s| s.agents_near(&user_id(user)));
        assert_eq!(
            near(ports, "ann"),
            [agent("coder", "bob"), agent("zed", "bob")],
            "ordered by id, each once"
        );
        assert_eq!(near(ports, "bob"), [], "own agents are not included");
        assert_eq!(near(ports, "cyd"), []);
        ports.change(vec![Change::Room(RoomChange::RemoveMember(room_id("other"), agent_member("coder")))]);
        assert_eq!(near(ports, "ann"), [agent("zed", "bob")]);
    });
}

#[test]
fn shared_agents_of_other_users_are_visible() {
    each(|ports| {
        let of_bob = |id, visibility| Agent { visibility, ..agent(id, "bob") };
        let list = Visibility::List(vec![user_id("ann"), user_id("cyd")]);
        let agents = [
            of_bob("all", Visibility::All),
            of_bob("list", list),
            of_bob("none", Visibility::Private),
            of_bob("nobody", Visibility::List(Vec::new())),
            Agent { host: AgentHost::default(), ..of_bob("plain", Visibility::All) },
        ];
        ports.change(
            agents
                .iter()
                .map(|agent| Change::Agent(AgentChange::PutAgent(Arc::new(agent.clone()))))
                .collect(),
        );
        let near = |user| -> Vec<Agent> { ports.read(|s| s.agents_near(&user_id(user))) };
        assert_eq!(near("ann"), [&agents[0], &agents[1], &agents[4]].map(Agent::clone), "with every field");
        assert_eq!(near("dora"), [&agents[0], &agents[4]].map(Agent::clone));
        let shared = |user, limit, offset| -> Vec<Agent> {
            ports.read(|s| s.agents_shared(&user_id(user), limit, offset))
        };
        assert_eq!(shared("ann", 9, 0), near("ann"));
        assert_eq!(shared("ann", 1, 1), [agents[1].clone()]);
        assert_eq!(shared("bob", 9, 0), []);
        assert_eq!(near("bob"), [], "own agents are not included");
    });
}

#[test]
fn gateways_keep_every_field_and_are_deleted_with_their_owner() {
    each(|ports| {
        let put = |gateway: Gateway| Change::Agent(AgentChange::PutGateway(Arc::new(gateway)));
        ports.change(vec![put_user("ann", 1), put(gateway("z", "ann")), put(gateway("a", "ann"))]);
        let connected = Gateway { ephemeral: false, disconnected_at: None, ..gateway("b", "bob") };
        ports.change(vec![put(gateway("b", "bob")), put(connected.clone())]);
        let all = |ports: &Ports| ports.read(|s| s.gateways(None));
        assert_eq!(all(ports), [gateway("a", "ann"), connected.clone(), gateway("z", "ann")]);
        assert_eq!(ports.read(|s| s.gateways(Some(&user_id("bob")))), std::slice::from_ref(&connected));
        assert_eq!(ports.read(|s| s.gateway(&GatewayId::stored("b"))), Some(connected.clone()));
        ports.change(vec![Change::Agent(AgentChange::RemoveGateway(GatewayId::stored("z")))]);
        assert_eq!(all(ports), [gateway("a", "ann"), connected.clone()]);
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("ann")))]);
        assert_eq!(all(ports), [connected]);
    });
}
