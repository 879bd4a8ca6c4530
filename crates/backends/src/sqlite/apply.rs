//! Applies each `Change` of a decision to the SQLite tables.

use super::agents;
use super::approvals;
use super::audit;
use super::insert::RowBinder;
use super::models;
use super::rows::{self, SqlFaultExt, run};
use super::search;
use super::tasks;
use super::{missions, plans};
use parlor_engine::Fault;
use parlor_engine::decide::Change;
use parlor_engine::ports::{FirstRequest, IdempotencyKey};
use parlor_model::{
    AgentId, Delivery, Message, RoomId, RouterId, Run, Seq, SignInId, Time, Upload, UploadPurpose, UserId,
};
use rusqlite::{Connection, Statement, ToSql};

pub fn change(sql: &Connection, change: &Change) -> Result<(), Fault> {
    match change {
        Change::OfferSetup(None) => {
            run(sql, "DELETE FROM meta WHERE key IN ('setup', 'setup_expires')", &[])?;
        }
        Change::OfferSetup(Some((token, expires))) => {
            let query = "INSERT OR REPLACE INTO meta VALUES ('setup', ?1), ('setup_expires', ?2)";
            run(sql, query, &[&token.0, &expires.0])?;
        }
        Change::PutUser(user) => {
            run(
                sql,
                "INSERT INTO users VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (id) DO UPDATE SET \
                 username = ?2, display_name = ?3, role = ?4, password_hash = ?5, failed_sign_ins = ?6, \
                 locked_until = ?7, max_connections = ?8, created_at = ?9, updated_at = ?10, \
                 hears = ?11, avatar_url = ?12, second_factor = ?13",
                &[
                    &user.id.as_str(),
                    &&*user.username,
                    &&*user.display_name,
                    &rows::site_role(user.role),
                    &&*user.password_hash,
                    &user.failed_sign_ins,
                    &user.locked_until.map(|time| time.0),
                    &user.max_connections,
                    &user.created_at.0,
                    &user.updated_at.0,
                    &rows::patterns(&user.source_patterns),
                    &user.avatar_url.as_deref(),
                    &user.second_factor,
                ],
            )?;
        }
        Change::RemoveUser(user) => remove_user(sql, user)?,
        Change::PutSignIn(sign_in, token) => {
            run(
                sql,
                "INSERT OR REPLACE INTO sign_ins VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                &[
                    &sign_in.id.as_str(),
                    &sign_in.user.as_str(),
                    &&*sign_in.device,
                    &&*sign_in.address,
                    &sign_in.created_at.0,
                    &sign_in.used_at.0,
                    &sign_in.expires_at.0,
                    &sign_in.generation,
                ],
            )?;
            let query = "INSERT INTO refresh_tokens VALUES (?1, ?2, ?3)";
            run(sql, query, &[&token.0, &sign_in.id.as_str(), &sign_in.generation])?;
            let query = "DELETE FROM refresh_tokens WHERE sign_in = ?1 AND generation < ?2";
            run(sql, query, &[&sign_in.id.as_str(), &sign_in.oldest_known()])?;
        }
        Change::EndSignIn(sign_in) => end_sign_in(sql, sign_in)?,
        Change::EndSignInsOf(user) => end_sign_ins_of(sql, user)?,
        Change::PutKey(key, secret) => {
            run(
                sql,
                "INSERT INTO api_keys VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                &[
                    &key.id.as_str(),
                    &key.owner.as_str(),
                    &&*key.name,
                    &rows::scopes(&key.scopes),
                    &secret.0,
                    &key.created_at.0,
                ],
            )?;
        }
        Change::RemoveKey(key) => {
            run(sql, "DELETE FROM api_keys WHERE id = ?1", &[&key.as_str()])?;
        }
        Change::PutInvitation(invitation, secret) => {
            run(
                sql,
                "INSERT INTO invitations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                &[
                    &invitation.id.as_str(),
                    &rows::site_role(invitation.role),
                    &invitation.note.as_deref(),
                    &invitation.uses,
                    &invitation.uses_left,
                    &invitation.created_by.as_ref().map(UserId::as_str),
                    &invitation.created_at.0,
                    &invitation.expires_at.0,
                    &secret.0,
                ],
            )?;
        }
        Change::UseInvitation(id) => {
            run(sql, "UPDATE invitations SET uses_left = uses_left - 1 WHERE id = ?1", &[&id.as_str()])?;
        }
        Change::PutPairing(pairing, secret) => {
            let query = "INSERT OR REPLACE INTO pairings VALUES (?1, ?2, ?3)";
            run(sql, query, &[&pairing.user.as_str(), &secret.0, &pairing.expires_at.0])?;
        }
        Change::RemovePairing(user) => {
            run(sql, "DELETE FROM pairings WHERE user = ?1", &[&user.as_str()])?;
        }
        Change::RemoveInvitation(id) => {
            run(sql, "DELETE FROM invitations WHERE id = ?1", &[&id.as_str()])?;
        }
        Change::PutRouter(router) => models::put_router(sql, router)?,
        Change::PutService(service) => models::put_service(sql, service)?,
        Change::RemoveRouter(id) => {
            run(sql, "UPDATE rooms SET router = NULL WHERE router = ?1", &[&id.as_str()])?;
            run(sql, "DELETE FROM routers WHERE id = ?1", &[&id.as_str()])?;
        }
        Change::AppendAudit(note) => audit::put(sql, note)?,
        Change::RepeatAudit { id, at, address } => audit::repeat(sql, *id, *at, *address)?,
        Change::PutSettings(settings) => {
            run(sql, "DELETE FROM settings", &[])?;
            let name = settings.name.as_deref();
            let values: [Option<&dyn ToSql>; 4] = [
                name.as_ref().map(|name| name as &dyn ToSql),
                settings.invitations.as_ref().map(|on| on as &dyn ToSql),
                settings.lockout_failures.as_ref().map(|failures| failures as &dyn ToSql),
                settings.lockout_seconds.as_ref().map(|seconds| seconds as &dyn ToSql),
            ];
            for (key, value) in rows::SETTINGS.iter().zip(values) {
                if let Some(value) = value {
                    run(sql, "INSERT INTO settings VALUES (?1, ?2)", &[key, value])?;
                }
            }
        }
        Change::PutSecondFactor(factor) => {
            run(
                sql,
                "INSERT OR REPLACE INTO second_factors VALUES (?1, ?2, ?3, ?4)",
                &[&factor.user.as_str(), &&*factor.sealed, &factor.confirmed, &(factor.last_step as i64)],
            )?;
        }
        Change::PutBackupCodes(user, codes) => {
            run(sql, "DELETE FROM backup_codes WHERE user = ?1", &[&user.as_str()])?;
            for code in codes {
                let query = "INSERT OR IGNORE INTO backup_codes VALUES (?1, ?2)";
                run(sql, query, &[&user.as_str(), &code.0])?;
            }
        }
        Change::SpendBackupCode(user, code) => {
            let query = "DELETE FROM backup_codes WHERE user = ?1 AND hash = ?2";
            run(sql, query, &[&user.as_str(), &code.0])?;
        }
        Change::RemoveSecondFactor(user) => remove_second_factor(sql, user)?,
        Change::PutRoom(room) => {
            run(
                sql,
                "INSERT OR REPLACE INTO rooms VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                &[
                    &room.id.as_str(),
                    &&*room.name,
                    &rows::room_kind(room.kind),
                    &rows::policy(room.policy),
                    &room.system_prompt.as_deref(),
                    &rows::room_role(room.agent_command_role),
                    &room.created_by.as_str(),
                    &room.created_at.0,
                    &room.updated_at.0,
                    &rows::room_role(room.approve_role),
                    &room.frozen.as_ref().map(|frozen| frozen.at.0),
                    &room.frozen.as_ref().and_then(|frozen| frozen.by.as_ref()).map(UserId::as_str),
                    &room.router.as_ref().map(RouterId::as_str),
                    &room.project_root.as_deref(),
                ],
            )?;
        }
        Change::RemoveRoom(room) => remove_room(sql, room)?,
        Change::PutMember(member) => {
            run(
                sql,
                "INSERT INTO members VALUES (?1, ?2, ?3, ?4, ?5, \
                 (SELECT coalesce(max(place), 0) + 1 FROM members WHERE room = ?1), ?6, ?7, \
                 ?8, ?9, ?10, ?11, ?12, ?13) \
                 ON CONFLICT DO UPDATE SET role = ?4, joined_at = ?5, read_through = ?6, read_at = ?7, \
                 role_description = ?8, pinned_at = ?9, archived_at = ?10, cleared_at = ?11, \
                 cleared_through = ?12, notifications = ?13",
                &[
                    &member.room.as_str(),
                    &rows::member_kind(&member.member),
                    &member.member.as_str(),
                    &rows::room_role(member.role),
                    &member.joined_at.0,
                    &(member.read_through.0 as i64),
                    &member.read_at.map(|time| time.0),
                    &member.role_description.as_deref(),
                    &member.room_preferences.pinned_at.map(|time| time.0),
                    &member.room_preferences.archived_at.map(|time| time.0),
                    &member.room_preferences.cleared_at.map(|time| time.0),
                    &(member.room_preferences.cleared_through.0 as i64),
                    &rows::notifications(member.room_preferences.notifications),
                ],
            )?;
        }
        Change::RemoveMember(room, member) => {
            let query = "DELETE FROM members WHERE room = ?1 AND kind = ?2 AND member = ?3";
            run(sql, query, &[&room.as_str(), &rows::member_kind(member), &member.as_str()])?;
        }
        Change::Revise { message, previous } => {
            run(
                sql,
                "UPDATE messages SET text = ?2, mentions = ?3, edited_at = ?4 WHERE id = ?1",
                &[
                    &message.id.as_str(),
                    &&*message.text,
                    &rows::mentions(&message.mentions),
                    &message.edited_at.map(|time| time.0),
                ],
            )?;
            run(
                sql,
                "INSERT INTO revisions VALUES \
                 (?1, (SELECT coalesce(max(place), 0) + 1 FROM revisions WHERE message = ?1), ?2, ?3)",
                &[&previous.message.as_str(), &previous.edited_at.0, &&*previous.text],
            )?;
        }
        Change::DeleteMessage(message) => {
            let id = message.as_str();
            // The emptied row stays, so that the message's `Seq` and id are not reused.
            run(
                sql,
                "UPDATE messages SET erased = 1, text = '', mentions = NULL, payload = NULL, command = NULL, \
                 external_id = NULL, reply_to = NULL, thread = NULL, forwarded = NULL, edited_at = NULL, \
                 attachments = NULL, relayed = NULL WHERE id = ?1",
                &[&id],
            )?;
            for table in DEPENDENT_TABLES {
                run(sql, &format!("DELETE FROM {table} WHERE message = ?1"), &[&id])?;
            }
            run(sql, &format!("DELETE FROM deliveries WHERE seq = {}", rows::SEQ_OF), &[&id])?;
        }
        Change::PutReactions { message, reactions } if reactions.is_empty() => {
            run(sql, "DELETE FROM reactions WHERE message = ?1", &[&message.as_str()])?;
        }
        Change::PutReactions { message, reactions } => {
            let query = "INSERT OR REPLACE INTO reactions VALUES (?1, ?2)";
            run(sql, query, &[&message.as_str(), &rows::reactions(reactions)])?;
        }
        Change::PutPin(pin) => {
            run(
                sql,
                "INSERT INTO pins VALUES (?1, ?2, ?3, ?4, ?5)",
                &[
                    &pin.room.as_str(),
                    &(pin.seq.0 as i64),
                    &pin.message.as_str(),
                    &pin.by.as_str(),
                    &pin.at.0,
                ],
            )?;
        }
        Change::RemovePin(message) => {
            run(sql, "DELETE FROM pins WHERE message = ?1", &[&message.as_str()])?;
        }
        Change::PutBookmark(bookmark) => {
            run(
                sql,
                "INSERT INTO bookmarks VALUES (?1, ?2, ?3, ?4)",
                &[
                    &bookmark.user.as_str(),
                    &(bookmark.seq.0 as i64),
                    &bookmark.message.as_str(),
                    &bookmark.at.0,
                ],
            )?;
        }
        Change::RemoveBookmark(user, message) => {
            let query = "DELETE FROM bookmarks WHERE message = ?1 AND user = ?2";
            run(sql, query, &[&message.as_str(), &user.as_str()])?;
        }
        Change::MarkRead { room, user, through, at } => {
            run(
                sql,
                "UPDATE members SET read_through = max(read_through, ?3), read_at = ?4 \
                 WHERE room = ?1 AND kind = 0 AND member = ?2",
                &[&room.as_str(), &user.as_str(), &(through.0 as i64), &at.0],
            )?;
        }
        Change::PutUpload(upload) => put_upload(sql, upload)?,
        Change::Attach { upload, message } => {
            let query = "UPDATE uploads SET message = ?2 WHERE id = ?1";
            run(sql, query, &[&upload.as_str(), &message.as_str()])?;
        }
        Change::RemoveUpload(upload) => {
            run(sql, "DELETE FROM uploads WHERE id = ?1", &[&upload.as_str()])?;
        }
        Change::ForgetReleased(digests) => {
            for digest in digests {
                run(sql, "DELETE FROM released WHERE digest = ?1", &[&digest.0])?;
            }
        }
        Change::PutAgent(agent) => agents::put(sql, agent)?,
        Change::RemoveAgent(agent) => remove_agent(sql, agent)?,
        Change::PutGateway(gateway) => agents::put_gateway(sql, gateway)?,
        Change::RemoveGateway(gateway) => {
            run(sql, "DELETE FROM gateways WHERE id = ?1", &[&gateway.as_str()])?;
        }
        Change::PutTask(task) => tasks::put(sql, task)?,
        Change::RemoveTask(task) => {
            run(sql, "DELETE FROM tasks WHERE id = ?1", &[&task.as_str()])?;
        }
        Change::PutSession(session) => {
            run(
                sql,
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, \
                 (SELECT coalesce(max(place), 0) + 1 FROM sessions WHERE agent = ?1)) ON CONFLICT DO UPDATE SET title = ?3",
                &[&session.agent.as_str(), &session.id.as_str(), &&*session.title, &session.created_at.0],
            )?;
        }
        Change::RemoveSubscription(mailbox, pattern) => {
            let session = rows::session_text(mailbox.session.as_ref());
            let query = "DELETE FROM subscriptions WHERE agent = ?1 AND session = ?2 AND pattern = ?3";
            run(sql, query, &[&mailbox.agent.as_str(), &session, &pattern.as_str()])?;
        }
        Change::PutSubscription(subscription) => {
            run(
                sql,
                "INSERT OR IGNORE INTO subscriptions VALUES (?1, ?2, ?3, ?4)",
                &[
                    &subscription.agent.as_str(),
                    &rows::session_text(subscription.session.as_ref()),
                    &subscription.pattern.as_str(),
                    &subscription.added_at.0,
                ],
            )?;
        }
        Change::MarkDelivered { mailbox, messages } => {
            let session = rows::session_text(mailbox.session.as_ref());
            for message in messages {
                run(sql, SETTLE, &[&message.as_str(), &mailbox.agent.as_str(), &session, &1])?;
            }
        }
        Change::Lease { mailbox, messages, until } => {
            let session = rows::session_text(mailbox.session.as_ref());
            for message in messages {
                run(
                    sql,
                    "UPDATE deliveries SET state = 2, leased_until = ?4, attempts = attempts + 1 \
                     WHERE seq = (SELECT seq FROM messages WHERE id = ?1) AND agent = ?2 AND session = ?3 AND settled = 0",
                    &[&message.as_str(), &mailbox.agent.as_str(), &session, &until.0],
                )?;
            }
        }
        Change::DeadLetterDelivery { mailbox, message, reason } => {
            let session = rows::session_text(mailbox.session.as_ref());
            let agent = mailbox.agent.as_str();
            run(sql, SETTLE, &[&message.id.as_str(), &agent, &session, &3])?;
            let query = "INSERT OR REPLACE INTO dead_letters VALUES (?1, ?2, ?3, ?4)";
            run(sql, query, &[&(message.seq.0 as i64), &agent, &session, reason])?;
        }
        Change::DeadLetter { message, reason } => {
            let query = "INSERT OR REPLACE INTO dead_letters VALUES (?1, '', '', ?2)";
            run(sql, query, &[&(message.seq.0 as i64), reason])?;
        }
        Change::ClearDeadLetters => {
            run(sql, "DELETE FROM dead_letters", &[])?;
        }
        Change::PutRun(it) => put_run(sql, it)?,
        Change::PutApproval(approval) => approvals::put(sql, approval)?,
        Change::PutApprovalRule(rule) => approvals::put_rule(sql, rule)?,
        Change::PutPlan(plan) => plans::put(sql, plan)?,
        Change::PutMission(mission) => missions::put(sql, mission)?,
        Change::PutIdlePrompt { mission_scope, agent, idle } => {
            missions::put_idle(sql, mission_scope, agent, idle.as_ref())?
        }
        Change::RemoveApprovalRule(rule) => approvals::remove_rule(sql, rule)?,
        Change::PutMessage(_) | Change::PutDelivery { .. } | Change::RememberIdempotencyKey { .. } => {
            unreachable!("`WriteTransaction::apply` handles these with prepared statements")
        }
    }
    Ok(())
}

