//! Forgets what is older than the windows.

use super::Windows;
use super::tables::Tables;
use parlor_model::{Seq, SignInId, Time, Use};

impl Tables {
    pub fn tend(&mut self, now: Time, windows: &Windows) {
        self.trim_log(now.minus(windows.log));
        self.forget_keys(now.minus(windows.once));
        let old = now.minus(windows.uploads);
        self.remove_uploads(|upload| upload.purpose == Use::Waiting && upload.created_at < old);
        let ended: Vec<SignInId> =
            self.sign_ins.rows().filter(|sign_in| sign_in.expires_at <= now).map(|s| s.id.clone()).collect();
        for sign_in in ended {
            self.end_sign_in(&sign_in);
        }
        let invitations = self.invitations.rows().map(|(invitation, _)| invitation);
        let over: Vec<_> =
            invitations.filter(|one| one.expires_at <= now).map(|one| one.id.clone()).collect();
        for invitation in over {
            self.invitations.remove(&invitation);
        }
    }

    /// Whatever the clock did, the log loses its beginning only, and never its newest row.
    fn trim_log(&mut self, oldest: Time) {
        let old = self.log.values().filter(|row| row.at < oldest && row.seq < self.head.seq);
        let Some(last) = old.map(|row| row.seq).max() else { return };
        self.log.retain(|seq, _| *seq > last);
        self.head.trimmed = last;
    }

    fn forget_keys(&mut self, oldest: Time) {
        let old = self.first_uses.values().filter(|(_, at)| *at < oldest);
        let last: Option<Seq> = old.map(|(first, _)| first.seq).max();
        self.first_uses.retain(|_, (first, _)| Some(first.seq) > last);
    }
}
