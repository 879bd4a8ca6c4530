//! Lists, pages and counts of the in-memory store: the `Snapshot` port.

use super::TablesView;
use super::table::sorted;
use parlor_engine::Fault;
use parlor_engine::ports::{CandidateVisitor, Head, Snapshot};
use parlor_engine::search::SearchScope;
use parlor_model::audit::{Actor, AuditFilter, AuditRecord};
use parlor_model::query::{MailPage, Page, Recent};
use parlor_model::{
    Agent, AgentId, ApiKey, ApprovalRule, BlobDigest, Bookmark, CurrentPlan, DeadLetter, Delivery,
    Invitation, LoggedEvent, Mailbox, Member, MemberId, Message, MessageId, Mission, Pin, Revision, Room,
    RoomId, Run, RunId, Sender, Seq, Service, SignIn, Task, Time, User, UserId,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

impl Snapshot for TablesView {
    fn head(&mut self) -> Result<Head, Fault> {
        Ok(self.tables.head)
    }

    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let rows = self.tables.log.range((Excluded(after), Unbounded));
        Ok(rows.take(limit).map(|(_, row)| self.tables.read(row)).collect())
    }

    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let rows = self.tables.log.range((Excluded(after), Unbounded));
        let rows = rows.filter(|(_, row)| row.room.as_ref() == Some(room));
        Ok(rows.take(limit).map(|(_, row)| self.tables.read(row)).collect())
    }

    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault> {
        let users = sorted(self.tables.users.rows(), |user| (user.created_at, user.id.clone()));
        let page = users.iter().skip(offset).take(limit);
        Ok((page.copied().cloned().collect(), users.len()))
    }

    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault> {
        let text = text.to_ascii_lowercase();
        let has = |name: &str| name.to_ascii_lowercase().contains(&text);
        let users = self.tables.users.rows().filter(|user| user.id != *except);
        let found = users.filter(|user| has(&user.username) || has(&user.display_name));
        let mut found = sorted(found.cloned(), |user| user.username.to_ascii_lowercase());
        found.truncate(limit);
        Ok(found)
    }

    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault> {
        let theirs = self.tables.sign_ins.rows().filter(|sign_in| sign_in.user == *user);
        let alive = theirs.filter(|sign_in| sign_in.expires_at > now);
        Ok(sorted(alive.cloned(), |sign_in| (sign_in.created_at, sign_in.id.clone())))
    }

    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault> {
        let keys = self.tables.keys.rows().filter(|key| owner.is_none_or(|owner| key.owner == *owner));
        Ok(sorted(keys.cloned(), |key| (key.created_at, key.id.clone())))
    }

    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault> {
        let all = self.tables.invitations.rows().map(|(invitation, _)| invitation);
        let open = all.filter(|invitation| invitation.expires_at > now);
        Ok(sorted(open.cloned(), |invitation| (invitation.created_at, invitation.id.clone())))
    }

    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault> {
        let services = self.tables.services.values();
        let found = services.filter_map(|service| {
            let agent = self.tables.agents.get(&service.agent)?;
            Some((agent.clone(), service.clone()))
        });
        Ok(sorted(found, |(agent, _)| (agent.created_at, agent.id.clone())))
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

    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault> {
        let rooms = self.tables.rooms.rows().filter(|room| room.project_root.is_some());
        Ok(sorted(rooms.cloned(), |room| room.id.clone()))
    }

    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.members_of(room).count())
    }

    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let messages = self.tables.messages_in(room).filter(|message| message.seq > beyond).cloned();
        Ok(match page {
            Page::Before(None) => messages.rev().take(limit).collect(),
            Page::Before(Some(seq)) => messages.rev().filter(|m| m.seq < seq).take(limit).collect(),
            Page::After(seq) => messages.filter(|m| m.seq > seq).take(limit).collect(),
            Page::AfterTime(time) => {
                let last = self.tables.messages_in(room).rfind(|m| m.at <= time).map(|m| m.seq);
                messages.filter(|m| Some(m.seq) > last).take(limit).collect()
            }
        })
    }

    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault> {
        let cleared = member.room_preferences.cleared_through;
        let newest = self.tables.messages_in(room).next_back().filter(|newest| newest.seq > cleared);
        let Some(newest) = newest else { return Ok(None) };
        let read_through = member.read_through.max(cleared);
        let own = |message: &Message| match &message.sender {
            Sender::User(id) => member.member == MemberId::User(id.clone()),
            Sender::Agent(id) => member.member == MemberId::Agent(id.clone()),
            Sender::Source(_) => false,
        };
        let unread: Vec<_> =
            self.tables.messages_in(room).filter(|m| m.seq > read_through && !own(m)).collect();
        let mentions = |m: &&&Arc<Message>| m.mentions.iter().any(|mention| mention.member == member.member);
        let mentions = unread.iter().filter(mentions).count() as u64;
        Ok(Some(Recent { message: newest.clone(), unread: unread.len() as u64, mentions }))
    }

    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let answers = self.tables.answers_to(to).filter(|answer| answer.seq > after);
        Ok(answers.take(limit).cloned().collect())
    }

    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault> {
        Ok(self.tables.answers_to(to).filter(|answer| answer.seq > after).count() as u64)
    }

    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault> {
        let pins = self.tables.pins.rows().rev().filter(|pin| pin.room == *room);
        let pins =
            pins.filter_map(|pin| Some((pin.clone(), self.tables.messages.get(&pin.message)?.clone())));
        Ok(pins.filter(|(_, message)| message.seq > beyond).collect())
    }

    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault> {
        let visible = |bookmark: &Bookmark| {
            let message = self.tables.messages.get(&bookmark.message)?;
            let key = (message.destination.room()?.clone(), MemberId::User(user.clone()));
            let cleared = self.tables.members.get(&key)?.room_preferences.cleared_through;
            (message.seq > cleared).then(|| (bookmark.clone(), message.clone()))
        };
        let own = self.tables.bookmarks.rows().rev().filter(|bookmark| bookmark.user == *user);
        let older = own.filter(|bookmark| before.is_none_or(|before| bookmark.seq < before));
        Ok(older.filter_map(visible).take(limit).collect())
    }

    /// Visits every message: full scans are the reference for stores that search with an index.
    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        visit: CandidateVisitor<'_>,
    ) -> Result<(), Fault> {
        let before = search_scope.asked.from_place.before;
        for message in self.tables.messages.rows().rev() {
            let earlier = before.is_none_or(|before| message.seq < before);
            if earlier && visit(message.seq, Some(message)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault> {
        let tasks = self.tables.tasks.values().filter(|task| task.room == *room).cloned();
        Ok(sorted(tasks, |task| (task.created_at, task.id.clone())))
    }

    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault> {
        let own = MemberId::User(user.clone());
        let theirs = |task: &&Task| {
            let involved = task.created_by == own || task.assignee.as_ref() == Some(&own);
            involved && self.tables.in_room(&task.room, &own)
        };
        let tasks = self.tables.tasks.values().filter(theirs).cloned();
        let tasks = sorted(tasks, |task| (Reverse(task.created_at), task.id.clone()));
        Ok(tasks.into_iter().skip(offset).take(limit).collect())
    }

    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault> {
        let revisions = self.tables.revisions.get(message).map(Vec::as_slice).unwrap_or_default();
        Ok(revisions.iter().rev().take(limit).cloned().collect())
    }

    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault> {
        let own = MemberId::User(user.clone());
        let others = self.tables.agents.rows().filter(|agent| agent.owner != *user);
        let mut near = Vec::new();
        for agent in others {
            let theirs = MemberId::Agent(agent.id.clone());
            let mut rooms = self.tables.rooms.rows();
            let mut in_both = || {
                rooms
                    .any(|room| self.tables.in_room(&room.id, &own) && self.tables.in_room(&room.id, &theirs))
            };
            if agent.is_shared_with(user) || in_both() {
                near.push(agent.clone());
            }
        }
        Ok(sorted(near.into_iter(), |agent| agent.id.clone()))
    }

    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault> {
        let others = self.tables.agents.rows().filter(|agent| agent.owner != *user);
        let shared = others.filter(|agent| agent.is_shared_with(user)).cloned();
        Ok(sorted(shared, |agent| agent.id.clone()).into_iter().skip(offset).take(limit).collect())
    }

    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mail = self.tables.mail_of(mailbox).rev().filter(|(message, _)| is_in_page(page, message.at));
        Ok(mail.take(page.limit).collect())
    }

    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault> {
        let letters = self.tables.all_dead_letters().filter(|letter| is_in_page(page, letter.message.at));
        let order = |letter: &DeadLetter| (Reverse(letter.message.seq), letter.mailbox.clone());
        let mut letters = sorted(letters, order);
        letters.truncate(page.limit);
        Ok(letters)
    }

    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault> {
        let on = self.tables.missions.values().filter(|mission| mission.is_on());
        Ok(sorted(on.cloned(), |mission| (mission.created_at, mission.id.clone())))
    }

    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault> {
        Ok(self.tables.plans.values().filter(|plan| plan.room == *room).cloned().collect())
    }

    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault> {
        Ok(self.tables.approval_rules.values().filter(|rule| rule.room == *room).cloned().collect())
    }

    fn open_runs(&mut self) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|run| !run.has_ended()).cloned().collect())
    }

    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault> {
        let here: Vec<&Run> = self.tables.runs.rows().filter(|run| run.room == *room).collect();
        Ok(here.into_iter().rev().take(limit).cloned().collect())
    }

    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|below| below.parent.as_ref() == Some(run)).cloned().collect())
    }

    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault> {
        let mut runs: Vec<&Run> = self.tables.runs.rows().filter(|run| run.agent == *agent).rev().collect();
        runs.sort_by_key(|run| (run.ended_at.is_some(), Reverse(run.ended_at)));
        Ok(runs.into_iter().take(limit).cloned().collect())
    }

    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault> {
        Ok(self.tables.uploads.rows().any(|upload| upload.digest == *digest))
    }

    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault> {
        let own = MemberId::User(user.clone());
        let members = self.tables.members.rows().filter(|member| self.tables.in_room(&member.room, &own));
        let people: BTreeSet<&UserId> = members.filter_map(|member| member.member.user()).collect();
        Ok(people.into_iter().filter(|other| *other != user).cloned().collect())
    }
}

fn is_in_page(page: MailPage, at: Time) -> bool {
    page.from.is_none_or(|from| at >= from) && page.to.is_none_or(|to| at <= to)
}
