//! Generates random commands. A command is generated as a kind, chosen by weight, and random bytes; when its
//! step runs, the bytes select its arguments, such as ids that `World` knows by then.

use super::agents;
use super::approvals;
use super::automatic;
use super::dice::{Bytes, Dice};
use super::fitting;
use super::missions;
use super::origins;
use super::people;
use super::services;
use super::tasks;
use super::turns;
use super::world::{World, learn};
use crate::test_hub::TestHub;
use parlor_engine::commands::AnyCommand;
use parlor_model::command::{
    AddBookmark, AddMember, AddUpload, AppendNoop, ChangeMember, ChangePassword, ChangeRoom,
    ChangeRoomPreferences, ChangeRouter, ChangeUser, ClearDeadLetters, CreateKey, CreateRoom, CreateRouter,
    CreateSignIn, CreateSigningKey, CreateUser, DeleteMessage, DeleteMessages, DeleteRoom, EditMessage,
    EndOtherSignIns, EndSignIn, ForwardMessage, FreezeRoom, MarkAllRead, MarkRoomRead, ModelChanges, NewUser,
    OfferSetup, PinMessage, PromptAgent, PromptMode, RecordBackup, RecordFailedSignIn, RefreshSignIn,
    RemoveBookmark, RemoveMember, RemoveRouter, RemoveUser, RevokeKey, RevokeTokens, RewindRoom, RoomChanges,
    RouterChanges, SetProjectRoot, TakeUnreferencedBlobs, ThawRoom, ToggleReaction, UnpinMessage,
    UserChanges,
};
use parlor_model::{
    AnswerPolicy, BlobDigest, Caller, File, Grant, GrantEntry, KeyGrant, KeyId, MediaType, MemberId,
    MessageId, ModelAccess, ModelApi, Notifications, Operation, Path, Pattern, Post, Resource, RoomId,
    RoomKind, RoomPreferenceChange, RoomRole, RoomSelection, RouterId, Scope, SealedKey, SecretHash,
    SignInId, SiteRole, UploadId, UserId,
};
use proptest::prelude::*;
use proptest::strategy::Union;
use std::time::Duration;

#[derive(Debug, Clone)]
pub enum Step {
    /// Commands submitted without waiting for each other, so that some share a commit.
    Commands(Vec<RandomCommand>),
    /// Repeats a command that posted a message, by the same caller.
    Retry(u8),
    /// Moves the clock by seconds, forwards or backwards.
    MoveClock(i64),
    Restart,
    /// Leases mail repeatedly without acknowledging it.
    Neglect(RandomCommand),
}

#[derive(Debug, Clone)]
pub struct RandomCommand {
    build: Build,
    bytes: Bytes,
}

/// Builds a command from random bytes.
type Build = fn(&mut Dice, &mut World) -> AnyCommand;

