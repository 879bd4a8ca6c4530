//! Permissions of the family `settings`, with the verdicts described in `families`.

use crate::requests::{ADMINS, METRICS, PERSON, READ};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::audit::AuditFilter;
use parlor_model::command::ChangeSettings;
use parlor_model::query::{GetSettings, ListAuditRecords, MayReadMetrics, MaySeeLimits};
use parlor_model::{Edit, SettingChanges};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::ChangeSettings(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  change_settings(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListAuditRecords(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  list_audit_records(), READY;
    }
    AnyQuery::GetSettings(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   yes   yes", READ,    GetSettings, READY;
    }
    AnyQuery::MayReadMetrics(_) => {
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", METRICS, MayReadMetrics, READY;
        "who   who   no    no    no    no    yes   no    no    yes   yes   who  ", ADMINS,  MayReadMetrics, READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", PERSON,  MayReadMetrics, KEYS_READ_ONLY;
    }
    AnyQuery::MaySeeLimits(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  MaySeeLimits, READY;
        "who   who   no    no    no    no    yes   no    no    yes   no    yes  ", METRICS, MaySeeLimits, READY;
    }
}

fn change_settings() -> ChangeSettings {
    ChangeSettings { changes: SettingChanges { invitations: Edit::Set(false), ..Default::default() } }
}

fn list_audit_records() -> ListAuditRecords {
    ListAuditRecords { filter: AuditFilter::default() }
}