/// Tables whose rows refer to a message by the column `message` and are deleted with it. Deliveries are
/// deleted too, but refer to the message by `seq`.
pub const DEPENDENT_TABLES: [&str; 6] = ["revisions", "reactions", "pins", "bookmarks", "uploads", "turns"];

/// Settles a delivery (`?4`: delivered or dead), so that it is not leased again.
const SETTLE: &str = "UPDATE deliveries SET state = ?4, settled = 1 \
     WHERE seq = (SELECT seq FROM messages WHERE id = ?1) AND agent = ?2 AND session = ?3 AND settled = 0";

pub const MESSAGE: (&str, &str) = (
    "INSERT INTO messages (seq, id, at, room, path, sender_kind, sender, sender_name, kind, text, mentions, reply_to, \
     client_message_id, command, payload, source, external_id, edited_at, thread, forwarded, attachments, \
     relayed)",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);

pub fn message(message: &Message, row: &mut RowBinder) -> rusqlite::Result<()> {
    let path = match &message.destination {
        parlor_model::Destination::Room(_) => None,
        parlor_model::Destination::Path(path) => Some(path.as_str()),
    };
    row.value(message.seq.0 as i64)?;
    row.value(message.id.as_str())?;
    row.value(message.at.0)?;
    row.value(message.destination.room().map(RoomId::as_str))?;
    row.value(path)?;
    row.value(rows::sender_kind(&message.sender))?;
    row.value(message.sender.id())?;
    row.value(&*message.sender_name)?;
    row.value(rows::message_kind(message.kind))?;
    row.value(&*message.text)?;
    row.value(rows::mentions(&message.mentions))?;
    row.value(message.reply_to.as_ref().map(|id| id.as_str()))?;
    row.value(message.client_message_id.as_deref())?;
    row.value(message.command.as_deref())?;
    row.value(message.payload.as_ref().map(|payload| &*payload.0))?;
    row.value(&*message.source)?;
    row.value(message.external_id.as_deref())?;
    row.value(message.edited_at.map(|time| time.0))?;
    row.value(message.thread.as_ref().map(|id| id.as_str()))?;
    row.value(message.forwarded.as_deref().map(rows::forwarded))?;
    row.value(rows::attachments(&message.attachments))?;
    row.value(message.relayed.as_deref().map(rows::relayed))
}