/// Each kind of command, with its relative frequency.
const KINDS: &[(u32, Build)] = &[
    (30, |dice, world| post(dice, world).into()),
    (12, |dice, world| answer(dice, world).into()),
    (12, |dice, world| turns::decide_plan(dice, world).into()),
    (24, |dice, world| turns::start(dice, world).into()),
    (12, |dice, world| turns::join(dice, world).into()),
    (4, |dice, world| turns::open(dice, world).into()),
    (3, |dice, world| turns::stop(dice, world).into()),
    (6, |dice, world| turns::start_turn(dice, world).into()),
    (3, |dice, world| turns::stop_session(dice, world).into()),
    (3, |dice, world| turns::withdraw(dice, world).into()),
    (3, |dice, world| turns::cancel(dice, world).into()),
    (24, |dice, world| turns::finish(dice, world).into()),
    (6, |dice, world| turns::post_late_reply(dice, world).into()),
    (4, |dice, world| turns::report_usage(dice, world).into()),
    (6, |dice, world| automatic::trigger(dice, world).into()),
    (8, |dice, world| automatic::decide(dice, world).into()),
    (3, |dice, world| automatic::release(dice, world).into()),
    (3, |dice, world| automatic::heartbeat(dice, world).into()),
    (20, |dice, world| {
        ToggleReaction { message: popular(dice, world), emoji: dice.one_of(&EMOJI).into() }.into()
    }),
    (8, |dice, world| PinMessage { message: popular(dice, world) }.into()),
    (6, |dice, world| UnpinMessage { message: popular(dice, world) }.into()),
    (12, |dice, world| AddBookmark { message: popular(dice, world) }.into()),
    (6, |dice, world| RemoveBookmark { message: popular(dice, world) }.into()),
    (6, |dice, world| agents::create(dice, world).into()),
    (4, |dice, world| agents::change(dice, world).into()),
    (4, |dice, world| agents::change_session(dice, world).into()),
    (2, |dice, world| agents::remove(dice, world).into()),
    (6, |dice, _| agents::connect(dice).into()),
    (4, |dice, _| agents::disconnect(dice).into()),
    (2, |dice, _| agents::remove_gateway(dice).into()),
    (10, |dice, _| agents::register(dice).into()),
    (4, |dice, world| agents::host(dice, world).into()),
    (6, |dice, world| agents::configure(dice, world).into()),
    (4, |dice, world| agents::move_agent(dice, world).into()),
    (6, |dice, _| people::offer_second_factor(dice).into()),
    (6, |dice, _| people::confirm_second_factor(dice).into()),
    (3, |dice, world| people::remove_second_factor(dice, world).into()),
    (8, |dice, world| sign_in(dice, world).into()),
    (4, |dice, world| record_failed_sign_in(dice, world).into()),
    (8, |dice, world| refresh(dice, world).into()),
    (1, |_, _| EndOtherSignIns.into()),
    (3, |dice, world| EndSignIn { sign_in: dice.known(&world.sign_ins, SignInId::stored("never")) }.into()),
    (6, |dice, world| create_key(dice, world).into()),
    (8, |dice, world| create_signing_key(dice, world).into()),
    (6, |dice, world| {
        let key = dice.known(&world.keys, KeyId::stored("never"));
        let targets = dice.some_of(&["client:a", "client:b", "place:c"].map(Box::from));
        RevokeTokens { key, targets, issued_before: later(dice, world) }.into()
    }),
    (4, |dice, world| RevokeKey { key: dice.known(&world.keys, KeyId::stored("never")) }.into()),
    (5, |dice, world| create_room(dice, world).into()),
    (4, |dice, world| change_room(dice, world).into()),
    (4, |dice, world| {
        let root = dice.maybe(|dice| dice.one_of(&ROOTS).into());
        SetProjectRoot { room: room(dice, world), root, there: true }.into()
    }),
    (3, |dice, world| FreezeRoom { room: room(dice, world) }.into()),
    (4, |dice, world| ThawRoom { room: room(dice, world) }.into()),
    (3, |dice, world| DeleteRoom { room: room(dice, world) }.into()),
    (12, |dice, world| {
        let (room, member) = (room(dice, world), member(dice, world));
        AddMember { room, member, role: role(dice), description: description(dice) }.into()
    }),
    (8, |dice, world| {
        let (room, member) = membership(dice, world);
        let description = dice.maybe(description);
        ChangeMember { room, member, role: dice.maybe(role), description: description.into() }.into()
    }),
    (8, |dice, world| {
        ChangeRoomPreferences { room: room(dice, world), how: dice.one_of(&PREFERENCE_CHANGES) }.into()
    }),
    (8, |dice, world| {
        let (room, member) = membership(dice, world);
        RemoveMember { room, member }.into()
    }),
    (3, |dice, _| people::change_settings(dice).into()),
    (5, |dice, world| people::create_invitation(dice, world).into()),
    (2, |dice, world| people::revoke_invitation(dice, world).into()),
    (6, |dice, world| people::invite_to_room(dice, world).into()),
    (2, |dice, world| people::revoke_room_invitation(dice, world).into()),
    (6, |dice, world| people::accept_room_invitation(dice, world).into()),
    (5, |dice, world| people::register(dice, world).into()),
    (5, |dice, world| people::offer_pairing(dice, world).into()),
    (6, |dice, world| people::redeem_pairing_code(dice, world).into()),
    (1, |dice, world| OfferSetup { token: world.new_secret(), expires_at: later(dice, world) }.into()),
    (1, |dice, world| people::set_up(dice, world).into()),
    (6, |dice, _| CreateUser { account: account(dice) }.into()),
    (4, |dice, world| change_user(dice, world).into()),
    (2, |dice, world| RemoveUser { user: user(dice, world) }.into()),
    (3, |dice, world| people::change_profile(dice, world).into()),
    (2, |dice, world| change_password(dice, world).into()),
    (12, |dice, world| missions::set(dice, world).into()),
    (8, |dice, world| missions::end(dice, world).into()),
    (12, |dice, world| missions::set_idle(dice, world).into()),
    (20, |dice, world| missions::prompt(dice, world).into()),
    (5, |dice, _| create_router(dice).into()),
    (8, |dice, world| change_router(dice, world).into()),
    (6, |dice, world| RemoveRouter { router: router(dice, world) }.into()),
    (5, |dice, _| services::create(dice).into()),
    (5, |dice, world| services::change(dice, world).into()),
    (2, |dice, world| services::remove(dice, world).into()),
    (10, |dice, world| tasks::create(dice, world).into()),
    (10, |dice, world| tasks::change(dice, world).into()),
    (8, |dice, world| tasks::remove(dice, world).into()),
    (20, |dice, world| tasks::report(dice, world).into()),
    (12, |dice, world| turns::update_plan(dice, world).into()),
    (24, |dice, world| approvals::ask(dice, world).into()),
    (16, |dice, world| approvals::decide(dice, world).into()),
    (12, |dice, world| approvals::answer(dice, world).into()),
    (6, |dice, world| approvals::expire(dice, world).into()),
    (8, |dice, world| approvals::revoke_rule(dice, world).into()),
    (16, |dice, _| upload(dice).into()),
    (4, |dice, _| TakeUnreferencedBlobs { limit: 1 + dice.roll(3) }.into()),
    (24, |dice, world| agents::route(dice, world).into()),
    (16, |dice, world| agents::publish(dice, world).into()),
    (16, |dice, world| agents::relay(dice, world).into()),
    (24, |dice, world| agents::receive(dice, world).into()),
    (12, |dice, world| agents::acknowledge(dice, world).into()),
    (12, |dice, world| agents::import(dice, world).into()),
    (10, |dice, world| agents::subscribe(dice, world).into()),
    (6, |dice, world| agents::unsubscribe(dice, world).into()),
    (2, |_, _| ClearDeadLetters.into()),
    (12, |dice, world| agents::resend(dice, world).into()),
    (4, |dice, _| RecordBackup { through: parlor_model::Seq(dice.one_of(&[0, 7])) }.into()),
    (4, |_, _| AppendNoop.into()),
    (4, |dice, world| prompt(dice, world).into()),
    (8, |dice, world| EditMessage { message: message(dice, world), text: dice.one_of(&TEXTS).into() }.into()),
    (10, |dice, world| DeleteMessage { message: message(dice, world) }.into()),
    (4, |dice, world| delete_messages(dice, world).into()),
    (4, |dice, world| rewind(dice, world).into()),
    (10, |dice, world| forward(dice, world).into()),
    (5, |dice, world| MarkRoomRead { room: room(dice, world) }.into()),
    (3, |_, _| MarkAllRead.into()),
];

