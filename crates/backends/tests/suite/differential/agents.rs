//! Random commands for agents, gateways, subscriptions, routes and mailboxes.

use super::asks::{EXTERNAL_IDS, NAMES, SOURCES, TEXTS, room, user};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{
    AcknowledgeMail, AgentProfile, AgentRegistration, ChangeAgent, ChangeSession, ConfigureAgent,
    ConnectGateway, CreateAgent, DisconnectGateway, HostAgent, ImportMail, ImportedMessage, MoveAgent,
    PathMessage, Publish, ReceiveMail, RegisterAgent, RemoveAgent, RemoveGateway, ResendDeadLetter,
    SessionChanges, SessionConfig, Subscribe, Unsubscribe,
};
use parlor_model::{
    AgentId, AutoRun, Device, GatewayId, Mailbox, MessageId, Path, Pattern, Payload, Relay, Route, SessionId,
    Time, Visibility,
};
use std::time::Duration;

const AGENTS: [&str; 5] = ["coder", "coder/sub", "writer", "reader", "slack-bridge"];
pub const SESSIONS: [Option<&str>; 3] = [None, Some("main"), Some("side")];
const PATTERNS: [&str; 8] =
    ["slack/**", "slack/*", "room/**", "agent/**", "**", "slack/team", "agent/coder", "*/team"];
/// JSON of the cron expression of each heartbeat.
/// 30 February: the hubs send no heartbeats by themselves, only by command.
pub const HEARTBEAT: &str = "\"0 0 30 2 *\"";
pub const PATHS: [&str; 4] = ["slack/team", "slack/team/x", "slack/**", "email/a"];
/// Paths with wildcards. From an agent, the last two are rejected, because they are not below `agent/`.
const BROADCASTS: [&str; 6] = ["agent/**", "agent/*", "agent/coder/**", "agent/**/sub", "**", "slack/*"];
/// Lease durations: the first is rejected; the second has expired when the clock moves next.
const LEASES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(60 * 60)];

pub fn agent(dice: &mut Dice, world: &World) -> AgentId {
    dice.known(&world.agents, AgentId::stored("never"))
}

pub fn mailbox_of(agent: AgentId, session: Option<&str>) -> Mailbox {
    Mailbox { agent, session: session.map(SessionId::stored) }
}

fn mailbox(dice: &mut Dice, world: &World) -> Mailbox {
    mailbox_of(agent(dice, world), dice.one_of(&SESSIONS))
}

fn pattern(dice: &mut Dice, world: &World) -> Pattern {
    match dice.roll(8) {
        0 => Pattern::stored(Path::of_room(&room(dice, world)).as_str()),
        1 => Pattern::stored(Path::of_agent(&agent(dice, world)).as_str()),
        _ => Pattern::parse(dice.one_of(&PATTERNS)).unwrap(),
    }
}

fn profile(dice: &mut Dice, world: &World) -> AgentProfile {
    let setting = |dice: &mut Dice| {
        let (name, value) = dice.one_of(&[
            ("model", "\"best\""),
            ("model", "{\"a\":[1]}"),
            ("heartbeat", HEARTBEAT),
            ("heartbeat", "null"),
            ("heartbeat", "\"never\""),
            ("autoRun", "true"),
        ]);
        (name.into(), Payload(value.into()))
    };
    AgentProfile {
        name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        description: dice.maybe(|dice| dice.one_of(&TEXTS).into()),
        settings: dice.maybe(setting).into_iter().collect(),
        kind: dice.maybe(|_| "codex".into()),
        visibility: dice.maybe(|dice| match dice.roll(3) {
            0 => Visibility::Private,
            1 => Visibility::All,
            _ => Visibility::List((0..dice.roll(3)).map(|_| user(dice, world)).collect()),
        }),
    }
}

pub const GATEWAYS: [&str; 3] = ["laptop", "desk", "never"];

fn gateway(dice: &mut Dice) -> GatewayId {
    GatewayId::stored(if dice.once_in(8) { GATEWAYS[2] } else { dice.one_of(&GATEWAYS[..2]) })
}

pub fn connect(dice: &mut Dice) -> ConnectGateway {
    let id = GatewayId::stored(dice.one_of(&GATEWAYS[..2]));
    let device =
        Device { hostname: dice.one_of(&TEXTS).into(), platform: "linux".into(), ..Device::default() };
    ConnectGateway { id, device, ephemeral: dice.once_in(4) }
}

pub fn disconnect(dice: &mut Dice) -> DisconnectGateway {
    DisconnectGateway { gateway: gateway(dice) }
}

pub fn remove_gateway(dice: &mut Dice) -> RemoveGateway {
    RemoveGateway { gateway: gateway(dice) }
}

pub fn register(dice: &mut Dice) -> RegisterAgent {
    RegisterAgent { registration: registration(dice) }
}

pub fn host(dice: &mut Dice, world: &World) -> HostAgent {
    HostAgent { owner: user(dice, world), registration: registration(dice) }
}

