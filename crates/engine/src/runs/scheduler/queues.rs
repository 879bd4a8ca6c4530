//! Backlogs of agents in rooms that are busy or offline, as published to users. Queued runs without a room are in no
//! backlog: their owner can list them.
//!
//! Owns: each change of an agent's backlog in a room is published once, as the complete list with a new
//! revision.

use super::{QueuedRun, Scheduler};
use parlor_model::{AgentId, Message, MessageId, QueuedMessage, RoomId, Run, RunCause, RunId, Seq, Signal};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

#[derive(Default)]
pub(super) struct Queues {
    /// Agents whose backlog may have changed since the last `take_queues`.
    touched: BTreeSet<AgentId>,
    published: HashMap<(AgentId, RoomId), PublishedQueue>,
    /// Id and text of the newest message. The events of the runs that it triggers follow it directly in the
    /// log, so this is the text for their previews.
    last_message: Option<(MessageId, Arc<str>)>,
    /// First revision number of every backlog: the log position at start-up. Revisions stay monotonic over
    /// restarts, because before the restart there were fewer backlog changes than events.
    first_rev: u64,
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
        self.last_message = Some((message.id.clone(), message.text.clone()));
    }

    pub fn preview(&self, run: &Run) -> Box<str> {
        if let RunCause::Explicit { prompt, .. } = &run.cause {
            return QueuedMessage::preview_of(prompt);
        }
        let message = self.last_message.as_ref().filter(|(id, _)| Some(id) == run.message());
        message.map(|(_, text)| QueuedMessage::preview_of(text)).unwrap_or_default()
    }

    pub fn forget_published(&mut self, matches: impl Fn(&AgentId, &RoomId) -> bool) {
        self.published.retain(|(agent, room), _| !matches(agent, room));
    }
}

impl QueuedRun {
    fn to_message(&self) -> QueuedMessage {
        let Self { run, message, preview, at, .. } = self;
        QueuedMessage { run: run.clone(), message: message.clone(), preview: preview.clone(), at: *at }
    }
}

impl Scheduler {
    pub fn count_queues_from(&mut self, seq: Seq) {
        self.queues.first_rev = seq.0;
    }

    /// Returns a signal with the complete list for every backlog that changed since the last call.
    pub fn take_queues(&mut self, now: Instant) -> Vec<(RoomId, Signal)> {
        let mut signals = Vec::new();
        for agent in std::mem::take(&mut self.queues.touched) {
            let mut lists = self.backlog_of(&agent, now);
            let before = self.queues.published.keys().filter(|(of, _)| *of == agent);
            for (_, room) in before.cloned().collect::<Vec<_>>() {
                lists.entry(room).or_default();
            }
            for (room, items) in lists {
                let first_rev = self.queues.first_rev;
                let empty = || PublishedQueue { items: Arc::new([]), rev: first_rev };
                let published =
                    self.queues.published.entry((agent.clone(), room.clone())).or_insert_with(empty);
                if *published.items == *items {
                    continue;
                }
                (published.items, published.rev) = (items.into(), published.rev + 1);
                let (items, rev) = (published.items.clone(), published.rev);
                signals.push((room.clone(), Signal::Queue { room, agent: agent.clone(), items, rev }));
            }
        }
        signals
    }

    /// Whether a queued run has to wait because its agent is offline or busy.
    pub fn must_wait(&self, run: &RunId, agent: &AgentId, now: Instant) -> bool {
        let is_queued =
            self.queued.get(agent).is_some_and(|queue| queue.iter().any(|queued| queued.run == *run));
        is_queued && !self.free(agent, now).iter().any(|free| free.run == *run)
    }

    pub(super) fn update_preview(&mut self, message: &MessageId, text: &str) {
        for (agent, queue) in &mut self.queued {
            for waiting in queue.iter_mut().filter(|waiting| waiting.message.as_ref() == Some(message)) {
                waiting.preview = QueuedMessage::preview_of(text);
                self.queues.touched.insert(agent.clone());
            }
        }
    }

    fn backlog_of(&self, agent: &AgentId, now: Instant) -> HashMap<RoomId, Vec<QueuedMessage>> {
        let free: Vec<&RunId> = self.free(agent, now).iter().map(|waiting| &waiting.run).collect();
        let mut lists: HashMap<RoomId, Vec<QueuedMessage>> = HashMap::new();
        let queue = self.queued.get(agent).into_iter().flatten();
        for waiting in queue.filter(|waiting| !free.contains(&&waiting.run)) {
            if let Some(room) = waiting.place.room() {
                lists.entry(room.clone()).or_default().push(waiting.to_message());
            }
        }
        lists
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, over, run, scheduler_with};
    use super::*;
    use parlor_model::RunState;

    /// Run ids of each published backlog, with its revision.
    fn published(scheduler: &mut Scheduler) -> Vec<(Vec<String>, u64)> {
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
    fn a_run_that_can_start_is_not_in_the_backlog() {
        let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Queued)]);
        assert_eq!(published(&mut scheduler), []);
        scheduler.apply_event(&run("1", "a", RunState::Running), Instant::now());
        scheduler.apply_event(&run("2", "a", RunState::Queued), Instant::now());
        assert!(scheduler.must_wait(&RunId::stored("2"), &agent(), Instant::now()));
        assert_eq!(published(&mut scheduler), [(vec!["2".into()], 1)]);
        assert_eq!(published(&mut scheduler), [], "published once");
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(published(&mut scheduler), [(vec![], 2)], "the run can start");
    }

    #[test]
    fn runs_of_an_offline_agent_are_in_the_backlog() {
        let (mut scheduler, connection) =
            scheduler_with(None, &[("1", "a", RunState::Queued), ("2", "a", RunState::Queued)]);
        scheduler.count_queues_from(Seq(7));
        assert_eq!(published(&mut scheduler), [(vec!["1".into(), "2".into()], 8)]);
        scheduler.agent_online(&agent(), connection, "Coder", Instant::now());
        assert_eq!(published(&mut scheduler), [(vec!["2".into()], 9)]);
    }
}