/// One command of each kind. Its content depends on the bytes and on the entities that exist when it runs.
pub fn one_of_each(bytes: impl Fn(usize) -> Bytes) -> impl Iterator<Item = RandomCommand> {
    KINDS
        .iter()
        .enumerate()
        .map(move |(number, (_, build))| RandomCommand { build: *build, bytes: bytes(number) })
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let build = Union::new_weighted(KINDS.iter().map(|(weight, build)| (*weight, Just(*build))).collect());
    let command = (build, any::<Bytes>()).prop_map(|(build, bytes)| RandomCommand { build, bytes });
    let neglect: Build = |dice, world| agents::receive_on_short_lease(dice, world).into();
    let neglected = any::<Bytes>().prop_map(move |bytes| RandomCommand { build: neglect, bytes });
    let hours: i64 = 60 * 60;
    let step = prop_oneof![
        30 => prop::collection::vec(command.clone(), 1).prop_map(Step::Commands),
        10 => prop::collection::vec(command, 2..6).prop_map(Step::Commands),
        8 => any::<u8>().prop_map(Step::Retry),
        3 => (1..50 * hours).prop_map(Step::MoveClock),
        1 => (-2 * hours..0).prop_map(Step::MoveClock),
        1 => Just(Step::Restart),
        1 => neglected.prop_map(Step::Neglect),
    ];
    prop::collection::vec(step, 1..80)
}

