//! The audit log, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::AuditChange;
use parlor_engine::ports::ReadAudit;
use parlor_model::UserId;
use parlor_model::audit::{Action, Actor, AuditFilter, AuditRecord, NewAuditEntry};

impl ReadAudit for TablesView {
    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault> {
        let of = |record: &&AuditRecord| {
            record.note.subject.as_ref().map(|subject| &*subject.id) == user.map(UserId::as_str)
        };
        let failures = self.tables.audit.values().filter(|record| record.note.action == Action::SignInFailed);
        Ok(failures.rev().find(of).cloned())
    }

    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault> {
        let matches = |record: &&AuditRecord| {
            let note = &record.note;
            let actor = match &note.actor {
                Actor::Person { id, name } | Actor::Program { id, name, .. } => Some((id.as_str(), &**name)),
                Actor::Nobody | Actor::Operator => None,
            };
            let by = |requested: &str| actor.is_some_and(|(id, name)| id == requested || name == requested);
            let about = |requested: &str| {
                let subject = note.subject.as_ref();
                subject.is_some_and(|it| &*it.id == requested || it.name.as_deref() == Some(requested))
            };
            page.before.is_none_or(|before| record.id < before)
                && page.action.is_none_or(|action| note.action == action)
                && page.actor.as_deref().is_none_or(by)
                && page.subject.as_deref().is_none_or(about)
                && page.from.is_none_or(|from| record.last_at >= from)
                && page.to.is_none_or(|to| note.at <= to)
        };
        Ok(self.tables.audit.values().rev().filter(matches).take(page.limit).cloned().collect())
    }
}

impl Tables {
    pub fn apply_audit(&mut self, change: &AuditChange) {
        match change {
            AuditChange::AppendAudit(note) => {
                self.last_audit_id += 1;
                let record = AuditRecord {
                    id: self.last_audit_id,
                    note: NewAuditEntry::clone(note),
                    count: 1,
                    last_at: note.at,
                };
                self.audit.insert(self.last_audit_id, record);
            }
            AuditChange::RepeatAudit { id, at, address } => {
                if let Some(record) = self.audit.get_mut(id) {
                    (record.count, record.last_at, record.note.address) = (record.count + 1, *at, *address);
                }
            }
        }
    }
}