pub fn put_run_output(sql: &Connection, message: &Message) -> Result<(), Fault> {
    let Some(output) = &message.run_output else { return Ok(()) };
    let query = "INSERT INTO turns VALUES (?1, ?2, ?3, ?4)";
    let outcome = rows::run_outcome(&output.outcome);
    let chunks = rows::chunks(&output.chunks);
    run(sql, query, &[&message.id.as_str(), &output.run.as_str(), &outcome, &chunks]).map(drop)
}

fn put_run(sql: &Connection, it: &Run) -> Result<(), Fault> {
    let (state, reason) = rows::run_state(&it.state);
    let chain: Vec<&str> = it.lineage.chain.iter().map(AgentId::as_str).collect();
    run(
        sql,
        "INSERT INTO runs (id, agent, room, message, task, asked_by, addressed, conversation, depth, chain, parent, \
         state, reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at, arrival) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21) \
         ON CONFLICT (id) DO UPDATE SET state = ?12, reason = ?13, reply = ?14, input_tokens = ?15, \
         output_tokens = ?16, cost = ?17, started_at = ?19, ended_at = ?20, parent = ?11",
        &[
            &it.id.as_str(),
            &it.agent.as_str(),
            &it.room.as_str(),
            &it.trigger.as_ref().map(|id| id.as_str()),
            &it.task.as_ref().map(|id| id.as_str()),
            &it.asked_by.as_ref().map(|id| id.as_str()),
            &rows::addressed(it.addressed),
            &it.lineage.conversation.as_str(),
            &it.lineage.depth,
            &chain.join(" "),
            &it.parent.as_ref().map(|id| id.as_str()),
            &state,
            &reason,
            &it.reply.as_ref().map(|id| id.as_str()),
            &(it.usage.input_tokens as i64),
            &(it.usage.output_tokens as i64),
            &it.usage.cost.map(|cost| cost as i64),
            &it.queued_at.0,
            &it.started_at.map(|time| time.0),
            &it.ended_at.map(|time| time.0),
            &it.arrival.as_ref().map(|id| id.as_str()),
        ],
    )
    .map(drop)
}

