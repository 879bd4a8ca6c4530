//! The permission table of all commands.
//!
//! Verdicts: yes: allowed; no: `Forbidden`; who: `NotSignedIn`; out: `NotAMember`; keep: `LastOneRequired`;
//! ?…: `NotFound`, either because it does not exist or because the caller may not know of it; !…:
//! `BelongsToAnother`. Each row gives the verdicts, the scope that a key needs, the command, and the facts.

use crate::fixtures::*;
use crate::requests::*;
use crate::table::table;
use RoomRole::{Admin as ADMIN, Member as MEMBER, Owner as OWNER};
use parlor_model::{Command, RoomPreferenceChange, RoomRole};

table! { Command,
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    Command::OfferSetup { .. } => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  offer_setup(), READY;
    }
    Command::SetUp { .. } => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  set_up(), READY;
    }

    Command::CreateUser(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  create_user(), READY;
    }
    Command::ChangeUser { .. } => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  change_user(), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    yes  ", ADMINS,  set_password(), READY;
    }
    Command::RemoveUser { .. } => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  remove_user(), READY;
    }
    Command::CreateInvitation(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  create_invitation(), READY;
        "who   who   no    no    no    no    no    no    no    no    no    no   ", ADMINS,  create_invitation(), NO_INVITATIONS;
    }
    Command::ChangeSettings(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  change_settings(), READY;
    }
    Command::RevokeInvitation { .. } => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  revoke_invitation(), INVITATION;
        "who   who   no    no    no    no    ?inv  no    no    no    ?inv  ?inv ", ADMINS,  revoke_invitation(), READY;
    }
    Command::Register { .. } => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  register(), INVITATION;
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  register(), INVITATION_OF_AN_ADMIN;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), INVITATION_OF_FORMER_ADMIN;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), INVITATION_OF_REMOVED_USER;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), SPENT_INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), EXPIRED_INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), NO_INVITATIONS;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(), READY;
    }
    Command::OfferPairing { .. } => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  offer_pairing(), READY;
    }
    Command::Pair { .. } => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  pair(), PAIRING;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  pair(), EXPIRED_PAIRING;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  pair(), PAIRING_OF_REMOVED_USER;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  pair(), READY;
    }
    Command::ChangeProfile(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   change_profile(), READY;
    }
    Command::ChangePassword { .. } => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  change_password(), READY;
    }

    Command::CreateRoom { .. } => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_routed_room(), OWN_ROUTER;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_routed_room(), SHARED_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   create_routed_room(), ANOTHERS_ROUTER;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_room(other_member()), READY;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", WRITE,   create_room(coder_member()), READY;
    }
    Command::ChangeRoom { .. } => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   route_room(), OWN_ROUTER;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   route_room(), SHARED_ROUTER;
        "who   who   out   no    ?rout ?rout out   out   out   no    ?rout who  ", WRITE,   route_room(), ANOTHERS_ROUTER;
        "who   who   out   no    ?rout ?rout out   out   out   no    ?rout who  ", WRITE,   route_room(), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   change_room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   change_room(), NO_ROOM;
    }
    Command::SetProjectRoot { .. } => {
        "who   who   no    no    no    no    out   no    no    no    yes   yes  ", ADMINS,  set_project_root(), ROOT_ALLOWED;
        "who   who   no    no    no    no    out   no    no    no    no    no   ", ADMINS,  set_project_root(), READY;
        "who   who   no    no    no    no    ?room no    no    no    ?room ?room", ADMINS,  set_project_root(), NO_ROOM;
    }
    Command::DeleteRoom { .. } => {
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   delete_room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   delete_room(), NO_ROOM;
    }
    Command::Freeze { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    no    yes  ", PERSON,  freeze(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    ?room", PERSON,  freeze(), NO_ROOM;
    }
    Command::Thaw { .. } => {
        "who   who   out   no    yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), FROZEN_BY_MEMBER;
        "who   who   out   no    yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), FROZEN_BY_OPERATOR;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    ?room", PERSON,  thaw(), NO_ROOM;
    }
    Command::AddMember { .. } => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(other_member(), MEMBER), READY;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   add(other_member(), ADMIN), READY;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   add(other_member(), OWNER), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(coder_member(), MEMBER), OWN_AGENT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   add(coder_member(), OWNER), OWN_AGENT;
        "who   who   out   no    ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), ANOTHERS_AGENT;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(coder_member(), MEMBER), AGENT_SHARED_WITH_ALL;
        "who   who   out   no    yes   ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), AGENT_SHARED_WITH_ADMIN;
        "who   who   out   no    ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   add(other_member(), MEMBER), NO_ROOM;
    }
    Command::ChangeMember { .. } => {
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), ADMIN), A_MEMBER;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), MEMBER), AN_ADMIN;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), OWNER), AN_ADMIN;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   change(coder_member(), OWNER), AN_AGENT;
        "who   who   out   no    no    keep  out   out   out   no    keep  who  ", WRITE,   change(other_member(), MEMBER), THE_OWNER;
        "who   who   out   no    no    ?mate out   out   out   no    ?mate who  ", WRITE,   change(other_member(), ADMIN), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   describe(other_member()), A_MEMBER;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   describe(other_member()), THE_OWNER;
        "who   who   out   no    ?mate ?mate out   out   out   no    ?mate who  ", WRITE,   describe(other_member()), READY;
    }
    Command::RemoveMember { .. } => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(other_member()), A_MEMBER;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   remove(other_member()), AN_ADMIN;
        "who   who   out   keep  keep  keep  out   out   out   no    keep  who  ", WRITE,   remove(other_member()), THE_OWNER;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(person("member")), THE_MEMBER_COLUMN;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(person("admin")), THE_ADMIN_COLUMN;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(coder_member()), OWN_AGENT_IN_ROOM;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(coder_member()), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   ?mate ?mate ?mate out   out   out   no    ?mate who  ", WRITE,   remove(other_member()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   remove(other_member()), NO_ROOM;
    }

    Command::ChangeRoomPreferences { .. } => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   change_preferences(RoomPreferenceChange::Pin), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   change_preferences(RoomPreferenceChange::Clear), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   change_preferences(RoomPreferenceChange::Archive), NO_ROOM;
    }

    Command::Upload(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   upload(false), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   upload(true), READY;
    }
    Command::TakeUnreferencedBlobs { .. } => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  take_released(), READY;
    }
    Command::NoteBackup { .. } => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  note_backup(), READY;
    }
    Command::AppendNoop => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  Command::AppendNoop, READY;
    }

    Command::Subscribe { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "slack/**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(Some("main"), "slack/**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/*"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscribe(None, "slack/**"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  subscribe(None, "slack/**"), OWN_AGENT_OF_ANOTHER_NAME;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(None, "room/lobby"), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  subscribe(Some("main"), "room/lobby"), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(None, "room/lobby"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(Some("main"), "room/lobby"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  subscribe(None, "room/lobby"), AGENT_OWNERS_AGENT_NO_ROOM;
    }
    Command::Unsubscribe { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(None, "slack/**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(Some("main"), "slack/**"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  unsubscribe(None, "room/lobby"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  unsubscribe(None, "slack/**"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  unsubscribe(None, "slack/**"), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Command::Route(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  route("coder", "slack/team"), AGENT_OWNERS_AGENT_NO_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  route("coder", "room/lobby"), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  route("coder", "room/lobby"), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  yes   ?bot  ?bot  ?bot  yes   who  ", SOURCES, route("slack-bridge", "slack/team"), NO_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  out   ?bot  ?bot  ?bot  out   who  ", SOURCES, route("slack-bridge", "room/lobby"), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  yes   ?bot  ?bot  ?bot  ?bot  who  ", SOURCES, route("slack-bridge", "slack/team"), OWNER_OF_KEYS_DEMOTED;
    }
    Command::Relay(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   relay(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   relay(), NO_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    no    who  ", WRITE,   relay(), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", WRITE,   relay(), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Command::Receive { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  receive(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  receive(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  receive_in_session(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  receive(), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Command::Acknowledge { .. } => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  acknowledge(None), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  acknowledge(Some("main")), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  acknowledge(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  acknowledge(None), OWN_AGENT_OF_ANOTHER_NAME;
    }
    Command::ClearDeadLetters => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", LETTERS, Command::ClearDeadLetters, READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  Command::ClearDeadLetters, READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", LETTERS, Command::ClearDeadLetters, OWNER_OF_KEYS_DEMOTED;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", PERSON,  Command::ClearDeadLetters, KEYS_READ_ONLY;
    }

}
