//! What waits for agents that are busy or away, as people see it.
//!
//! Owns: each change of what waits for an agent in a room is told once, as the whole list.

use super::{QueuedRun, Scheduler};
use parlor_model::{AgentId, Message, MessageId, QueuedMessage, RoomId, RunId, Seq, Signal};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// Something that waits for an agent in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    pub agent: AgentId,
    pub room: RoomId,
    pub item: QueuedMessage,
}

/// How much is shown of a message that waits, in characters.
const PREVIEW: usize = 100;

#[derive(Default)]
pub(super) struct Queues {
    /// Agents for which something may have changed.
    touched: BTreeSet<AgentId>,
    shown: HashMap<(AgentId, RoomId), PublishedQueue>,
    /// What was said last: whom it addresses comes right behind it.
    said: Option<(MessageId, Arc<str>)>,
    /// A start counts on from where it stands in the log: before it there were fewer changes than events.
    begun_at: u64,
}

struct PublishedQueue {
    items: Arc<[QueuedMessage]>,
    rev: u64,
}

impl Queues {
    pub fn touch(&mut self, agent: &AgentId) {
        self.touched.insert(agent.clone());
    }

    pub fn posted(&mut self, message: &Message) {
        self.said = Some((message.id.clone(), message.text.clone()));
    }

    pub fn preview(&self, message: Option<&MessageId>) -> Box<str> {
        let said = self.said.as_ref().filter(|(id, _)| Some(id) == message);
        said.map(|(_, text)| beginning(text)).unwrap_or_default()
    }

    pub fn gone(&mut self, meant: impl Fn(&AgentId, &RoomId) -> bool) {
        self.shown.retain(|(agent, room), _| !meant(agent, room));
    }
}

fn beginning(text: &str) -> Box<str> {
    text.chars().take(PREVIEW).collect::<String>().into()
}

impl QueuedRun {
    fn shown(&self) -> QueuedMessage {
        let Self { run, message, preview, at, .. } = self;
        QueuedMessage { run: run.clone(), message: message.clone(), preview: preview.clone(), at: *at }
    }
}

impl Scheduler {
    pub fn count_queues_from(&mut self, seq: Seq) {
        self.queues.begun_at = seq.0;
    }

    /// What changed for people who see what waits, each list whole.
    pub fn take_queues(&mut self, now: Instant) -> Vec<(RoomId, Signal)> {
        let mut told = Vec::new();
        for agent in std::mem::take(&mut self.queues.touched) {
            let mut lists = self.waiting_for(&agent, now);
            let before = self.queues.shown.keys().filter(|(of, _)| *of == agent);
            for (_, room) in before.cloned().collect::<Vec<_>>() {
                lists.entry(room).or_default();
            }
            for (room, items) in lists {
                let begun_at = self.queues.begun_at;
                let nothing = || PublishedQueue { items: Arc::new([]), rev: begun_at };
                let shown = self.queues.shown.entry((agent.clone(), room.clone())).or_insert_with(nothing);
                if *shown.items == *items {
                    continue;
                }
                (shown.items, shown.rev) = (items.into(), shown.rev + 1);
                let (items, rev) = (shown.items.clone(), shown.rev);
                told.push((room.clone(), Signal::Queue { room, agent: agent.clone(), items, rev }));
            }
        }
        told
    }

    /// What waits in these rooms, as it was told last.
    pub fn queues_in(&self, rooms: &[RoomId]) -> Vec<Signal> {
        let waiting = self.queues.shown.iter().filter(|(_, shown)| !shown.items.is_empty());
        let here = waiting.filter(|((_, room), _)| rooms.contains(room));
        here.map(|((agent, room), shown)| {
            let (room, agent, items) = (room.clone(), agent.clone(), shown.items.clone());
            Signal::Queue { room, agent, items, rev: shown.rev }
        })
        .collect()
    }

    /// Everything that waits in these rooms, in order for each agent.
    pub fn all_waiting(&self, rooms: &[RoomId]) -> Vec<QueueEntry> {
        let all = self.queued.iter().flat_map(|(agent, queue)| queue.iter().map(move |one| (agent, one)));
        let here = all.filter(|(_, waiting)| rooms.contains(&waiting.room));
        let item = |(agent, waiting): (&AgentId, &QueuedRun)| QueueEntry {
            agent: agent.clone(),
            room: waiting.room.clone(),
            item: waiting.shown(),
        };
        here.map(item).collect()
    }