pub const DELIVERY: (&str, &str) = ("INSERT INTO deliveries", "(?, ?, 0, ?, 0, NULL, 0, ?)");

pub fn delivery(delivery: &Delivery, seq: Seq, row: &mut RowBinder) -> rusqlite::Result<()> {
    row.value(delivery.mailbox.agent.as_str())?;
    row.value(rows::session_text(delivery.mailbox.session.as_ref()))?;
    row.value(seq.0 as i64)?;
    row.value(rows::sessions(&delivery.handled_by))
}

pub const INSERT_KEY: &str = "INSERT INTO once VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub fn insert_key(
    statement: &mut Statement<'_>,
    key: &IdempotencyKey,
    first: &FirstRequest,
    at: Time,
) -> Result<(), Fault> {
    let values: [&dyn ToSql; 7] = [
        &(key.kind as i64),
        &&*key.owner,
        &&*key.key,
        &first.digest,
        &first.message.as_str(),
        &(first.seq.0 as i64),
        &at.0,
    ];
    statement.execute(&values[..]).stored("writing an idempotency key").map(drop)
}

fn put_upload(sql: &Connection, upload: &Upload) -> Result<(), Fault> {
    let message = match &upload.purpose {
        UploadPurpose::Message(message) => Some(message.as_str()),
        UploadPurpose::Unattached | UploadPurpose::Avatar => None,
    };
    run(
        sql,
        "INSERT INTO uploads VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            &upload.id.as_str(),
            &upload.owner.as_str(),
            &&*upload.file.name,
            &upload.file.media.as_str(),
            &(upload.file.size as i64),
            &upload.digest.0,
            &upload.created_at.0,
            &(upload.purpose == UploadPurpose::Avatar),
            &message,
        ],
    )?;
    Ok(())
}