pub fn configure(dice: &mut Dice, world: &World) -> ConfigureAgent {
    let patterns = |dice: &mut Dice| {
        let patterns = dice.some_of(&PATTERNS);
        patterns.iter().map(|pattern| Pattern::parse(pattern).unwrap()).collect::<Vec<_>>()
    };
    let setting = ("color".into(), Payload("\"red\"".into()));
    let sessions = dice.some_of(&["main", "side", "files"]).into_iter().map(|id| SessionConfig {
        id: SessionId::stored(id),
        title: dice.maybe(|dice| dice.one_of(&TEXTS).into()),
        is_default: dice.once_in(2),
        auto_run: dice.maybe(|_| AutoRun::of(true)),
        room: None,
        subscriptions: patterns(dice),
        settings: dice.maybe(|_| setting.clone()).into_iter().collect(),
        created_at: dice.maybe(|_| Time(7)),
        last_used_at: dice.maybe(|_| Time(8)),
    });
    let sessions = sessions.collect();
    ConfigureAgent {
        owner: user(dice, world),
        creates: !dice.once_in(4),
        registration: AgentRegistration { gateway: GatewayId::stored("hub"), ..registration(dice) },
        description: dice.one_of(&TEXTS).into(),
        settings: dice.maybe(|_| setting).into_iter().collect(),
        subscriptions: patterns(dice),
        sessions,
    }
}

pub fn move_agent(dice: &mut Dice, world: &World) -> MoveAgent {
    MoveAgent { from: agent(dice, world), to: agent(dice, world) }
}

pub fn import(dice: &mut Dice, world: &mut World) -> ImportMail {
    let mailbox = (!dice.once_in(4)).then(|| mailbox(dice, world));
    let messages = (0..dice.roll(4)).map(|_| ImportedMessage {
        id: match dice.once_in(3) {
            true => dice.known(&world.messages, MessageId::stored("imported-0")),
            false => MessageId::stored(format!("imported-{}", dice.roll(8))),
        },
        at: Time(dice.one_of(&[5, 1_000_000])),
        from: match dice.once_in(2) {
            true => "bridge".into(),
            false => agent(dice, world).as_str().into(),
        },
        path: Path::parse(dice.one_of(&PATHS)).unwrap(),
        command: "say".into(),
        payload: Payload(dice.one_of(&["{}", "{\"text\":\"hi\"}"]).into()),
        source: dice.one_of(&SOURCES).into(),
        external_id: dice.maybe(|dice| dice.one_of(&EXTERNAL_IDS).into()),
        is_delivered: dice.once_in(2),
    });
    let messages = messages.collect();
    ImportMail { mailbox, messages }
}

fn registration(dice: &mut Dice) -> AgentRegistration {
    AgentRegistration {
        gateway: gateway(dice),
        id: AgentId::parse(dice.one_of(&AGENTS)).unwrap(),
        name: dice.one_of(&NAMES).into(),
        kind: dice.one_of(&["codex", "my own"]).into(),
        working_directory: dice.maybe(|dice| dice.one_of(&["/srv/ann", "C:\\x 'y'"]).into()),
        capabilities: dice.some_of(&["rewind", "\"quoted\""]).iter().map(|word| (*word).into()).collect(),
        model: dice.maybe(|_| "best".into()),
        slash_commands: dice.maybe(|_| Payload("[{\"name\":\"x\"}]".into())),
        mcp_servers: dice.maybe(|_| Payload("[\"a\"]".into())),
        has_lasting_id: dice.maybe(|_| ()).is_some(),
    }
}

pub fn create(dice: &mut Dice, world: &World) -> CreateAgent {
    let subscriptions = dice.some_of(&PATTERNS);
    CreateAgent {
        id: AgentId::parse(dice.one_of(&AGENTS)).unwrap(),
        profile: profile(dice, world),
        subscriptions: subscriptions.iter().map(|pattern| Pattern::parse(pattern).unwrap()).collect(),
    }
}

pub fn change(dice: &mut Dice, world: &World) -> ChangeAgent {
    ChangeAgent { id: agent(dice, world), profile: profile(dice, world) }
}

pub fn change_session(dice: &mut Dice, world: &World) -> ChangeSession {
    let changes = SessionChanges {
        title: dice.maybe(|dice| dice.one_of(&TEXTS).into()),
        auto_run: dice
            .maybe(|dice| {
                dice.maybe(|dice| AutoRun { max_batch: dice.one_of(&[1, 20]), ..AutoRun::of(true) })
            })
            .into(),
        room: dice.maybe(|dice| dice.maybe(|dice| room(dice, world))).into(),
        is_default: dice.maybe(|dice| dice.once_in(2)),
        is_used: dice.once_in(2),
        settings: dice.maybe(|_| ("color".into(), Payload("\"red\"".into()))).into_iter().collect(),
    };
    let session = SessionId::stored(dice.one_of(&["main", "side"]));
    ChangeSession { agent: agent(dice, world), session, changes }
}

pub fn remove(dice: &mut Dice, world: &World) -> RemoveAgent {
    RemoveAgent { id: agent(dice, world) }
}