impl RandomCommand {
    /// Builds the command and picks its caller: in two of three cases one with permission, otherwise any
    /// caller.
    pub fn resolve(&self, world: &mut World, test_hub: &TestHub) -> (Caller, AnyCommand) {
        let mut dice = Dice::new(self.bytes);
        let (any_caller, use_any) = (dice.one_of(&world.callers), dice.once_in(3));
        for run in test_hub.read(|store| store.open_runs()) {
            learn(&mut world.runs, &run.id);
        }
        let command = (self.build)(&mut dice, world);
        let permitted = test_hub.read(|store| fitting::caller(&command, &mut dice, store, world));
        (permitted.filter(|_| !use_any).unwrap_or(any_caller), command)
    }
}

const USERNAMES: [&str; 6] = ["ann", "ANN", "dora", "eve", "x", "fay-1"];
/// Names of users and rooms: some are similar, some contain others, some are rejected.
pub const NAMES: [&str; 6] = ["Ann", "Ann Lee", "bob", "Zoë % _", "", "coder"];
pub const TEXTS: [&str; 10] = [
    "hello",
    "hi @Ann Lee and @coder",
    "@bob `@Ann`",
    "nul \0 and \u{1f980}",
    "' OR 1=1; --",
    "hello again",
    "@writer @reader",
    " ",
    "a\r\nb\u{2028}c",
    "Größe ẞ İ",
];
/// Project roots; the last two are rejected.
pub const ROOTS: [&str; 4] = ["/srv", "/srv/a b", "/srvs", "/srv/../etc"];
const EMOJI: [&str; 6] = ["+1", "+1", "\u{1f980}", "'\"", "\u{1f44d}\u{1f3fd}", "a b"];
const CLIENT_IDS: [&str; 4] = ["k1", "k2", "K1", "k 3"];
pub const EXTERNAL_IDS: [&str; 3] = ["e1", "e2", "E1"];
pub const SOURCES: [&str; 3] = ["external", "slack", "Slack"];

pub fn idempotency_keys() -> Vec<(parlor_engine::ports::IdempotencyKind, &'static str)> {
    use parlor_engine::ports::IdempotencyKind;
    let client = CLIENT_IDS.map(|id| (IdempotencyKind::ClientMessage, id));
    client.into_iter().chain(EXTERNAL_IDS.map(|id| (IdempotencyKind::External, id))).collect()
}

pub fn user(dice: &mut Dice, world: &World) -> UserId {
    dice.known(&world.users, UserId::stored("never"))
}

pub fn room(dice: &mut Dice, world: &World) -> RoomId {
    dice.known(&world.rooms, RoomId::stored("never"))
}

pub fn member(dice: &mut Dice, world: &World) -> MemberId {
    dice.known(&world.members(), MemberId::User(UserId::stored("never")))
}

