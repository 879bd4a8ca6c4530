//! Permissions of the family `approvals`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{PERSON, READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    AnswerQuestions, AskApproval, DecideApproval, ExpireApproval, RevokeApprovalRule,
};
use parlor_model::query::{ListApprovalRules, ListApprovals, ListOpenQuestions, ListOwnApprovals};
use parlor_model::{AgentId, ApprovalId, ApprovalSubject, GatewayId, InputDigest, Payload, RunId};
use std::time::Duration;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::AskApproval(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  ask_approval(), READY;
    }
    AnyCommand::ExpireApproval(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  expire_approval(), APPROVAL;
    }
    AnyCommand::DecideApproval(_) => {
        "who   who   ?ask  yes   yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(true), APPROVAL;
        "who   who   ?ask  yes   yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(false), APPROVAL;
        "who   who   ?ask  yes   yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(true), APPROVAL_OF_OWN_AGENT;
        "who   who   ?ask  ?ask  yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(true), APPROVAL_FOR_ADMINS;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(true), READY;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  no    no    who  ", PERSON,  decide_approval(true), APPROVAL_IN_NO_ROOM;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  yes   ?ask  no    no    who  ", PERSON,  decide_approval(true), APPROVAL_IN_A_SESSION;
    }
    AnyCommand::AnswerQuestions(_) => {
        "who   who   ?ask  yes   yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  answer_questions(), APPROVAL;
        "who   who   ?ask  ?ask  yes   yes   ?ask  ?ask  ?ask  no    no    who  ", PERSON,  answer_questions(), APPROVAL_FOR_ADMINS;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  no    no    who  ", PERSON,  answer_questions(), READY;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  ?ask  no    no    who  ", PERSON,  answer_questions(), APPROVAL_IN_NO_ROOM;
        "who   who   ?ask  ?ask  ?ask  ?ask  ?ask  yes   ?ask  no    no    who  ", PERSON,  answer_questions(), APPROVAL_IN_A_SESSION;
    }
    AnyCommand::RevokeApprovalRule(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   revoke_rule(), ANOTHERS_APPROVAL_RULE;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   revoke_rule(), OWN_APPROVAL_RULE;
        "who   who   out   ?rule ?rule ?rule out   out   out   no    ?rule who  ", WRITE,   revoke_rule(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   revoke_rule(), NO_ROOM;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListApprovals(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_approvals(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_approvals(), NO_ROOM;
    }
    AnyQuery::ListOpenQuestions(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListOpenQuestions, READY;
    }
    AnyQuery::ListOwnApprovals(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListOwnApprovals, READY;
    }
    AnyQuery::ListApprovalRules(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_approval_rules(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_approval_rules(), NO_ROOM;
    }
}

fn approval() -> ApprovalId {
    ApprovalId::stored("approval")
}

fn ask_approval() -> AskApproval {
    AskApproval {
        run: RunId::stored("run"),
        gateway: GatewayId::stored("gateway"),
        request: "1".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload("{}".into())),
        digest: InputDigest([1; 32]),
        timeout: Duration::from_secs(60),
    }
}

fn expire_approval() -> ExpireApproval {
    ExpireApproval { approval: approval() }
}

fn decide_approval(allow: bool) -> DecideApproval {
    DecideApproval { approval: approval(), allow, always: allow, reason: None, digest: None }
}

fn answer_questions() -> AnswerQuestions {
    AnswerQuestions { approval: approval(), answers: Vec::new() }
}

fn revoke_rule() -> RevokeApprovalRule {
    RevokeApprovalRule { room: lobby(), agent: AgentId::stored("coder"), tool: "Bash".into() }
}

fn list_approvals() -> ListApprovals {
    ListApprovals { room: lobby() }
}

fn list_approval_rules() -> ListApprovalRules {
    ListApprovalRules { room: lobby() }
}
