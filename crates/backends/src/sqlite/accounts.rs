//! Accounts: users, first-run setup, invitations and pairing codes: reads, changes, and conversion between rows and model types.

use super::rooms::{read_role, room_role};
use super::rows::{all, maybe_text, maybe_time, number, one, run, shared, text, time};
use super::{Sql, SqlTables, credentials};
use parlor_engine::Fault;
use parlor_engine::changes::AccountChange;
use parlor_engine::ports::ReadAccounts;
use parlor_model::{
    Invitation, InvitationId, Pairing, Pattern, RoomId, RoomInvitation, SealedKey, SecretHash, SiteRole,
    Time, User, UserId,
};
use rusqlite::{Connection, Row};

impl<C: Sql> ReadAccounts for SqlTables<C> {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM users WHERE id = ?1", USER), &[&id.as_str()], user)
    }

    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM users WHERE username = ?1", USER), &[&username], user)
    }

    fn admins(&mut self) -> Result<u64, Fault> {
        let count =
            one(self.sql()?, "SELECT count(*) FROM users WHERE role = 1", &[], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault> {
        let query =
            "SELECT h.value, e.value FROM meta h, meta e WHERE h.key = 'setup' AND e.key = 'setup_expires'";
        one(self.sql()?, query, &[], |row| Ok((SecretHash(row.get(0)?), Time(row.get(1)?))))
    }

    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault> {
        let query = format!("SELECT {} FROM invitations WHERE id = ?1", INVITATION);
        one(self.sql()?, &query, &[&id.as_str()], invitation)
    }

    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault> {
        let query = format!("SELECT {} FROM invitations WHERE secret = ?1", INVITATION);
        one(self.sql()?, &query, &[&secret.0], invitation)
    }

    fn room_invitation(&mut self, id: &InvitationId) -> Result<Option<RoomInvitation>, Fault> {
        let query = format!("SELECT {ROOM_INVITATION} FROM room_invitations WHERE id = ?1");
        one(self.sql()?, &query, &[&id.as_str()], room_invitation)
    }

    fn room_invitation_with(&mut self, secret: &SecretHash) -> Result<Option<RoomInvitation>, Fault> {
        let query = format!("SELECT {ROOM_INVITATION} FROM room_invitations WHERE secret = ?1");
        one(self.sql()?, &query, &[&secret.0], room_invitation)
    }

    fn room_invitations(&mut self, room: &RoomId, now: Time) -> Result<Vec<RoomInvitation>, Fault> {
        let query = format!(
            "SELECT {ROOM_INVITATION} FROM room_invitations WHERE room = ?1 AND expires_at > ?2 \
             ORDER BY created_at, id"
        );
        all(self.sql()?, &query, &[&room.as_str(), &now.0], room_invitation)
    }

    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault> {
        let query = "SELECT user, expires_at FROM pairings WHERE secret = ?1";
        one(self.sql()?, query, &[&code.0], |row| {
            let user = UserId::stored(row.get::<_, String>(0)?);
            Ok(Pairing { user, expires_at: Time(row.get(1)?) })
        })
    }

    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault> {
        let query = format!("SELECT {} FROM users ORDER BY created_at, id LIMIT ?1 OFFSET ?2", USER);
        let users = all(self.sql()?, &query, &[&number(limit), &number(offset)], user)?;
        Ok((users, self.count("SELECT count(*) FROM users", &[])?))
    }

    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault> {
        let escaped: String = text
            .chars()
            .flat_map(|c| matches!(c, '%' | '_' | '\\').then_some('\\').into_iter().chain([c]))
            .collect();
        let query = format!(
            "SELECT {} FROM users WHERE id <> ?2 AND (username LIKE ?1 ESCAPE '\\' OR display_name LIKE ?1 ESCAPE '\\') \
             ORDER BY username LIMIT ?3",
            USER
        );
        all(self.sql()?, &query, &[&format!("%{escaped}%"), &except.as_str(), &number(limit)], user)
    }

    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault> {
        let query =
            format!("SELECT {} FROM invitations WHERE expires_at > ?1 ORDER BY created_at, id", INVITATION);
        all(self.sql()?, &query, &[&now.0], invitation)
    }
}

pub fn apply(sql: &Connection, change: &AccountChange) -> Result<(), Fault> {
    match change {
        AccountChange::OfferSetup(None) => {
            run(sql, "DELETE FROM meta WHERE key IN ('setup', 'setup_expires')", &[])?;
        }
        AccountChange::OfferSetup(Some((token, expires))) => {
            let query = "INSERT OR REPLACE INTO meta VALUES ('setup', ?1), ('setup_expires', ?2)";
            run(sql, query, &[&token.0, &expires.0])?;
        }
        AccountChange::PutUser(user) => {
            run(
                sql,
                "INSERT INTO users VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT (id) DO UPDATE SET \
                 username = ?2, display_name = ?3, role = ?4, password_hash = ?5, failed_sign_ins = ?6, \
                 locked_until = ?7, max_connections = ?8, created_at = ?9, updated_at = ?10, \
                 hears = ?11, avatar_url = ?12, second_factor = ?13, agent_tokens_valid_from = ?14",
                &[
                    &user.id.as_str(),
                    &&*user.username,
                    &&*user.display_name,
                    &site_role(user.role),
                    &&*user.password_hash,
                    &user.failed_sign_ins,
                    &user.locked_until.map(|time| time.0),
                    &user.max_connections,
                    &user.created_at.0,
                    &user.updated_at.0,
                    &patterns(&user.source_patterns),
                    &user.avatar_url.as_deref(),
                    &user.second_factor,
                    &user.agent_tokens_valid_from.0,
                ],
            )?;
        }
        AccountChange::RemoveUser(user) => remove_user(sql, user)?,
        AccountChange::PutInvitation(invitation, secret) => {
            run(
                sql,
                "INSERT INTO invitations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                &[
                    &invitation.id.as_str(),
                    &site_role(invitation.role),
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
        AccountChange::UseInvitation(id) => {
            run(sql, "UPDATE invitations SET uses_left = uses_left - 1 WHERE id = ?1", &[&id.as_str()])?;
        }
        AccountChange::RemoveInvitation(id) => {
            run(sql, "DELETE FROM invitations WHERE id = ?1", &[&id.as_str()])?;
        }
        AccountChange::PutRoomInvitation(invitation, secret) => {
            run(
                sql,
                "INSERT INTO room_invitations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                &[
                    &invitation.id.as_str(),
                    &invitation.room.as_str(),
                    &room_role(invitation.role),
                    &&*invitation.token.0,
                    &invitation.created_by.as_str(),
                    &invitation.created_at.0,
                    &invitation.expires_at.0,
                    &secret.0,
                ],
            )?;
        }
        AccountChange::RemoveRoomInvitation(id) => {
            run(sql, "DELETE FROM room_invitations WHERE id = ?1", &[&id.as_str()])?;
        }
        AccountChange::PutPairing(pairing, secret) => {
            let query = "INSERT OR REPLACE INTO pairings VALUES (?1, ?2, ?3)";
            run(sql, query, &[&pairing.user.as_str(), &secret.0, &pairing.expires_at.0])?;
        }
        AccountChange::RemovePairing(user) => {
            run(sql, "DELETE FROM pairings WHERE user = ?1", &[&user.as_str()])?;
        }
    }
    Ok(())
}

fn remove_user(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    credentials::end_sign_ins_of(sql, user)?;
    credentials::remove_second_factor(sql, user)?;
    let steps = [
        "DELETE FROM token_revocations WHERE key IN (SELECT id FROM api_keys WHERE owner = ?1)",
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
        "DELETE FROM conversation_entries WHERE agent IN (SELECT id FROM agents WHERE owner = ?1)",
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

pub const USER: &str = "id, username, display_name, role, password_hash, failed_sign_ins, locked_until, max_connections, created_at, updated_at, hears, avatar_url, second_factor, agent_tokens_valid_from";

pub fn user(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: UserId::stored(shared(row, 0)?),
        username: text(row, 1)?,
        display_name: text(row, 2)?,
        role: site_role_of(row.get(3)?),
        password_hash: text(row, 4)?,
        failed_sign_ins: row.get(5)?,
        locked_until: maybe_time(row, 6)?,
        max_connections: row.get(7)?,
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
        source_patterns: row.get_ref(10)?.as_str()?.lines().map(Pattern::stored).collect(),
        avatar_url: maybe_text(row, 11)?,
        second_factor: row.get(12)?,
        agent_tokens_valid_from: time(row, 13)?,
    })
}

pub fn patterns(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join("\n")
}

fn site_role_of(number: i64) -> SiteRole {
    if number == 1 { SiteRole::Admin } else { SiteRole::User }
}

pub fn site_role(role: SiteRole) -> i64 {
    match role {
        SiteRole::User => 0,
        SiteRole::Admin => 1,
    }
}

pub const INVITATION: &str = "id, role, note, uses, uses_left, created_by, created_at, expires_at";

pub fn invitation(row: &Row<'_>) -> rusqlite::Result<Invitation> {
    Ok(Invitation {
        id: InvitationId::stored(shared(row, 0)?),
        role: site_role_of(row.get(1)?),
        note: maybe_text(row, 2)?,
        uses: row.get(3)?,
        uses_left: row.get(4)?,
        created_by: maybe_text(row, 5)?.map(UserId::stored),
        created_at: time(row, 6)?,
        expires_at: time(row, 7)?,
    })
}

const ROOM_INVITATION: &str = "id, room, role, token, created_by, created_at, expires_at";

fn room_invitation(row: &Row<'_>) -> rusqlite::Result<RoomInvitation> {
    Ok(RoomInvitation {
        id: InvitationId::stored(shared(row, 0)?),
        room: RoomId::stored(shared(row, 1)?),
        role: read_role(row.get(2)?),
        token: SealedKey(row.get::<_, Vec<u8>>(3)?.into()),
        created_by: UserId::stored(shared(row, 4)?),
        created_at: time(row, 5)?,
        expires_at: time(row, 6)?,
    })
}
