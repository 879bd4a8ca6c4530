//! The audit log.

use super::trimming::run_daily_maintenance;
use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::{DAY, WINDOWS};
use parlor_engine::changes::{AuditChange, Change};
use parlor_model::audit::{Action, Actor, AuditFilter, AuditRecord, NewAuditEntry, Subject, SubjectKind};
use parlor_model::{KeyId, Time};
use std::sync::Arc;

const ALL: AuditFilter =
    AuditFilter { limit: 99, before: None, action: None, actor: None, subject: None, from: None, to: None };

fn note(at: i64, action: Action, subject: Option<&str>) -> NewAuditEntry {
    let subject = subject.map(|id| Subject {
        kind: SubjectKind::User,
        id: id.into(),
        name: Some(format!("{id} the \"great\"").into()),
    });
    let actor = Actor::Person { id: user_id("ann"), name: "Ann".into() };
    let address = Some("2001:db8::7".parse().unwrap());
    NewAuditEntry { at: Time(at), actor, action, subject, detail: Some("how".into()), address }
}

fn put(ports: &mut Ports, notes: &[NewAuditEntry]) {
    ports.change(
        notes.iter().map(|note| Change::Audit(AuditChange::AppendAudit(Arc::new(note.clone())))).collect(),
    );
}

fn ids(ports: &Ports, page: AuditFilter) -> Vec<u64> {
    ports.read(|s| s.audit(&page)).iter().map(|record| record.id).collect()
}

#[test]
fn audit_records_of_every_kind_keep_every_field_newest_first() {
    each(|ports| {
        let mut notes = Vec::new();
        for (at, action) in (1..).zip(Action::ALL) {
            notes.push(note(at, *action, Some("bob")));
        }
        for (at, kind) in (100..).zip(SubjectKind::ALL) {
            let subject = Subject { kind: *kind, id: "it".into(), name: None };
            notes.push(NewAuditEntry { subject: Some(subject), ..note(at, Action::UserChanged, None) });
        }
        let program = Actor::Program { id: user_id("ann"), name: "Ann".into(), key: KeyId::stored("k1") };
        for (at, actor) in (200..).zip([Actor::Nobody, Actor::Operator, program]) {
            let bare = NewAuditEntry {
                subject: None,
                detail: None,
                address: None,
                ..note(at, Action::SignedOut, None)
            };
            notes.push(NewAuditEntry { actor, ..bare });
        }
        put(ports, &notes);
        ports.restart();
        let found = ports.read(|s| s.audit(&ALL));
        let kept = |(id, note): (u64, NewAuditEntry)| AuditRecord { id, count: 1, last_at: note.at, note };
        let mut expected: Vec<AuditRecord> = (1..).zip(notes).map(kept).collect();
        expected.reverse();
        assert_eq!(found, expected);
    });
}

#[test]
fn audit_records_are_filtered_by_page_action_actor_subject_and_time() {
    each(|ports| {
        let other = Actor::Person { id: user_id("bob"), name: "Bob".into() };
        put(
            ports,
            &[
                note(10, Action::SignedIn, Some("ann")),
                NewAuditEntry { actor: other, ..note(20, Action::KeyCreated, Some("key")) },
                note(30, Action::SignedIn, Some("bob")),
                note(40, Action::SettingsChanged, None),
            ],
        );
        let page = |change: fn(&mut AuditFilter)| {
            let mut page = ALL;
            change(&mut page);
            ids(ports, page)
        };
        assert_eq!(page(|page| page.limit = 2), [4, 3]);
        assert_eq!(page(|page| page.before = Some(3)), [2, 1]);
        assert_eq!(page(|page| page.before = Some(u64::MAX)), [4, 3, 2, 1]);
        assert_eq!(page(|page| page.action = Some(Action::SignedIn)), [3, 1]);
        assert_eq!(page(|page| page.actor = Some("bob".into())), [2]);
        assert_eq!(page(|page| page.actor = Some("Ann".into())), [4, 3, 1]);
        assert_eq!(page(|page| page.subject = Some("key".into())), [2]);
        assert_eq!(page(|page| page.subject = Some("bob the \"great\"".into())), [3]);
        assert_eq!(page(|page| (page.from, page.to) = (Some(Time(20)), Some(Time(30)))), [3, 2]);
        assert_eq!(page(|page| page.subject = Some("%".into())), [0; 0]);
    });
}

#[test]
fn a_repetition_is_counted_and_the_last_failed_sign_in_of_each_user_is_found() {
    each(|ports| {
        put(
            ports,
            &[
                note(10, Action::SignInFailed, Some("ann")),
                note(20, Action::SignInFailed, None),
                note(30, Action::SignInFailed, Some("ann")),
                note(40, Action::SignedIn, Some("ann")),
            ],
        );
        let last = |user: Option<&str>| {
            let user = user.map(user_id);
            ports.read(|s| s.last_failed_sign_in(user.as_ref())).map(|record| record.id)
        };
        assert_eq!((last(Some("ann")), last(None), last(Some("bob"))), (Some(3), Some(2), None));
        let address = Some("192.0.2.1".parse().unwrap());
        ports.change(vec![Change::Audit(AuditChange::RepeatAudit { id: 3, at: Time(50), address })]);
        ports.change(vec![Change::Audit(AuditChange::RepeatAudit { id: 3, at: Time(60), address: None })]);
        let record = ports.read(|s| s.last_failed_sign_in(Some(&user_id("ann")))).unwrap();
        assert_eq!(
            (record.count, record.last_at, record.note.at, record.note.address),
            (3, Time(60), Time(30), None)
        );
        assert_eq!(ids(ports, AuditFilter { from: Some(Time(55)), ..ALL }), [3], "filtered by its last time");
    });
}

#[test]
fn audit_records_are_kept_for_the_window_and_their_ids_are_not_reused() {
    each(|ports| {
        let noon = Time(1_700_000_000_000_000);
        put(ports, &[note(noon.0, Action::SignedIn, None), note(noon.plus(DAY).0, Action::SignedIn, None)]);
        run_daily_maintenance(ports, noon, 30);
        ports.store.run_maintenance(noon.plus(WINDOWS.audit)).unwrap();
        assert_eq!(ids(ports, ALL), [2, 1]);
        ports.store.run_maintenance(noon.plus(WINDOWS.audit).plus(DAY / 2)).unwrap();
        assert_eq!(ids(ports, ALL), [2]);
        ports.store.run_maintenance(noon.plus(100 * WINDOWS.audit)).unwrap();
        assert_eq!(ids(ports, ALL), [2], "no record is deleted after a clock jump");
        run_daily_maintenance(ports, noon.plus(WINDOWS.audit), 3);
        assert_eq!(ids(ports, ALL), [0; 0]);
        put(ports, &[note(noon.0, Action::SignedIn, None)]);
        assert_eq!(ids(ports, ALL), [3]);
    });
}