fn membership(dice: &mut Dice, world: &World) -> (RoomId, MemberId) {
    let any = (room(dice, world), member(dice, world));
    if dice.once_in(3) { any } else { dice.known(&world.memberships, any) }
}

pub fn message(dice: &mut Dice, world: &World) -> MessageId {
    dice.known(&world.messages, MessageId::stored("never"))
}

fn role(dice: &mut Dice) -> RoomRole {
    dice.one_of(&[RoomRole::Member, RoomRole::Member, RoomRole::Admin, RoomRole::Owner])
}

/// Every change of a member's own room preferences.
const PREFERENCE_CHANGES: [RoomPreferenceChange; 6] = [
    RoomPreferenceChange::Pin,
    RoomPreferenceChange::Archive,
    RoomPreferenceChange::Clear,
    RoomPreferenceChange::Notify(Notifications::All),
    RoomPreferenceChange::Notify(Notifications::Mentions),
    RoomPreferenceChange::Notify(Notifications::None),
];

fn description(dice: &mut Dice) -> Option<Box<str>> {
    dice.maybe(|dice| dice.one_of(&NAMES).into())
}

pub fn later(dice: &mut Dice, world: &World) -> parlor_model::Time {
    world.now.plus(Duration::from_secs(dice.roll(256) as u64 * 60 * 60))
}

pub fn account(dice: &mut Dice) -> NewUser {
    NewUser {
        username: dice.one_of(&USERNAMES).into(),
        display_name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        role: if dice.once_in(4) { SiteRole::Admin } else { SiteRole::User },
        password_hash: "first".into(),
    }
}

fn change_user(dice: &mut Dice, world: &World) -> ChangeUser {
    let changes = UserChanges {
        display_name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        role: dice.maybe(|dice| dice.one_of(&[SiteRole::User, SiteRole::Admin])),
        password_hash: dice.once_in(4).then(|| "by the admin".into()),
        max_connections: dice.maybe(|dice| dice.one_of(&[None, Some(0), Some(5)])).into(),
        hears: dice.maybe(|dice| {
            let patterns: &[&str] = dice.one_of(&[&[], &["**"], &["slack/**", "*/x"]]);
            patterns.iter().map(|text| Pattern::parse(text).unwrap()).collect()
        }),
    };
    ChangeUser { user: user(dice, world), changes }
}

pub fn proof(dice: &mut Dice, world: &World, user: &UserId) -> Box<str> {
    let stored = world.passwords.get(user).cloned().unwrap_or_default();
    if dice.once_in(5) { "wrong".into() } else { stored }
}

fn change_password(dice: &mut Dice, world: &World) -> ChangePassword {
    let user = user(dice, world);
    let password_hash = dice.one_of(&["second", "third"]).into();
    ChangePassword { verified_password_hash: proof(dice, world, &user), password_hash }
}

fn sign_in(dice: &mut Dice, world: &mut World) -> CreateSignIn {
    let user = user(dice, world);
    CreateSignIn {
        verified_password_hash: proof(dice, world, &user),
        second: people::second_proof(dice),
        user,
        refresh: world.new_secret(),
        device: dice.one_of(&["phone", ""]).into(),
        address: "127.0.0.1".into(),
        expires_at: later(dice, world),
    }
}

fn record_failed_sign_in(dice: &mut Dice, world: &mut World) -> RecordFailedSignIn {
    let lock_after = 1 + dice.roll(3) as u32;
    let user = if dice.once_in(4) { None } else { Some(user(dice, world)) };
    let second_factor = dice.once_in(3);
    RecordFailedSignIn { user, second_factor, lock_after, lock_until: later(dice, world) }
}

fn refresh(dice: &mut Dice, world: &mut World) -> RefreshSignIn {
    let token = dice.known(&world.tokens, SecretHash([9; 32]));
    let grace = Duration::from_secs(dice.roll(2) as u64 * 3600);
    RefreshSignIn { token, next: world.new_secret(), expires_at: later(dice, world), grace }
}