fn end_sign_in(sql: &Connection, sign_in: &SignInId) -> Result<(), Fault> {
    run(sql, "DELETE FROM refresh_tokens WHERE sign_in = ?1", &[&sign_in.as_str()])?;
    run(sql, "DELETE FROM sign_ins WHERE id = ?1", &[&sign_in.as_str()])?;
    Ok(())
}

fn end_sign_ins_of(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    let query = "DELETE FROM refresh_tokens WHERE sign_in IN (SELECT id FROM sign_ins WHERE user = ?1)";
    run(sql, query, &[&user.as_str()])?;
    run(sql, "DELETE FROM sign_ins WHERE user = ?1", &[&user.as_str()])?;
    // A signed-in device created the pairing, so it ends with the user's sign-ins.
    run(sql, "DELETE FROM pairings WHERE user = ?1", &[&user.as_str()])?;
    Ok(())
}

fn remove_second_factor(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    run(sql, "DELETE FROM second_factors WHERE user = ?1", &[&user.as_str()])?;
    run(sql, "DELETE FROM backup_codes WHERE user = ?1", &[&user.as_str()]).map(drop)
}

fn remove_user(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    end_sign_ins_of(sql, user)?;
    remove_second_factor(sql, user)?;
    let steps = [
        "DELETE FROM api_keys WHERE owner = ?1",
        "UPDATE rooms SET router = NULL WHERE router IN (SELECT id FROM routers WHERE created_by = ?1)",
        "DELETE FROM routers WHERE created_by = ?1",
        "DELETE FROM uploads WHERE owner = ?1 AND message IS NULL",
        "DELETE FROM subscriptions WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM sessions WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM dead_letters WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM deliveries WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM members WHERE kind = 1 AND member IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM runs WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM plans WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM mission_agents WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM idle WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM approvals WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM approval_rules WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM approval_rules WHERE decider = ?1",
        "DELETE FROM services WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
        "DELETE FROM agents WHERE owner = ?1",
        "DELETE FROM gateways WHERE owner = ?1",
        "DELETE FROM members WHERE kind = 0 AND member = ?1",
        "DELETE FROM bookmarks WHERE user = ?1",
        "DELETE FROM users WHERE id = ?1",
    ];
    steps.iter().try_for_each(|step| run(sql, step, &[&user.as_str()]).map(drop))
}

