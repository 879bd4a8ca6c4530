//! Permissions of the family `runs`, with the verdicts described in `families`.

use crate::callers::{CallerKind, coder_member, lobby, member, other_user, room};
use crate::fixtures::run;
use crate::requests::{AGENTS, ALL_SCOPES, PERSON, READ, WRITE, at_root};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AgentChange, Change, RoomChange, RunChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    CancelRun, FinishRun, MergeRun, PostLateReply, ReportUsage, StartRun, StartTurn, StartUnpromptedRun,
    StopRuns, StopSession, TurnCause, WithdrawRuns,
};
use parlor_model::query::{
    EntryFilter, EntryPage, GetRun, GetRunMessages, ListChildRuns, ListConversation, ListQueue, ListRuns,
    ListRunsOfAgent, ListRunsOfMessage, MayInquire, SearchConversations,
};
use parlor_model::{
    Agent, AgentHost, AgentId, AgentReply, Frozen, Inquiry, Member, MemberId, MessageId, Room, RoomId,
    RoomRole, RoomSelection, Run, RunId, RunOutcome, RunPlace, SessionId, Time, Usage, UserId, Visibility,
    WorkspaceRequest,
};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::StartRun(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  start_run(), A_RUN;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  start_run(), READY;
    }
    AnyCommand::MergeRun(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  merge_run(), TWO_RUNS;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  merge_run(), A_RUN;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  merge_run(), READY;
    }
    AnyCommand::FinishRun(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  finish_run(), A_RUN;
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  finish_run(), RUN_OF_AN_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  finish_run(), READY;
    }
    AnyCommand::ReportUsage(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  report_usage(), A_RUN;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  report_usage(), READY;
    }
    AnyCommand::StartUnpromptedRun(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  open_run(), ANOTHERS_AGENT_IN_ROOM;
        "no    no    no    no    no    no    no    no    no    no    no    out  ", PERSON,  open_run(), ANOTHERS_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    out  ", PERSON,  open_run(), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?room", PERSON,  open_run(), NO_ROOM;
    }
    AnyCommand::StopRuns(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   stop_runs(), A_RUN;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   stop_runs(), NO_ROOM;
    }
    AnyCommand::WithdrawRuns(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   withdraw_runs(), A_RUN;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   withdraw_runs(), NO_ROOM;
    }
    AnyCommand::CancelRun(_) => {
        "who   who   ?run  yes   yes   yes   ?run  ?run  ?run  no    yes   who  ", ALL_SCOPES, cancel_run(), A_RUN;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", ALL_SCOPES, cancel_run(), READY;
        "who   who   ?run  yes   yes   yes   ?run  ?run  ?run  no    no    who  ", READ,    cancel_run(), A_RUN;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", ALL_SCOPES, cancel_run(), A_RUN_IN_NO_ROOM;
        "who   who   ?run  ?run  ?run  ?run  yes   yes   ?run  no    yes   who  ", ALL_SCOPES, cancel_run(), A_RUN_IN_A_SESSION;
    }
    AnyCommand::StartTurn(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  start_turn(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  start_turn(), READY;
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  start_batch(), AGENT_WITH_MAIL;
        "no    no    no    no    no    no    no    no    no    no    no    ?msg ", PERSON,  start_batch(), AGENT_OWNERS_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  start_batch(), READY;
    }
    AnyCommand::StopSession(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  yes   yes   ?bot  no    yes   who  ", AGENTS,  stop_session(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  stop_session(), READY;
    }
    AnyCommand::PostLateReply(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  post_late_reply(), ANOTHERS_AGENT_IN_ROOM;
        "no    no    no    no    no    no    no    no    no    no    no    out  ", PERSON,  post_late_reply(), ANOTHERS_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    out  ", PERSON,  post_late_reply(), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?room", PERSON,  post_late_reply(), NO_ROOM;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::GetRun(_) => {
        "who   who   ?run  yes   yes   yes   ?run  ?run  ?run  no    yes   who  ", READ,    get_run(), A_RUN;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    get_run(), READY;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    get_run(), A_RUN_IN_NO_ROOM;
        "who   who   ?run  ?run  ?run  ?run  ?run  yes   ?run  no    yes   who  ", READ,    get_run(), A_RUN_IN_A_SESSION;
    }
    AnyQuery::ListChildRuns(_) => {
        "who   who   ?run  yes   yes   yes   ?run  ?run  ?run  no    yes   who  ", READ,    list_child_runs(), A_RUN;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    list_child_runs(), READY;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    list_child_runs(), A_RUN_IN_NO_ROOM;
        "who   who   ?run  ?run  ?run  ?run  ?run  yes   ?run  no    yes   who  ", READ,    list_child_runs(), A_RUN_IN_A_SESSION;
    }
    AnyQuery::GetRunMessages(_) => {
        "who   who   ?run  yes   yes   yes   ?run  ?run  ?run  no    yes   who  ", READ,    get_run_messages(), A_RUN;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    get_run_messages(), READY;
        "who   who   ?run  ?run  ?run  ?run  ?run  ?run  ?run  no    ?run  who  ", READ,    get_run_messages(), A_RUN_IN_NO_ROOM;
        "who   who   ?run  ?run  ?run  ?run  ?run  yes   ?run  no    yes   who  ", READ,    get_run_messages(), A_RUN_IN_A_SESSION;
    }
    AnyQuery::ListRuns(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_runs(lobby().into()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_runs(lobby().into()), NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_runs(RoomSelection::EMPTY), READY;
        "who   who   no    yes   yes   yes   no    no    no    no    yes   who  ", READ,    list_runs(at_root("/srv/code", None)), LOBBY_AND_OTHER_AT_ROOT;
    }
    AnyQuery::ListRunsOfMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", READ,    list_runs_of_message(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    list_runs_of_message(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    list_runs_of_message(), NO_ROOM;
    }
    AnyQuery::ListRunsOfAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    list_runs_of_agent(), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_runs_of_agent(), AGENT_IN_A_COMMON_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_runs_of_agent(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    list_runs_of_agent(), ANOTHERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    list_runs_of_agent(), READY;
    }
    AnyQuery::ListQueue(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_queue(Some(lobby())), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_queue(Some(lobby())), NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_queue(None), READY;
    }
    AnyQuery::ListConversation(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  list_conversation(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  list_conversation(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  list_conversation(), READY;
    }
    AnyQuery::SearchConversations(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  search_conversations(), READY;
    }
    AnyQuery::MayInquire(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   inquire(command()), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   inquire(command()), ADMINS_COMMAND_AGENTS;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   inquire(command()), ANOTHERS_AGENT_IN_A_FROZEN_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   inquire(command()), AGENT_OWNERS_AGENT;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   inquire(command()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   inquire(command()), AGENT_OWNERS_AGENT_NO_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   inquire(file("src/main.rs")), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   inquire(file("src/main.rs")), ADMINS_COMMAND_AGENTS;
        "who   who   out   path  path  path  out   out   out   no    path  who  ", WRITE,   inquire(file("../.ssh/id")), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   path  path  path  out   out   out   no    path  who  ", WRITE,   inquire(file("/etc/passwd")), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   inquire(file("/etc/passwd")), AGENT_OWNERS_AGENT;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    inquire(Inquiry::Info), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   yes   yes   yes   out   yes   out   no    yes   who  ", READ,    inquire(Inquiry::Info), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   ?room ?room ?room ?room ?room yes   ?room no    yes   who  ", READ,    inquire(Inquiry::Info), AGENT_OWNERS_AGENT_NO_ROOM;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   inquire_anywhere(command()), AGENT_IN_A_COMMON_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    inquire_anywhere(Inquiry::Info), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    inquire_anywhere(Inquiry::Info), AGENT_IN_A_COMMON_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    inquire_anywhere(Inquiry::Info), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    inquire_anywhere(Inquiry::Info), OWN_AGENT_OF_ANOTHER_NAME;
    }
}

fn start_run() -> StartRun {
    StartRun { run: RunId::stored("run") }
}

fn merge_run() -> MergeRun {
    MergeRun { run: RunId::stored("next"), into: RunId::stored("run") }
}

fn open_run() -> StartUnpromptedRun {
    StartUnpromptedRun { agent: AgentId::stored("coder"), room: lobby() }
}

fn finish_run() -> FinishRun {
    FinishRun { run: RunId::stored("run"), outcome: RunOutcome::Complete, said: Some(reply()) }
}

fn post_late_reply() -> PostLateReply {
    PostLateReply { agent: AgentId::stored("coder"), room: lobby(), said: reply(), run: None }
}

fn reply() -> AgentReply {
    AgentReply {
        message: None,
        text: "hi".into(),
        chunks: Vec::new(),
        target: None,
        claimed_depth: 0,
        claimed_chain: Vec::new(),
        origin: None,
    }
}

fn report_usage() -> ReportUsage {
    ReportUsage { run: RunId::stored("run"), usage: Usage::default() }
}

fn get_run() -> GetRun {
    GetRun { run: RunId::stored("run") }
}

fn list_child_runs() -> ListChildRuns {
    ListChildRuns { run: RunId::stored("run") }
}

fn get_run_messages() -> GetRunMessages {
    GetRunMessages { run: RunId::stored("run") }
}

fn list_runs(rooms: RoomSelection) -> ListRuns {
    ListRuns { rooms, limit: 10 }
}

fn list_runs_of_message() -> ListRunsOfMessage {
    ListRunsOfMessage { message: MessageId::stored("message") }
}

fn list_runs_of_agent() -> ListRunsOfAgent {
    ListRunsOfAgent { agent: AgentId::stored("coder"), limit: 10 }
}

fn list_queue(room: Option<RoomId>) -> ListQueue {
    ListQueue { room }
}

fn start_turn() -> StartTurn {
    let cause = TurnCause::Explicit { prompt: "hi".into() };
    StartTurn { agent: AgentId::stored("coder"), session: SessionId::main(), cause }
}

fn start_batch() -> StartTurn {
    let cause = TurnCause::Batch { messages: vec![MessageId::stored("message")], attempt: 1 };
    StartTurn { cause, ..start_turn() }
}

fn stop_session() -> StopSession {
    StopSession { agent: AgentId::stored("coder"), session: SessionId::main() }
}

fn list_conversation() -> ListConversation {
    let (agent, session) = (AgentId::stored("coder"), SessionId::main());
    ListConversation { agent, session, page: EntryPage::After(0), limit: 10 }
}

fn search_conversations() -> SearchConversations {
    SearchConversations { pattern: "tea".into(), filter: EntryFilter::default(), limit: 10 }
}

fn stop_runs() -> StopRuns {
    StopRuns { room: lobby(), agent: AgentId::stored("coder") }
}

fn withdraw_runs() -> WithdrawRuns {
    WithdrawRuns { room: lobby(), agent: None, run: None }
}

fn cancel_run() -> CancelRun {
    CancelRun { run: RunId::stored("run") }
}

fn command() -> Inquiry {
    Inquiry::Command { command: "clear".into(), args: "".into() }
}

fn file(path: &str) -> Inquiry {
    Inquiry::Workspace(WorkspaceRequest::File { path: path.into() })
}

fn inquire(inquiry: Inquiry) -> MayInquire {
    MayInquire { agent: AgentId::stored("coder"), room: Some(lobby()), inquiry }
}

fn inquire_anywhere(inquiry: Inquiry) -> MayInquire {
    MayInquire { room: None, ..inquire(inquiry) }
}

const A_RUN: Stored = |_| vec![Change::Run(RunChange::PutRun(Arc::new(run())))];
const TWO_RUNS: Stored = |who| {
    let next = Run { id: RunId::stored("next"), ..run() };
    let mut changes = A_RUN(who);
    changes.push(Change::Run(RunChange::PutRun(Arc::new(next))));
    changes
};
const RUN_OF_AN_AGENT: Stored = |who| [A_RUN(who), ANOTHERS_AGENT_IN_ROOM(who)].concat();
/// A run whose room does not exist.
const A_RUN_IN_NO_ROOM: Stored = |_| {
    let elsewhere = Run { place: RunPlace::Room(RoomId::stored("removed")), ..run() };
    vec![Change::Run(RunChange::PutRun(Arc::new(elsewhere)))]
};

/// A run without a room of an agent of the column `AgentOwner`.
const A_RUN_IN_A_SESSION: Stored = |who| {
    let mut changes = AGENT_OWNERS_AGENT(who);
    if let Some(agent) = CallerKind::AgentOwner.user().map(agent) {
        let place = RunPlace::Session { session: SessionId::main(), room: None, owner: agent.owner };
        changes.push(Change::Run(RunChange::PutRun(Arc::new(Run { place, ..run() }))));
    }
    changes
};
const AGENT_WITH_MAIL: Stored = |who| [AGENT_OWNERS_AGENT(who), ANOTHERS_MESSAGE(who)].concat();

const ANOTHERS_AGENT: Stored = |_| vec![put_agent(agent(other_user()))];
const ANOTHERS_AGENT_IN_ROOM: Stored = |who| joined(ANOTHERS_AGENT(who));
/// An agent of the column `AgentOwner`, which is also the owner of the keys.
const AGENT_OWNERS_AGENT: Stored =
    |_| CallerKind::AgentOwner.user().map(agent).map(put_agent).into_iter().collect();
const AGENT_OWNERS_AGENT_IN_ROOM: Stored = |who| joined(AGENT_OWNERS_AGENT(who));
const AGENT_OWNERS_AGENT_NO_ROOM: Stored = |who| [AGENT_OWNERS_AGENT(who), NO_ROOM(who)].concat();
const OWN_AGENT_OF_ANOTHER_NAME: Stored = |who| {
    let own = who.user().map(|owner| Agent { id: AgentId::stored("other"), ..agent(owner) });
    own.map(put_agent).into_iter().collect()
};
/// Another user's agent, shared with all users.
const AGENT_SHARED_WITH_ALL: Stored =
    |_| vec![put_agent(Agent { visibility: Visibility::All, ..agent(other_user()) })];
/// Another user's agent in a second room, of which every caller is a member.
const AGENT_IN_A_COMMON_ROOM: Stored = |who| {
    let kitchen = RoomId::stored("kitchen");
    let mut changes = ANOTHERS_AGENT(who);
    changes.push(Change::Room(RoomChange::PutRoom(Arc::new(Room { id: kitchen.clone(), ..room() }))));
    for id in [Some(coder_member()), who.user().map(MemberId::User)].into_iter().flatten() {
        let member = Member { room: kitchen.clone(), ..member(id, RoomRole::Member) };
        changes.push(Change::Room(RoomChange::PutMember(Arc::new(member))));
    }
    changes
};
/// Another user's agent in a room where only admins may command agents.
const ADMINS_COMMAND_AGENTS: Stored = |who| {
    let room = Room { agent_command_role: RoomRole::Admin, ..room() };
    [ANOTHERS_AGENT_IN_ROOM(who), vec![Change::Room(RoomChange::PutRoom(Arc::new(room)))]].concat()
};
const ANOTHERS_AGENT_IN_A_FROZEN_ROOM: Stored = |who| {
    let room = Room { frozen: Some(Frozen { by: None, at: Time(1) }), ..room() };
    [ANOTHERS_AGENT_IN_ROOM(who), vec![Change::Room(RoomChange::PutRoom(Arc::new(room)))]].concat()
};

/// The agent `coder`.
fn agent(owner: UserId) -> Agent {
    Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: AgentHost { working_directory: Some("/work".into()), ..AgentHost::default() },
        visibility: Default::default(),
        created_at: Time(1),
    }
}

fn put_agent(agent: Agent) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(agent)))
}

/// Adds the agent `coder` to the room.
fn joined(mut changes: Vec<Change>) -> Vec<Change> {
    changes.push(Change::Room(RoomChange::PutMember(Arc::new(member(coder_member(), RoomRole::Member)))));
    changes
}