fn create_key(dice: &mut Dice, world: &mut World) -> CreateKey {
    let owner = dice.maybe(|dice| user(dice, world));
    CreateKey {
        owner,
        name: dice.one_of(&NAMES).into(),
        scopes: dice.some_of(&Scope::ALL),
        secret: world.new_secret(),
    }
}

fn create_signing_key(dice: &mut Dice, world: &mut World) -> CreateSigningKey {
    let secret = world.new_secret();
    let resource = dice.one_of(&[
        Resource::Everything,
        Resource::Below("room/".into()),
        Resource::Exactly(Path::stored("room/lobby")),
    ]);
    let operations = dice.some_of(&Operation::ALL).into_iter().collect();
    let places = Grant::new([GrantEntry { resource, operations }]).into();
    CreateSigningKey {
        id: KeyId::stored(format!("signing-{}", secret.0[0])),
        owner: Some(user(dice, world)),
        name: dice.one_of(&NAMES).into(),
        grant: KeyGrant { places, notation: dice.one_of(&["{}", "{\"*\":[\"*\"]}"]).into() },
        secret,
        sealed: sealed_key(dice),
    }
}

fn room_changes(dice: &mut Dice, world: &World) -> RoomChanges {
    RoomChanges {
        name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        kind: dice.maybe(|dice| dice.one_of(&[RoomKind::Group, RoomKind::Private])),
        policy: dice
            .maybe(|dice| dice.one_of(&[AnswerPolicy::Mention, AnswerPolicy::Triage, AnswerPolicy::All])),
        system_prompt: dice.maybe(|dice| dice.maybe(|dice| dice.one_of(&TEXTS).into())).into(),
        description: dice.maybe(|dice| dice.maybe(|dice| dice.one_of(&TEXTS).into())).into(),
        agent_command_role: dice.maybe(role),
        approve_role: dice.maybe(role),
        router: dice.once_in(3).then(|| dice.maybe(|dice| router(dice, world))).into(),
    }
}

fn router(dice: &mut Dice, world: &World) -> RouterId {
    dice.known(&world.routers, RouterId::stored("never"))
}

fn create_router(dice: &mut Dice) -> CreateRouter {
    CreateRouter {
        name: dice.one_of(&NAMES).into(),
        shared: dice.once_in(3),
        model: ModelAccess {
            api: dice.one_of(&[ModelApi::OpenAi, ModelApi::Anthropic]),
            base_url: dice.one_of(&["https://a.example/", "https://b.example/v1"]).into(),
            model: "small".into(),
            key: dice.maybe(sealed_key),
        },
    }
}

fn change_router(dice: &mut Dice, world: &World) -> ChangeRouter {
    let changes = RouterChanges {
        name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        shared: dice.maybe(|dice| dice.once_in(2)),
        model: ModelChanges {
            api: dice.maybe(|dice| dice.one_of(&[ModelApi::OpenAi, ModelApi::Anthropic])),
            base_url: dice.maybe(|_| "https://c.example/".into()),
            model: dice.maybe(|_| "large".into()),
            key: dice.maybe(|dice| dice.maybe(sealed_key)).into(),
        },
    };
    ChangeRouter { router: router(dice, world), changes }
}

pub fn sealed_key(dice: &mut Dice) -> SealedKey {
    SealedKey([dice.one_of(&[1, 2, 3])].into())
}

fn create_room(dice: &mut Dice, world: &mut World) -> CreateRoom {
    let changes = RoomChanges { name: Some(" A room ".into()), ..room_changes(dice, world) };
    let mut members = Vec::new();
    for _ in 0..dice.roll(4) {
        members.push(MemberId::User(user(dice, world)));
    }
    if dice.once_in(12) {
        members.push(member(dice, world));
    }
    CreateRoom { changes, members }
}