pub fn subscribe(dice: &mut Dice, world: &mut World) -> Subscribe {
    Subscribe { mailbox: mailbox(dice, world), pattern: pattern(dice, world) }
}

pub fn unsubscribe(dice: &mut Dice, world: &mut World) -> Unsubscribe {
    let any = (mailbox(dice, world), pattern(dice, world));
    let (mailbox, pattern) = match dice.roll(6) {
        0 => any,
        // The automatic subscription of an agent to its own path, which cannot be removed.
        1 | 2 => {
            let agent = agent(dice, world);
            (Mailbox::of(agent.clone()), Pattern::stored(Path::of_agent(&agent).as_str()))
        }
        _ => dice.known(&world.subscribed, any),
    };
    Unsubscribe { mailbox, pattern }
}

pub fn receive(dice: &mut Dice, world: &mut World) -> ReceiveMail {
    let mailbox = mailbox(dice, world);
    let lease = dice.maybe(|dice| if dice.once_in(8) { LEASES[0] } else { dice.one_of(&LEASES[1..]) });
    ReceiveMail { mailbox, limit: dice.roll(4), lease }
}

/// Leases all mail of a mailbox with a lease that expires when the clock moves next.
pub fn receive_on_short_lease(dice: &mut Dice, world: &mut World) -> ReceiveMail {
    ReceiveMail { mailbox: mailbox(dice, world), limit: 1000, lease: Some(LEASES[1]) }
}

pub fn acknowledge(dice: &mut Dice, world: &mut World) -> AcknowledgeMail {
    let any = (mailbox(dice, world), MessageId::stored("never"));
    let (mailbox, message) = dice.known(&world.handed_out, any);
    let mut messages = vec![message];
    for _ in 0..dice.roll(3) {
        messages.push(dice.known(&world.messages, MessageId::stored("never")));
    }
    AcknowledgeMail { mailbox, messages }
}

/// Resends a message that was handed out before, or any message without a mailbox.
pub fn resend(dice: &mut Dice, world: &mut World) -> ResendDeadLetter {
    let any = (mailbox(dice, world), MessageId::stored("never"));
    match dice.once_in(2) {
        true => {
            let (mailbox, message) = dice.known(&world.handed_out, any);
            ResendDeadLetter { message, mailbox: Some(mailbox) }
        }
        false => {
            let message = dice.known(&world.messages, MessageId::stored("never"));
            ResendDeadLetter { message, mailbox: None }
        }
    }
}

pub fn relay(dice: &mut Dice, world: &mut World) -> Relay {
    let name = |dice: &mut Dice, world: &World| -> Box<str> {
        if dice.once_in(4) { "stranger".into() } else { agent(dice, world).as_str().into() }
    };
    Relay {
        room: room(dice, world),
        author: name(dice, world),
        recipient: (!dice.once_in(3)).then(|| name(dice, world)),
        observers: (0..dice.roll(3)).map(|_| name(dice, world)).collect(),
        text: dice.one_of(&TEXTS).into(),
        continues: (!dice.once_in(3)).then(|| dice.known(&world.messages, MessageId::stored("never"))),
        source: dice.one_of(&SOURCES).into(),
        external_id: dice.maybe(|dice| dice.one_of(&EXTERNAL_IDS).into()),
    }
}

pub fn publish(dice: &mut Dice, world: &World) -> Publish {
    let path = match dice.roll(8) {
        0 => Path::of_room(&room(dice, world)),
        _ => Path::parse(dice.one_of(&PATHS)).unwrap(),
    };
    let count = dice.roll(3) + usize::from(!dice.once_in(8));
    let messages = (0..count).map(|_| PathMessage {
        name: dice.one_of(&["", "tick"]).into(),
        payload: Payload(dice.one_of(&["{}", "[1, 2]"]).into()),
        external_id: dice.one_of(&EXTERNAL_IDS).into(),
        connection: dice.one_of(&[None, Some("c1")]).map(Into::into),
    });
    let messages = messages.collect();
    Publish { path, sender_name: dice.one_of(&NAMES).into(), source: dice.one_of(&SOURCES).into(), messages }
}

pub fn route(dice: &mut Dice, world: &mut World) -> Route {
    let from = if dice.once_in(3) { "bridge".into() } else { agent(dice, world).as_str().into() };
    let path = match dice.roll(10) {
        0 | 1 => Path::of_agent(&agent(dice, world)),
        2 | 3 => Path::of_room(&room(dice, world)),
        4..=6 => Path::parse(dice.one_of(&BROADCASTS)).unwrap(),
        _ => Path::parse(dice.one_of(&PATHS)).unwrap(),
    };
    Route {
        from,
        path,
        command: "say".into(),
        payload: Payload(dice.one_of(&["{}", "{\"text\":\"hi\"}", "[1, 2]"]).into()),
        text: (!dice.once_in(4)).then(|| dice.one_of(&TEXTS).into()),
        source: dice.one_of(&SOURCES).into(),
        external_id: dice.maybe(|dice| dice.one_of(&EXTERNAL_IDS).into()),
    }
}
