//! Point reads of the SQLite store: the `Lookup` port, shared by the writer's transaction and the readers.

use super::SqlTables;
use super::agents;
use super::models;
use super::rows::{self, all, number, one, seq_value};
use super::tasks;
use parlor_engine::Fault;
use parlor_engine::ports::{
    BudgetUsage, FirstRequest, IdempotencyKey, Lookup, OpenApprovalsOf, RECENT_RUNS_SEARCHED,
};
use parlor_model::audit::AuditRecord;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, BlobDigest, Bookmark, ConversationId,
    CurrentPlan, Delivery, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation, InvitationId, KeyId,
    Mailbox, Member, MemberId, Message, MessageId, Mission, MissionId, MissionScope, Pairing, Pin,
    RefreshToken, Room, RoomId, Router, RouterId, Run, RunId, SecondFactor, SecretHash, Seq, Service,
    Session, SignIn, SignInId, Subscription, Task, TaskId, Time, Upload, UploadId, User, UserId,
};
use rusqlite::{Connection, ToSql};
use std::ops::Deref;
use std::sync::Arc;

impl<C: Deref<Target = Connection>> Lookup for SqlTables<C> {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM users WHERE id = ?1", rows::USER),
            &[&id.as_str()],
            rows::user,
        )
    }

    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM users WHERE username = ?1", rows::USER),
            &[&username],
            rows::user,
        )
    }

    fn admins(&mut self) -> Result<u64, Fault> {
        let count =
            one(self.sql(), "SELECT count(*) FROM users WHERE role = 1", &[], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault> {
        let query = format!("SELECT {} FROM sign_ins WHERE id = ?1", rows::SIGN_IN);
        one(self.sql(), &query, &[&id.as_str()], rows::sign_in)
    }

    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault> {
        let query = "SELECT sign_in, generation FROM refresh_tokens WHERE hash = ?1";
        one(self.sql(), query, &[&token.0], |row| {
            Ok(RefreshToken { sign_in: SignInId::stored(row.get::<_, String>(0)?), generation: row.get(1)? })
        })
    }

    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM api_keys WHERE id = ?1", rows::KEY),
            &[&id.as_str()],
            rows::key,
        )
    }

    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM api_keys WHERE secret = ?1", rows::KEY),
            &[&secret.0],
            rows::key,
        )
    }

    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault> {
        let query =
            "SELECT h.value, e.value FROM meta h, meta e WHERE h.key = 'setup' AND e.key = 'setup_expires'";
        one(self.sql(), query, &[], |row| Ok((SecretHash(row.get(0)?), Time(row.get(1)?))))
    }

    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault> {
        let query = format!("SELECT {} FROM routers WHERE id = ?1", models::ROUTER);
        one(self.sql(), &query, &[&id.as_str()], models::router)
    }

    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault> {
        let query = format!(
            "SELECT {} FROM routers WHERE shared OR created_by = ?1 ORDER BY created_at, id",
            models::ROUTER
        );
        all(self.sql(), &query, &[&user.as_str()], models::router)
    }

    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault> {
        let query = format!("SELECT {} FROM services s WHERE s.agent = ?1", models::SERVICE);
        one(self.sql(), &query, &[&agent.as_str()], models::service)
    }

    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault> {
        let query = format!("SELECT {} FROM invitations WHERE id = ?1", rows::INVITATION);
        one(self.sql(), &query, &[&id.as_str()], rows::invitation)
    }

    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault> {
        let query = format!("SELECT {} FROM invitations WHERE secret = ?1", rows::INVITATION);
        one(self.sql(), &query, &[&secret.0], rows::invitation)
    }

    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault> {
        let query = "SELECT user, expires_at FROM pairings WHERE secret = ?1";
        one(self.sql(), query, &[&code.0], |row| {
            let user = UserId::stored(row.get::<_, String>(0)?);
            Ok(Pairing { user, expires_at: Time(row.get(1)?) })
        })
    }

    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault> {
        self.last_failed(user)
    }

    fn settings(&mut self) -> Result<HubSettings, Fault> {
        let value = "(SELECT value FROM settings WHERE key = ?)";
        let query = format!("SELECT {value}, {value}, {value}, {value}");
        let found =
            one(self.sql(), &query, &rows::SETTINGS.each_ref().map(|key| key as &dyn ToSql), |row| {
                Ok(HubSettings {
                    name: row.get::<_, Option<String>>(0)?.map(Into::into),
                    invitations: row.get(1)?,
                    lockout_failures: row.get(2)?,
                    lockout_seconds: row.get(3)?,
                })
            })?;
        Ok(found.unwrap_or_default())
    }

    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault> {
        let query = "SELECT user, sealed, confirmed, last_step FROM second_factors WHERE user = ?1";
        one(self.sql(), query, &[&user.as_str()], |row| {
            Ok(SecondFactor {
                user: UserId::stored(row.get::<_, String>(0)?),
                sealed: row.get::<_, Vec<u8>>(1)?.into(),
                confirmed: row.get(2)?,
                last_step: row.get::<_, i64>(3)? as u64,
            })
        })
    }

    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM backup_codes WHERE user = ?1 AND hash = ?2";
        Ok(one(self.sql(), query, &[&user.as_str(), &code.0], |_| Ok(()))?.is_some())
    }

    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM rooms WHERE id = ?1", rows::ROOM),
            &[&id.as_str()],
            rows::room,
        )
    }

    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault> {
        let query = format!("{} WHERE m.room = ?1 AND m.kind = ?2 AND m.member = ?3", rows::MEMBERS);
        one(self.sql(), &query, &[&room.as_str(), &rows::member_kind(member), &member.as_str()], rows::member)
    }

    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault> {
        let query = format!("{} WHERE m.room = ?1 ORDER BY m.place LIMIT ?2 OFFSET ?3", rows::MEMBERS);
        all(self.sql(), &query, &[&room.as_str(), &number(limit), &number(offset)], rows::member)
    }

    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault> {
        let query =
            format!("{} WHERE m.kind = ?1 AND m.member = ?2 ORDER BY m.joined_at, m.room", rows::MEMBERS);
        all(self.sql(), &query, &[&rows::member_kind(member), &member.as_str()], rows::member)
    }

    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault> {
        let query = format!("SELECT {} FROM messages WHERE id = ?1 AND erased = 0", rows::MESSAGE);
        one(self.sql(), &query, &[&id.as_str()], rows::message)
    }

    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault> {
        let found = one(self.sql(), "SELECT 1 FROM messages WHERE id = ?1", &[&id.as_str()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault> {
        let query = "SELECT seq FROM messages WHERE room = ?1 AND erased = 0 ORDER BY seq DESC LIMIT 1";
        one(self.sql(), query, &[&room.as_str()], |row| rows::seq(row, 0))
    }

    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq >= ?2 AND erased = 0 ORDER BY seq LIMIT ?3",
            rows::MESSAGE
        );
        all(self.sql(), &query, &[&room.as_str(), &seq_value(from), &number(limit)], rows::message)
    }

    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault> {
        let query = format!("SELECT {} FROM pins WHERE message = ?1", rows::PIN);
        one(self.sql(), &query, &[&message.as_str()], rows::pin)
    }

    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM pins WHERE room = ?1", &[&room.as_str()])
    }

    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault> {
        let query = "SELECT user, seq, message, at FROM bookmarks WHERE message = ?1 AND user = ?2";
        one(self.sql(), query, &[&message.as_str(), &user.as_str()], rows::bookmark)
    }

    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM bookmarks WHERE user = ?1", &[&user.as_str()])
    }

    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault> {
        one(
            self.sql(),
            &format!("SELECT {} FROM agents WHERE id = ?1", agents::AGENT),
            &[&id.as_str()],
            agents::agent,
        )
    }

    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault> {
        let query = format!("SELECT {} FROM agents WHERE owner = ?1 ORDER BY id", agents::AGENT);
        all(self.sql(), &query, &[&owner.as_str()], agents::agent)
    }

    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault> {
        let query = "SELECT member FROM members WHERE room = ?1 AND kind = 1 ORDER BY member";
        all(self.sql(), query, &[&room.as_str()], |row| Ok(AgentId::stored(row.get::<_, String>(0)?)))
    }

    fn share_a_room(&mut self, first: &MemberId, second: &MemberId) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM members a JOIN members b ON b.room = a.room AND b.kind = ?3 AND b.member = ?4 \
                     WHERE a.kind = ?1 AND a.member = ?2 LIMIT 1";
        let values: [&dyn rusqlite::ToSql; 4] =
            [&rows::member_kind(first), &first.as_str(), &rows::member_kind(second), &second.as_str()];
        Ok(rows::one(self.sql(), query, &values, |_| Ok(()))?.is_some())
    }

    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault> {
        // Session copies precede the agent's copy, as they were created.
        let query = format!(
            "SELECT {} FROM deliveries WHERE seq = {} ORDER BY session = '', agent, session",
            rows::DELIVERY,
            rows::SEQ_OF
        );
        all(self.sql(), &query, &[&message.as_str()], rows::delivery)
    }

    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault> {
        // Range scan over the prefix `id/`: `0` is the character after `/`.
        let query = format!("SELECT {} FROM agents WHERE id > ?1 AND id < ?2 ORDER BY id", agents::AGENT);
        all(self.sql(), &query, &[&format!("{id}/"), &format!("{id}0")], agents::agent)
    }

    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault> {
        let query = format!("SELECT {} FROM tasks WHERE id = ?1", tasks::TASK);
        one(self.sql(), &query, &[&id.as_str()], tasks::task)
    }

    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM tasks WHERE room = ?1", &[&room.as_str()])
    }

    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault> {
        let query = format!("SELECT {} FROM gateways WHERE id = ?1", agents::GATEWAY);
        one(self.sql(), &query, &[&id.as_str()], agents::gateway)
    }

    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault> {
        let columns = agents::GATEWAY;
        match owner {
            None => {
                all(self.sql(), &format!("SELECT {columns} FROM gateways ORDER BY id"), &[], agents::gateway)
            }
            Some(owner) => {
                let query = format!("SELECT {columns} FROM gateways WHERE owner = ?1 ORDER BY id");
                all(self.sql(), &query, &[&owner.as_str()], agents::gateway)
            }
        }
    }

    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault> {
        let query = "SELECT agent, id, title, created_at FROM sessions WHERE agent = ?1 ORDER BY place";
        all(self.sql(), query, &[&agent.as_str()], rows::session_of)
    }

    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault> {
        let query = "SELECT agent, session, pattern, added_at FROM subscriptions \
                     WHERE agent = ?1 AND session = ?2 ORDER BY added_at, pattern";
        let session = rows::session_text(mailbox.session.as_ref());
        all(self.sql(), query, &[&mailbox.agent.as_str(), &session], rows::subscription)
    }

    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let query = pending_query();
        let session = rows::session_text(mailbox.session.as_ref());
        let values: [&dyn rusqlite::ToSql; 4] = [&mailbox.agent.as_str(), &session, &now.0, &number(limit)];
        let deliveries = all(self.sql(), &query, &values, rows::delivery)?;
        self.with_messages(deliveries)
    }

    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault> {
        let query = format!(
            "SELECT {} FROM deliveries WHERE seq = {} AND agent = ?2 AND session = ?3 AND settled IN (0, 1)",
            rows::DELIVERY,
            rows::SEQ_OF
        );
        let session = rows::session_text(mailbox.session.as_ref());
        one(self.sql(), &query, &[&message.as_str(), &mailbox.agent.as_str(), &session], rows::delivery)
    }

    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault> {
        let query = format!("SELECT {} FROM uploads WHERE id = ?1", rows::UPLOAD);
        one(self.sql(), &query, &[&id.as_str()], rows::upload)
    }

    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let query = "SELECT count(*) FROM uploads WHERE owner = ?1 AND message IS NULL AND avatar = 0";
        let count = one(self.sql(), query, &[&owner.as_str()], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as usize)
    }

    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault> {
        let query = format!(
            "SELECT {} FROM uploads WHERE owner = ?1 AND message IS NULL AND avatar = 1 ORDER BY created_at, id",
            rows::UPLOAD
        );
        all(self.sql(), &query, &[&owner.as_str()], rows::upload)
    }

    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault> {
        let query = "SELECT digest FROM released ORDER BY digest LIMIT ?1";
        all(self.sql(), query, &[&number(limit)], |row| rows::digest(row, 0))
    }

    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault> {
        self.find_approval(id)
    }

    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault> {
        self.find_called(gateway, request)
    }

    fn open_approvals(&mut self, of: OpenApprovalsOf<'_>) -> Result<Vec<Approval>, Fault> {
        self.find_open(of)
    }

    fn open_approval_count(&mut self) -> Result<usize, Fault> {
        self.count_open()
    }

    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault> {
        self.find_mission(id)
    }

    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault> {
        self.find_missions(mission_scope, limit)
    }

    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault> {
        // Few rooms have a project root; the partial index `rooms_with_root` contains only those.
        let query = format!("SELECT {} FROM rooms WHERE project_root = ?1 ORDER BY id", rows::ROOM);
        all(self.sql(), &query, &[&root], rows::room)
    }

    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault> {
        self.find_idle(mission_scope, agent)
    }

    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault> {
        self.find_plan(room, agent)
    }

    fn approval_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
    ) -> Result<Option<ApprovalRule>, Fault> {
        self.find_rule(room, agent, tool)
    }

    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE id = ?1", rows::RUN);
        one(self.sql(), &query, &[&id.as_str()], rows::run_row)
    }

    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE message = ?1 ORDER BY place", rows::RUN);
        all(self.sql(), &query, &[&message.as_str()], rows::run_row)
    }

    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault> {
        let recent = "SELECT * FROM runs WHERE agent = ?1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, place DESC LIMIT ?3";
        let query = format!("SELECT {} FROM ({recent}) WHERE conversation = ?2 LIMIT 1", rows::RUN);
        one(
            self.sql(),
            &query,
            &[&agent.as_str(), &conversation.as_str(), &(RECENT_RUNS_SEARCHED as i64)],
            rows::run_row,
        )
    }

    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE state < 2 AND room = ?1 ORDER BY place", rows::RUN);
        all(self.sql(), &query, &[&room.as_str()], rows::run_row)
    }

    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM runs WHERE state < 2 AND agent = ?1 LIMIT 1";
        Ok(one(self.sql(), query, &[&agent.as_str()], |_| Ok(()))?.is_some())
    }

    fn spent(&mut self, room: &RoomId, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault> {
        let query = "SELECT count(*), coalesce(sum(input_tokens + output_tokens), 0) FROM runs \
                     WHERE room = ?1 AND agent = ?2 AND queued_at >= ?3 AND state <> 6";
        let spent = one(self.sql(), query, &[&room.as_str(), &agent.as_str(), &since.0], |row| {
            Ok(BudgetUsage { turns: row.get::<_, i64>(0)? as u64, tokens: row.get::<_, i64>(1)? as u64 })
        })?;
        Ok(spent.unwrap_or_default())
    }

    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM runs WHERE asked_by = ?1 AND agent = ?2 AND queued_at >= ?3 \
                     AND room = ?4 AND state <> 6";
        let values: [&dyn ToSql; 4] = [&by.as_str(), &agent.as_str(), &since.0, &room.as_str()];
        let count = one(self.sql(), query, &values, |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM runs WHERE agent = ?1 AND ended_at >= ?2 AND reply IS NOT NULL";
        let count = one(self.sql(), query, &[&agent.as_str(), &since.0], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault> {
        let query = "SELECT digest, message, seq FROM once WHERE kind = ?1 AND owner = ?2 AND key = ?3";
        one(self.sql(), query, &[&(key.kind as i64), &&*key.owner, &&*key.key], |row| {
            Ok(FirstRequest {
                digest: row.get(0)?,
                message: MessageId::stored(row.get::<_, String>(1)?),
                seq: rows::seq(row, 2)?,
            })
        })
    }
}

/// Selects deliverable mail. `settled` is part of the primary key, so settled deliveries are not read.
fn pending_query() -> String {
    format!(
        "SELECT {} FROM deliveries WHERE agent = ?1 AND session = ?2 AND settled = 0 \
         AND (state = 0 OR leased_until <= ?3) ORDER BY seq LIMIT ?4",
        rows::DELIVERY
    )
}

impl<C: Deref<Target = Connection>> SqlTables<C> {
    /// Adds the message to each delivery. Deliveries of deleted messages are left out.
    pub fn with_messages(
        &mut self,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mut mail = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            if let Some(message) = self.message(&delivery.message)? {
                mail.push((message, delivery));
            }
        }
        Ok(mail)
    }

    pub fn subscriptions(&self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        let found = all(self.sql(), &format!("SELECT {} FROM agents", agents::AGENT), &[], agents::agent)?;
        let query = "SELECT agent, session, pattern, added_at FROM subscriptions";
        Ok((found, all(self.sql(), query, &[], rows::subscription)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_mail_is_found_without_reading_settled_deliveries() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(&crate::sqlite::migrations::MIGRATIONS.concat()).unwrap();
        let query = format!("EXPLAIN QUERY PLAN {}", pending_query());
        let values: [&dyn rusqlite::ToSql; 4] = [&"coder", &"", &0, &1];
        let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
        let expected = "SEARCH deliveries USING PRIMARY KEY (agent=? AND session=? AND settled=?)";
        assert_eq!(steps[0], expected, "read in key order, without a sort");
        assert_eq!(
            steps[1..],
            ["CORRELATED SCALAR SUBQUERY 1", "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"]
        );
    }
}
