//! Permissions of the family `mail`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{ADMINS, AGENTS, LETTERS, PERSON, SOURCES, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    AcknowledgeMail, ClearDeadLetters, ImportMail, PathMessage, Publish, ReceiveMail, Relay,
    ResendDeadLetter, Route, Subscribe, Unsubscribe,
};
use parlor_model::query::{
    ListDeadLetters, ListMail, ListMailboxes, ListNewMail, ListSubscriptions, MailPage, MayListenToMailbox,
};
use parlor_model::{AgentId, Mailbox, MessageId, Path, Pattern, Payload, Seq, SessionId};
use std::time::Duration;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::Subscribe(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "slack/**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(Some("main"), "slack/**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/*"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscribe(None, "slack/**"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscribe(None, "slack/**"), MAIL_AGENT_OF_ANOTHER_NAME;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/lobby"), MAIL_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(Some("main"), "room/lobby"), MAIL_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(None, "room/lobby"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(Some("main"), "room/lobby"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(None, "room/lobby"), MAIL_AGENT_NO_ROOM;
    }
    AnyCommand::Unsubscribe(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(None, "slack/**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(Some("main"), "slack/**"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(None, "room/lobby"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  unsubscribe(None, "slack/**"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  unsubscribe(None, "slack/**"), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::ImportMail(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  import(), MAIL_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  import(), READY;
    }
    AnyCommand::Route(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  route("coder", "slack/team"), MAIL_AGENT_NO_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  route("coder", "room/lobby"), MAIL_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  route("coder", "room/lobby"), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  yes   ?bot  ?bot  ?bot  yes   who  ", SOURCES, route("slack-bridge", "slack/team"), NO_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  out   ?bot  ?bot  ?bot  out   who  ", SOURCES, route("slack-bridge", "room/lobby"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  yes   ?bot  ?bot  ?bot  ?bot  who  ", SOURCES, route("slack-bridge", "slack/team"), MAIL_KEY_OF_FORMER_ADMIN;
    }
    AnyCommand::Publish(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, publish("slack/team"), NO_ROOM;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, publish("room/lobby"), READY;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, publish("agent/coder"), MAIL_AGENT;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", SOURCES, publish("slack/team"), MAIL_KEY_OF_FORMER_ADMIN;
    }
    AnyCommand::Relay(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   relay(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   relay(), NO_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", WRITE,   relay(), MAIL_AGENT_IN_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", WRITE,   relay(), MAIL_OWN_AGENT_IN_ROOM;
    }
    AnyCommand::ReceiveMail(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  receive(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  receive(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  receive_in_session(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  receive(), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::AcknowledgeMail(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  acknowledge(None), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  acknowledge(Some("main")), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  acknowledge(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  acknowledge(None), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::ClearDeadLetters(_) => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", LETTERS, ClearDeadLetters, READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  ClearDeadLetters, READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", LETTERS, ClearDeadLetters, MAIL_KEY_OF_FORMER_ADMIN;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", PERSON,  ClearDeadLetters, MAIL_KEY_TO_READ;
    }
    AnyCommand::ResendDeadLetter(_) => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", LETTERS, resend(None), MAIL_LETTERS;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  resend(Some(mailbox(None))), MAIL_LETTERS;
        "who   who   no    no    no    no    ?let  no    no    ?let  ?let  who  ", LETTERS, resend(None), READY;
        "who   who   no    no    no    no    ?let  no    no    ?let  ?let  who  ", LETTERS, resend(Some(mailbox(None))), MAIL_AGENT;
        "who   who   no    no    no    no    ?let  no    no    no    no    who  ", LETTERS, resend(None), MAIL_KEY_OF_FORMER_ADMIN;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::MayListenToMailbox(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  may_listen(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  may_listen(), READY;
    }
    AnyQuery::ListSubscriptions(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscriptions(None), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscriptions(Some("main")), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscriptions(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscriptions(None), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyQuery::ListMail(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  mail(None), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  mail(Some("main")), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mail(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mail(None), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyQuery::ListMailboxes(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  mailboxes(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mailboxes(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mailboxes(), MAIL_AGENT_OF_ANOTHER_NAME;
    }
    AnyQuery::ListNewMail(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  new_mail(), MAIL_AGENT;
    }
    AnyQuery::ListDeadLetters(_) => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   yes  ", LETTERS, dead_letters(), READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   yes  ", ADMINS,  dead_letters(), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    yes  ", LETTERS, dead_letters(), MAIL_KEY_OF_FORMER_ADMIN;
        "who   who   no    no    no    no    yes   no    no    no    no    yes  ", PERSON,  dead_letters(), MAIL_KEY_TO_READ;
    }
}

fn subscribe(session: Option<&str>, pattern: &str) -> Subscribe {
    Subscribe { mailbox: mailbox(session), pattern: Pattern::parse(pattern).unwrap() }
}

fn unsubscribe(session: Option<&str>, pattern: &str) -> Unsubscribe {
    Unsubscribe { mailbox: mailbox(session), pattern: Pattern::parse(pattern).unwrap() }
}

fn route(from: &str, path: &str) -> Route {
    Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: Some("hello".into()),
        source: "test".into(),
        external_id: None,
    }
}

fn publish(path: &str) -> Publish {
    let message = PathMessage {
        name: "tick".into(),
        payload: Payload("{}".into()),
        external_id: "1".into(),
        connection: None,
    };
    let (sender_name, source) = ("ann".into(), "test".into());
    Publish { path: Path::parse(path).unwrap(), sender_name, source, messages: vec![message] }
}

fn relay() -> Relay {
    Relay {
        room: lobby(),
        author: "coder".into(),
        recipient: Some("writer".into()),
        observers: Vec::new(),
        text: "hello".into(),
        continues: None,
        source: "test".into(),
        external_id: None,
    }
}

fn receive() -> ReceiveMail {
    ReceiveMail { mailbox: mailbox(None), limit: 10, lease: None }
}

fn receive_in_session() -> ReceiveMail {
    let lease = Some(Duration::from_secs(30));
    ReceiveMail { mailbox: mailbox(Some("main")), limit: 10, lease }
}

fn acknowledge(session: Option<&str>) -> AcknowledgeMail {
    AcknowledgeMail { mailbox: mailbox(session), messages: vec![MessageId::stored("message")] }
}

fn may_listen() -> MayListenToMailbox {
    MayListenToMailbox { mailbox: mailbox(None) }
}

fn subscriptions(session: Option<&str>) -> ListSubscriptions {
    ListSubscriptions { mailbox: mailbox(session) }
}

fn mail(session: Option<&str>) -> ListMail {
    ListMail { mailbox: mailbox(session), page: MAIL_PAGE }
}

fn mailboxes() -> ListMailboxes {
    ListMailboxes { agent: coder() }
}

fn resend(mailbox: Option<Mailbox>) -> ResendDeadLetter {
    ResendDeadLetter { message: MessageId::stored("letter"), mailbox }
}

fn new_mail() -> ListNewMail {
    ListNewMail { mailbox: mailbox(None), after: Seq(0), limit: 10, also: Vec::new() }
}

fn import() -> ImportMail {
    ImportMail { mailbox: Some(mailbox(None)), messages: Vec::new() }
}

fn dead_letters() -> ListDeadLetters {
    ListDeadLetters { page: MAIL_PAGE }
}

const MAIL_PAGE: MailPage = MailPage { limit: 10, offset: 0, from: None, to: None };

fn mailbox(session: Option<&str>) -> Mailbox {
    Mailbox { agent: coder(), session: session.map(SessionId::stored) }
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}