fn change_room(dice: &mut Dice, world: &mut World) -> ChangeRoom {
    ChangeRoom { room: room(dice, world), changes: room_changes(dice, world) }
}

fn post(dice: &mut Dice, world: &mut World) -> Post {
    Post {
        id: origins::chosen_id(dice, world),
        origin: dice.maybe(origins::origin),
        author: if dice.once_in(6) { Some(origins::author(dice, world)) } else { None },
        room: room(dice, world),
        text: dice.one_of(&TEXTS).into(),
        client_message_id: dice.maybe(|dice| dice.one_of(&CLIENT_IDS).into()),
        mentions: if dice.once_in(4) { vec![dice.one_of(&NAMES).into()] } else { Vec::new() },
        reply_to: dice.once_in(4).then(|| message(dice, world)),
        attachments: if dice.once_in(3) { some_uploads(dice, world) } else { Vec::new() },
    }
}

fn prompt(dice: &mut Dice, world: &mut World) -> PromptAgent {
    let Post { room, text, .. } = post(dice, world);
    let rooms = if dice.once_in(2) { RoomSelection::EMPTY } else { selection(dice, room) };
    let text = if dice.once_in(3) { format!("@{} {text}", dice.one_of(&NAMES)).into() } else { text };
    let mode = dice.one_of(&[PromptMode::Normal, PromptMode::Plan]);
    PromptAgent { agent: agents::agent(dice, world), rooms, text, mode, attachments: Vec::new() }
}

/// Selects a room, mostly by its id alone.
pub fn selection(dice: &mut Dice, room: RoomId) -> RoomSelection {
    let root = || Some("/srv".into());
    match dice.roll(10) {
        0 => RoomSelection { room: None, root: root() },
        1 => RoomSelection { room: Some(room), root: root() },
        2 => RoomSelection::EMPTY,
        _ => room.into(),
    }
}

/// A reply to a message in a room.
fn answer(dice: &mut Dice, world: &mut World) -> Post {
    let post = post(dice, world);
    let (room, to) = dice.known(&world.said, (post.room.clone(), MessageId::stored("never")));
    Post { room, reply_to: Some(to), client_message_id: None, ..post }
}

/// In most cases one of the first two messages, so that several commands act on the same message.
fn popular(dice: &mut Dice, world: &World) -> MessageId {
    let few = &world.messages[..world.messages.len().min(2)];
    if dice.once_in(4) { message(dice, world) } else { dice.known(few, MessageId::stored("never")) }
}

fn some_uploads(dice: &mut Dice, world: &World) -> Vec<Box<str>> {
    let upload = |dice: &mut Dice| dice.known(&world.uploads, UploadId::stored("never")).as_str().into();
    (0..1 + dice.roll(2)).map(|_| upload(dice)).collect()
}

fn upload(dice: &mut Dice) -> AddUpload {
    let file = File {
        name: dice.one_of(&["cat.png", "a/b", "notes"]).into(),
        media: dice.one_of(&[MediaType::Png, MediaType::Text]),
        size: dice.roll(4) as u64,
    };
    let digest = BlobDigest([dice.roll(4) as u8; 32]);
    AddUpload { file, digest, avatar: dice.once_in(3) }
}

fn forward(dice: &mut Dice, world: &mut World) -> ForwardMessage {
    ForwardMessage {
        message: message(dice, world),
        room: room(dice, world),
        client_message_id: dice.maybe(|dice| dice.one_of(&CLIENT_IDS).into()),
    }
}

fn rewind(dice: &mut Dice, world: &mut World) -> RewindRoom {
    let any = (room(dice, world), message(dice, world));
    let (room, message) = if dice.once_in(4) { any } else { dice.known(&world.said, any) };
    RewindRoom { room, message }
}

fn delete_messages(dice: &mut Dice, world: &mut World) -> DeleteMessages {
    let count = 1 + dice.roll(3);
    DeleteMessages { messages: (0..count).map(|_| message(dice, world)).collect() }
}