fn remove_agent(sql: &Connection, agent: &AgentId) -> Result<(), Fault> {
    let steps = [
        "DELETE FROM subscriptions WHERE agent = ?1",
        "DELETE FROM sessions WHERE agent = ?1",
        "DELETE FROM dead_letters WHERE agent = ?1",
        "DELETE FROM deliveries WHERE agent = ?1",
        "DELETE FROM members WHERE kind = 1 AND member = ?1",
        "DELETE FROM runs WHERE agent = ?1",
        "DELETE FROM plans WHERE agent = ?1",
        "DELETE FROM mission_agents WHERE agent = ?1",
        "DELETE FROM idle WHERE agent = ?1",
        "DELETE FROM approvals WHERE agent = ?1",
        "DELETE FROM approval_rules WHERE agent = ?1",
        "DELETE FROM services WHERE agent = ?1",
        "DELETE FROM agents WHERE id = ?1",
    ];
    steps.iter().try_for_each(|step| run(sql, step, &[&agent.as_str()]).map(drop))
}

fn remove_room(sql: &Connection, room: &RoomId) -> Result<(), Fault> {
    search::before_removal(sql, room)?;
    let steps = [
        "DELETE FROM revisions WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM deliveries WHERE seq IN (SELECT seq FROM messages WHERE room = ?1)",
        "DELETE FROM reactions WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM bookmarks WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM pins WHERE room = ?1",
        "DELETE FROM uploads WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM turns WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM runs WHERE room = ?1",
        "DELETE FROM plans WHERE room = ?1",
        "DELETE FROM mission_agents WHERE mission IN (SELECT id FROM missions WHERE room = ?1)",
        "DELETE FROM missions WHERE room = ?1",
        "DELETE FROM idle WHERE realm_kind = 0 AND realm = ?1",
        "DELETE FROM approvals WHERE room = ?1",
        "DELETE FROM approval_rules WHERE room = ?1",
        "DELETE FROM messages WHERE room = ?1",
        "DELETE FROM members WHERE room = ?1",
        "DELETE FROM tasks WHERE room = ?1",
        "DELETE FROM rooms WHERE id = ?1",
    ];
    steps.iter().try_for_each(|step| run(sql, step, &[&room.as_str()]).map(drop))
}