    /// Forgets what waits in a room, for this agent or of this name, and says what that was.
    pub fn withdraw(&mut self, room: &RoomId, agent: Option<&AgentId>, run: Option<&RunId>) -> Vec<RunId> {
        let meant = |waits: &QueueEntry| {
            agent.is_none_or(|agent| *agent == waits.agent) && run.is_none_or(|run| *run == waits.item.run)
        };
        let taken: Vec<QueueEntry> =
            self.all_waiting(std::slice::from_ref(room)).into_iter().filter(meant).collect();
        for waits in &taken {
            self.forget(&waits.item.run, &waits.agent);
        }
        taken.into_iter().map(|waits| waits.item.run).collect()
    }

    /// Whether a turn has to wait: its agent is away, or does something else.
    pub fn must_wait(&self, run: &RunId, agent: &AgentId, now: Instant) -> bool {
        let waits = self.queued.get(agent).is_some_and(|queue| queue.iter().any(|one| one.run == *run));
        waits && !self.free(agent, now).iter().any(|free| free.run == *run)
    }

    pub(super) fn update_preview(&mut self, message: &MessageId, text: &str) {
        for (agent, queue) in &mut self.queued {
            for waiting in queue.iter_mut().filter(|waiting| waiting.message.as_ref() == Some(message)) {
                waiting.preview = beginning(text);
                self.queues.touched.insert(agent.clone());
            }
        }
    }

    fn waiting_for(&self, agent: &AgentId, now: Instant) -> HashMap<RoomId, Vec<QueuedMessage>> {
        let free: Vec<&RunId> = self.free(agent, now).iter().map(|waiting| &waiting.run).collect();
        let mut lists: HashMap<RoomId, Vec<QueuedMessage>> = HashMap::new();
        let queue = self.queued.get(agent).into_iter().flatten();
        for waiting in queue.filter(|waiting| !free.contains(&&waiting.run)) {
            lists.entry(waiting.room.clone()).or_default().push(waiting.shown());
        }
        lists
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, desk, over, room, run};
    use super::*;
    use parlor_model::RunState;

    /// The runs that wait in each list that is told, with its revision.
    fn told(scheduler: &mut Scheduler) -> Vec<(Vec<String>, u64)> {
        let signals = scheduler.take_queues(Instant::now()).into_iter();
        let list = |(_, signal)| match signal {
            Signal::Queue { items, rev, .. } => {
                (items.iter().map(|item| item.run.to_string()).collect(), rev)
            }
            other => panic!("{other:?}"),
        };
        signals.map(list).collect()
    }

    #[test]
    fn what_an_agent_is_free_for_does_not_wait() {
        let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Queued)]);
        assert_eq!(told(&mut scheduler), []);
        scheduler.apply_event(&run("1", "a", RunState::Running), Instant::now());
        scheduler.apply_event(&run("2", "a", RunState::Queued), Instant::now());
        assert!(scheduler.must_wait(&RunId::stored("2"), &agent(), Instant::now()));
        assert_eq!(told(&mut scheduler), [(vec!["2".into()], 1)]);
        assert_eq!(told(&mut scheduler), [], "once");
        assert_eq!(scheduler.queues_in(&[room("a")]).len(), 1);
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(told(&mut scheduler), [(vec![], 2)], "it is its turn");
        assert_eq!(scheduler.queues_in(&[room("a")]), []);
    }

    #[test]
    fn what_is_for_an_agent_that_is_away_waits() {
        let (mut scheduler, link) = desk(None, &[("1", "a", RunState::Queued), ("2", "a", RunState::Queued)]);
        scheduler.count_queues_from(Seq(7));
        assert_eq!(told(&mut scheduler), [(vec!["1".into(), "2".into()], 8)]);
        scheduler.agent_online(&agent(), link, "Coder", Instant::now());
        assert_eq!(told(&mut scheduler), [(vec!["2".into()], 9)]);
    }
}
