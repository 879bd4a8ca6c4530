//! The permission table of all queries, with the verdicts described in `commands`.

use crate::callers::lobby;
use crate::fixtures::*;
use crate::requests::*;
use crate::table::table;
use parlor_model::Query;

table! { Query,
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    Query::Me => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    Query::Me, READY;
    }
    Query::Users { .. } => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  users(), READY;
    }
    Query::SearchUsers { .. } => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    search(), READY;
    }
    Query::Invitations => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  Query::Invitations, READY;
    }
    Query::Audit(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  audit(), READY;
    }
    Query::Settings => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   yes  ", READ,    Query::Settings, READY;
    }
    Query::MayRegister { .. } => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  may_register(), INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  may_register(), EXPIRED_INVITATION;
    }
    Query::Rooms => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    Query::Rooms, READY;
    }
    Query::ProjectRoots => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  Query::ProjectRoots, READY;
    }
    Query::RoomsAt { .. } => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    rooms_at(None), MEMBER_AT_ROOT;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", READ,    rooms_at(None), MEMBER_AT_DISALLOWED_ROOT;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", READ,    rooms_at(None), ROOT_ALLOWED;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    rooms_at(Some(lobby())), MEMBER_AT_ROOT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", READ,    rooms_at(Some(lobby())), ROOT_ALLOWED;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    rooms_at(Some(lobby())), NO_ROOM;
    }
    Query::Workspace { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    workspace(), ROOM_WITH_ROOT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", READ,    workspace(), ROOM_WITH_DISALLOWED_ROOT;
        "who   who   out   ?dir  ?dir  ?dir  out   out   out   no    ?dir  who  ", READ,    workspace(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    workspace(), NO_ROOM;
    }
    Query::Room { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    room(), NO_ROOM;
    }
    Query::Members { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    members(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    members(), NO_ROOM;
    }
    Query::Upload { .. } => {
        "who   who   ?file yes   yes   yes   ?file ?file ?file no    yes   who  ", READ,    read_upload(), UPLOAD_ON_MESSAGE;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    read_upload(), UPLOAD_ON_MESSAGE_CLEARED_AWAY;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    read_upload(), UPLOAD_ON_MESSAGE_NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    read_upload(), OWN_WAITING_UPLOAD;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    read_upload(), ANOTHERS_WAITING_UPLOAD;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    read_upload(), AN_AVATAR;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    read_upload(), READY;
    }
    Query::MayUpload => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   Query::MayUpload, READY;
    }
    Query::RoomsWith { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    rooms_with(), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    rooms_with(), VISIBLE_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    rooms_with(), ANOTHERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    rooms_with(), READY;
    }
    Query::MayFollow { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    may_follow(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    may_follow(), NO_ROOM;
    }
    Query::MayListen { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  may_listen(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  may_listen(), READY;
    }
    Query::Subscriptions { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscriptions(None), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscriptions(Some("main")), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscriptions(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscriptions(None), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Query::Mail { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  mail(None), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  mail(Some("main")), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mail(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  mail(None), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Query::MayReadMetrics => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", METRICS, Query::MayReadMetrics, READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  Query::MayReadMetrics, READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", PERSON,  Query::MayReadMetrics, KEYS_READ_ONLY;
    }
    Query::MaySeeLimits => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  Query::MaySeeLimits, READY;
        "who   who   no    no    no    no    yes   no    no    yes   no    yes  ", METRICS, Query::MaySeeLimits, READY;
    }
    Query::DeadLetters { .. } => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", LETTERS, dead_letters(), READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  dead_letters(), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", LETTERS, dead_letters(), OWNER_OF_KEYS_DEMOTED;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", PERSON,  dead_letters(), KEYS_READ_ONLY;
    }
}
