//! Permissions of the family `messages`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{ALL_SCOPES, READ, SOURCES, WRITE, at_root, post};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    DeleteMessage, DeleteMessages, EditMessage, ForwardMessage, MarkAllRead, MarkRoomRead, PromptAgent,
    PromptMode, RewindRoom,
};
use parlor_model::query::{
    CountReplies, GetMessage, ListDestinationHistory, ListHistory, ListRecent, ListReplies, ListRevisions,
    MayPromptAgent, Page, SearchCursor, SearchMessages,
};
use parlor_model::{AgentId, Destination, MessageId, Path, Post, PostAuthor, RoomId, RoomSelection, Seq};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::Post(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   post(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   post(), NO_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", ALL_SCOPES, post_by_agent(), OWN_AGENT_IN_ROOM;
        "who   who   out   out   out   out   out   out   out   no    out   who  ", ALL_SCOPES, post_by_agent(), CHAT_WITH_OWN_AGENT;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    yes   who  ", ALL_SCOPES, post_by_agent(), TASK_AGENT_IN_ROOM;
    }
    AnyCommand::EditMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   edit(), OWN_MESSAGE;
        "who   who   ?msg  no    no    no    ?msg  ?msg  ?msg  no    no    who  ", WRITE,   edit(), ANOTHERS_MESSAGE;
        "who   who   ?msg  no    no    no    ?msg  ?msg  ?msg  no    no    who  ", WRITE,   edit(), OWN_AGENTS_MESSAGE;
        "who   who   ?msg  no    no    no    ?msg  ?msg  ?msg  no    no    who  ", WRITE,   edit(), OWN_FORWARDED_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   edit(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   edit(), NO_ROOM;
    }
    AnyCommand::DeleteMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete(), OWN_MESSAGE;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete(), ANOTHERS_MESSAGE;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete(), OWN_AGENTS_MESSAGE;
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete(), OWN_FORWARDED_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   delete(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   delete(), NO_ROOM;
    }
    AnyCommand::DeleteMessages(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete_many(), OWN_MESSAGES;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   delete_many(), ANOTHERS_MESSAGE_AMONG_OWN;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   delete_many(), OWN_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   delete_many(), FOREIGN_MESSAGE_AMONG_OWN;
    }
    AnyCommand::RewindRoom(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   rewind("lobby"), OWN_MESSAGE;
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   rewind("lobby"), OWN_MESSAGE_AND_ANSWERS;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   rewind("lobby"), OWN_MESSAGE_AND_ANOTHERS;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   rewind("lobby"), OWN_MESSAGE_ADMINS_COMMAND_AGENTS;
        "who   who   ?msg  no    no    no    ?msg  ?msg  ?msg  no    no    who  ", WRITE,   rewind("lobby"), ANOTHERS_MESSAGE;
        "who   who   ?msg  no    no    no    ?msg  ?msg  ?msg  no    no    who  ", WRITE,   rewind("lobby"), OWN_AGENTS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   rewind("other"), OWN_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   rewind("lobby"), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   rewind("lobby"), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   rewind("lobby"), NO_ROOM;
    }
    AnyCommand::ForwardMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   forward(), MESSAGE_IN_BOTH;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   forward(), MESSAGE_SEEN_BY_ALL;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   forward(), MESSAGE_ELSEWHERE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   forward(), MESSAGE_CLEARED_THERE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   forward(), READY;
    }
    AnyCommand::MarkRoomRead(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   mark_read(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   mark_read(), NO_ROOM;
    }
    AnyCommand::MarkAllRead(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   MarkAllRead, READY;
    }
    // A key needs both scopes; with `ALL_SCOPES` the columns of keys are a key with none and a key with all.
    AnyCommand::PromptAgent(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", READ,    prompt(NEW_ROOM), CHAT_WITH_OWN_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", WRITE,   prompt(NEW_ROOM), CHAT_WITH_OWN_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", ALL_SCOPES, prompt(NEW_ROOM), CHAT_WITH_OWN_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", ALL_SCOPES, prompt(NEW_ROOM), CHAT_WITH_AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", ALL_SCOPES, prompt(NEW_ROOM), CHAT_WITH_SHARED_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", ALL_SCOPES, prompt(NEW_ROOM), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", ALL_SCOPES, prompt_by_name(NEW_ROOM), CHAT_WITH_OWN_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", ALL_SCOPES, prompt_by_name(NEW_ROOM), CHAT_WITH_AGENT_OWNERS_AGENT;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", ALL_SCOPES, prompt(lobby().into()), TASK_AGENT_IN_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", ALL_SCOPES, prompt_by_name(lobby().into()), TASK_AGENT_IN_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", ALL_SCOPES, prompt(lobby().into()), TASK_AGENT;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", ALL_SCOPES, prompt(lobby().into()), TASK_AGENT_NO_ROOM;
        "who   who   no    where where where no    no    no    no    where who  ", ALL_SCOPES, prompt(at_root("/srv/code", None)), LOBBY_AT_ROOT;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListHistory(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    history(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    history(), NO_ROOM;
    }
    AnyQuery::ListDestinationHistory(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    history_of(Destination::Room(lobby())), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    history_of(Destination::Room(lobby())), NO_ROOM;
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, history_of(on_path("slack/team")), READY;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, history_of(on_path("room/lobby")), READY;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, history_of(on_path("agent/coder")), READY;
    }
    AnyQuery::ListRecent(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListRecent, READY;
    }
    AnyQuery::SearchMessages(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    search_messages(None), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    search_messages(Some(lobby())), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    search_messages(Some(lobby())), NO_ROOM;
    }
    AnyQuery::GetMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", READ,    get_message(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    get_message(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    get_message(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    get_message(), NO_ROOM;
    }
    AnyQuery::ListRevisions(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", READ,    revisions(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    revisions(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    revisions(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    revisions(), NO_ROOM;
    }
    AnyQuery::ListReplies(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", READ,    replies(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    replies(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    replies(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    replies(), NO_ROOM;
    }
    AnyQuery::MayPromptAgent(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", READ,    may_prompt(NEW_ROOM), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", WRITE,   may_prompt(NEW_ROOM), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", ALL_SCOPES, may_prompt(NEW_ROOM), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", ALL_SCOPES, may_prompt(lobby().into()), TASK_AGENT_IN_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", ALL_SCOPES, may_prompt(lobby().into()), TASK_AGENT;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", ALL_SCOPES, may_prompt(lobby().into()), TASK_AGENT_NO_ROOM;
        "who   who   no    where where where no    no    no    no    where who  ", ALL_SCOPES, may_prompt(at_root("/srv/code", None)), LOBBY_AT_ROOT;
    }
    AnyQuery::CountReplies(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", READ,    reply_count(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    reply_count(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    reply_count(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", READ,    reply_count(), NO_ROOM;
    }
}

/// A post in the name of the agent `coder`.
fn post_by_agent() -> Post {
    let agent = AgentId::stored("coder");
    Post {
        author: Some(Box::new(PostAuthor { agent, claimed_depth: 0, claimed_chain: Vec::new() })),
        ..post()
    }
}

fn message() -> MessageId {
    MessageId::stored("message")
}

fn edit() -> EditMessage {
    EditMessage { message: message(), text: "other words".into() }
}

fn delete() -> DeleteMessage {
    DeleteMessage { message: message() }
}

fn delete_many() -> DeleteMessages {
    DeleteMessages { messages: vec![message(), MessageId::stored("other")] }
}

fn rewind(room: &str) -> RewindRoom {
    RewindRoom { room: RoomId::stored(room), message: message() }
}

fn forward() -> ForwardMessage {
    ForwardMessage { message: message(), room: lobby(), client_message_id: None }
}

fn mark_read() -> MarkRoomRead {
    MarkRoomRead { room: lobby() }
}

const NEW_ROOM: RoomSelection = RoomSelection::EMPTY;

fn prompt(rooms: RoomSelection) -> PromptAgent {
    let (agent, text, mode) = (AgentId::stored("coder"), "hello".into(), PromptMode::Normal);
    PromptAgent { agent, rooms, text, mode, attachments: Vec::new() }
}

/// The text names the agent, instead of the agent that does not exist.
fn prompt_by_name(rooms: RoomSelection) -> PromptAgent {
    PromptAgent { agent: AgentId::stored("nobody"), text: "@CODER hello".into(), ..prompt(rooms) }
}

fn may_prompt(rooms: RoomSelection) -> MayPromptAgent {
    MayPromptAgent { agent: AgentId::stored("coder"), rooms, text: "hello".into() }
}

fn on_path(path: &str) -> Destination {
    Destination::Path(Path::parse(path).unwrap())
}

fn history_of(destination: Destination) -> ListDestinationHistory {
    let (start, end, until, cursor) = (None, None, None, None);
    ListDestinationHistory { destination, forwards: false, start, end, until, cursor, limit: 10 }
}

fn history() -> ListHistory {
    ListHistory { room: lobby(), page: Page::Before(None), limit: 10 }
}

fn search_messages(room: Option<RoomId>) -> SearchMessages {
    SearchMessages {
        text: "hello".into(),
        room,
        sender: None,
        sender_kind: None,
        kind: None,
        from: None,
        to: None,
        from_place: SearchCursor::default(),
        limit: 10,
    }
}

fn get_message() -> GetMessage {
    GetMessage { message: message() }
}

fn revisions() -> ListRevisions {
    ListRevisions { message: message() }
}

fn replies() -> ListReplies {
    ListReplies { message: message(), after: Seq(0), limit: 10 }
}

fn reply_count() -> CountReplies {
    CountReplies { message: message() }
}
