//! Deletes rows that are older than their retention window.

use super::Retention;
use super::tables::Tables;
use parlor_model::{MessageId, Run, Seq, SignInId, Time, UploadPurpose};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Tables {
    pub fn apply_retention(&mut self, now: Time, windows: &Retention) {
        self.trim_log(now.minus(windows.log));
        self.delete_old_keys(now.minus(windows.once));
        let old = now.minus(windows.uploads);
        self.remove_uploads(|upload| upload.purpose == UploadPurpose::Unattached && upload.created_at < old);
        let ended: Vec<SignInId> =
            self.sign_ins.rows().filter(|sign_in| sign_in.expires_at <= now).map(|s| s.id.clone()).collect();
        for sign_in in ended {
            self.end_sign_in(&sign_in);
        }
        let invitations = self.invitations.rows().map(|(invitation, _)| invitation);
        let expired: Vec<_> =
            invitations.filter(|invitation| invitation.expires_at <= now).map(|i| i.id.clone()).collect();
        for invitation in expired {
            self.invitations.remove(&invitation);
        }
        self.remove_room_invitations(|invitation| invitation.expires_at <= now);
        self.pairings.retain(|_, (pairing, _)| pairing.expires_at > now);
        let old = now.minus(windows.log);
        self.remove_approvals(|approval| approval.decided_at.is_some_and(|at| at < old));
        self.turns.retain(|turn| turn.decision.at >= old);
        let clock_trusted = self.clock_is_trusted(now);
        if clock_trusted {
            let oldest = now.minus(windows.audit);
            self.audit.retain(|_, record| record.last_at >= oldest);
        }
        if let (Some(retention), true) = (windows.messages, clock_trusted) {
            self.delete_old_messages(now.minus(retention));
        }
    }

    /// False for 24 hours after a clock jump or an outage, so that a wrong clock does not delete everything.
    fn clock_is_trusted(&mut self, now: Time) -> bool {
        if self.last_maintenance.is_none_or(|last| last.plus(DAY) < now || now < last) {
            self.clock_jumped_at = Some(now);
        }
        self.last_maintenance = Some(now);
        self.clock_jumped_at.is_some_and(|jumped| jumped.plus(DAY) <= now)
    }

    /// Deletes messages from the oldest on, up to the first that is not older than `oldest`.
    fn delete_old_messages(&mut self, oldest: Time) {
        let old: Vec<MessageId> =
            self.messages.rows().take_while(|message| message.at < oldest).map(|m| m.id.clone()).collect();
        for id in &old {
            self.erase(id);
        }
        let first = self.messages.rows().next().map(|message| message.seq);
        self.erased.retain(|_, (_, seq)| first.is_some_and(|first| *seq > first));
        let is_old = |run: &Run| {
            let in_session = run.session().is_some() && run.ended_at.is_some_and(|at| at < oldest);
            in_session || run.message().is_some_and(|message| old.contains(message))
        };
        self.remove_runs(|run| run.has_ended() && is_old(run));
        self.trim_conversations(oldest);
    }

    /// Deletes a prefix of the log, never its newest row: the rest stays gap-free even after a clock jump.
    fn trim_log(&mut self, oldest: Time) {
        let old = self.log.values().filter(|row| row.at < oldest && row.seq < self.head.seq);
        let Some(last) = old.map(|row| row.seq).max() else { return };
        self.log.retain(|seq, _| *seq > last);
        self.head.trimmed_through = last;
    }

    fn delete_old_keys(&mut self, oldest: Time) {
        let old = self.first_uses.values().filter(|(_, at)| *at < oldest);
        let last: Option<Seq> = old.map(|(first, _)| first.seq).max();
        self.first_uses.retain(|_, (first, _)| Some(first.seq) > last);
    }
}
