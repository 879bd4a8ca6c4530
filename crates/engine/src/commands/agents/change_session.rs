//! Creates a session of an agent, or changes an existing one.

use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::mail::sessions::new_session;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{ChangeSession, SessionChanges};
use parlor_model::{Field, MemberId, Refusal, Scope, Session};

pub struct Facts {
    /// The session before the change.
    existing: Option<Session>,
    /// Number of sessions of the agent.
    session_count: usize,
}

impl Command for ChangeSession {
    type Facts = Facts;
    type Receipt = Session;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        check_session_changes(&self.changes, &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent. A room can be set only while the agent is a member of it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        view.own_agent(caller, &self.agent, Scope::Agents)?;
        if let Some(room) = self.changes.room.new_value() {
            let member = MemberId::Agent(self.agent.clone());
            if view.store.member(room, &member)?.is_none() {
                return Err(Refusal::NotAMember { room: room.clone() }.into());
            }
        }
        let sessions = view.store.sessions(&self.agent)?;
        let session_count = sessions.len();
        let existing = sessions.into_iter().find(|session| session.id == self.session);
        Ok(Facts { existing, session_count })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Session, Refusal> {
        let mut session = match &facts.existing {
            Some(existing) => existing.clone(),
            None => new_session(&self.agent, &self.session, facts.session_count, effects.now)?,
        };
        let SessionChanges { title, auto_run, room, is_default, is_used, settings } = self.changes;
        session.title = title.unwrap_or(session.title);
        auto_run.apply_to(&mut session.auto_run);
        room.apply_to(&mut session.room);
        session.is_default = is_default.unwrap_or(session.is_default);
        if is_used {
            session.last_used_at = Some(effects.now);
        }
        session.settings.extend(settings);
        let size: usize = session.settings.iter().map(|(name, value)| name.len() + value.0.len()).sum();
        if size > Session::MAX_SETTINGS_BYTES {
            return Err(Refusal::invalid(Field::Settings, "is larger than 64 KB"));
        }
        if facts.existing.as_ref() != Some(&session) {
            effects.change(MailChange::PutSession(session.clone()));
        }
        Ok(session)
    }
}

pub fn check_session_changes(changes: &SessionChanges, field_errors: &mut FieldErrors) {
    if let Some(title) = &changes.title {
        field_errors.line(Field::Title, title, Session::MAX_TITLE_CHARS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::mail::sessions::MAX_SESSIONS;
    use crate::commands::test_fixtures::{NOW, decide};
    use parlor_model::{AgentId, AutoRun, Edit, Payload, RoomId, SessionId, Time};

    fn stored() -> Session {
        let session = Session::new(AgentId::stored("coder"), SessionId::stored("side"), "Side", Time(1));
        Session { settings: [("a".into(), Payload("1".into()))].into(), ..session }
    }

    fn change(changes: SessionChanges, existing: Option<Session>) -> Result<(Session, usize), Refusal> {
        let (agent, session) = (AgentId::stored("coder"), SessionId::stored("side"));
        let facts = Facts { session_count: 1, existing };
        let (session, effects) = decide(ChangeSession { agent, session, changes }, facts)?;
        let put =
            |change: &&Change| matches!(change, Change::Mail(MailChange::PutSession(put)) if *put == session);
        let count = effects.changes.iter().filter(put).count();
        assert_eq!(count, effects.changes.len());
        Ok((session, count))
    }

    #[test]
    fn a_missing_session_is_created_with_its_id_as_title() {
        let (made, changes) = change(SessionChanges::default(), None).unwrap();
        let expected = Session::new(AgentId::stored("coder"), SessionId::stored("side"), "side", NOW);
        assert_eq!((made, changes), (expected, 1));
    }

    #[test]
    fn fields_that_a_change_does_not_name_stay() {
        assert_eq!(change(SessionChanges::default(), Some(stored())), Ok((stored(), 0)));
        let changes = SessionChanges {
            auto_run: Edit::Set(AutoRun::of(true)),
            room: Edit::Set(RoomId::stored("lobby")),
            is_used: true,
            settings: vec![("b".into(), Payload("2".into()))],
            ..SessionChanges::default()
        };
        let changed = Session {
            auto_run: Some(AutoRun::of(true)),
            room: Some(RoomId::stored("lobby")),
            last_used_at: Some(NOW),
            settings: ["a", "b"]
                .map(|name| (name.into(), Payload(if name == "a" { "1" } else { "2" }.into())))
                .into(),
            ..stored()
        };
        assert_eq!(change(changes, Some(stored())), Ok((changed.clone(), 1)));
        let removed =
            SessionChanges { auto_run: Edit::Clear, room: Edit::Clear, ..SessionChanges::default() };
        let expected = Session { auto_run: None, room: None, ..changed.clone() };
        assert_eq!(change(removed, Some(changed)), Ok((expected, 1)));
    }

    #[test]
    fn sessions_and_their_settings_are_limited() {
        let settings = vec![("big".into(), Payload("1".repeat(65_536).into()))];
        let big = SessionChanges { settings, ..SessionChanges::default() };
        let refused = change(big, Some(stored())).unwrap_err();
        assert_eq!(refused, Refusal::invalid(Field::Settings, "is larger than 64 KB"));
        let (agent, session) = (AgentId::stored("coder"), SessionId::stored("side"));
        let facts = Facts { session_count: MAX_SESSIONS, existing: None };
        let command = ChangeSession { agent, session, changes: SessionChanges::default() };
        let refused = decide(command, facts).map(|(session, _)| session);
        assert_eq!(refused, Err(Refusal::invalid(Field::Session, "the agent has too many sessions")));
    }
}
