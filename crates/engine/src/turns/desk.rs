//! Who hosts which agent now, what waits for it and what runs: the memory behind the turns.
//!
//! Owns: one run at a time for each agent, or for each agent and room where its host can tell them apart; an old
//! link never takes away what a newer one brought. Pure: it is told what happened and asked what to do.

use super::rollup::{Bounds, Rollup, TooLong};
use super::terminal::Filter;
use parlor_model::{AgentId, Chunk, MessageId, RoomId, Run, RunId, RunState};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);

#[derive(Debug, Default)]
pub struct Desk {
    seats: HashMap<AgentId, Seat>,
    /// In the order in which they came.
    queued: HashMap<AgentId, VecDeque<Waiting>>,
    /// Asked to start, not decided yet.
    starting: HashSet<RunId>,
    running: HashMap<RunId, Live>,
    runs_of: HashMap<AgentId, Vec<RunId>>,
}

/// An agent that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub link: LinkId,
    /// Whether its host can run it in several rooms at once, and stop it in one of them.
    pub by_room: bool,
}

#[derive(Debug)]
struct Waiting {
    run: RunId,
    room: RoomId,
}

#[derive(Debug)]
struct Live {
    agent: AgentId,
    room: RoomId,
    reply: Option<MessageId>,
    rollup: Rollup,
    terminal: Filter,
    /// Since when nobody hosts its agent.
    lost_since: Option<Instant>,
}

/// A run as its viewers are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub run: RunId,
    pub room: RoomId,
}

impl Desk {
    /// An agent is there, through this link from now on. Gives the link it was there through before.
    pub fn seat(&mut self, agent: &AgentId, seat: Seat) -> Option<LinkId> {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run) {
                live.lost_since = None;
            }
        }
        let before = self.seats.insert(agent.clone(), seat);
        before.map(|before| before.link).filter(|link| *link != seat.link)
    }

    pub fn seat_of(&self, agent: &AgentId) -> Option<Seat> {
        self.seats.get(agent).copied()
    }

    /// An agent leaves; only the link it is there through can say so.
    pub fn unseat(&mut self, agent: &AgentId, link: LinkId, now: Instant) -> bool {
        if self.seats.get(agent).is_none_or(|seat| seat.link != link) {
            return false;
        }
        self.seats.remove(agent);
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run) {
                live.lost_since.get_or_insert(now);
            }
        }
        true
    }

    /// A link is gone: gives the agents that were there through it.
    pub fn cut(&mut self, link: LinkId, now: Instant) -> Vec<AgentId> {
        let agents = self.seats.iter().filter(|(_, seat)| seat.link == link);
        let agents: Vec<AgentId> = agents.map(|(agent, _)| agent.clone()).collect();
        for agent in &agents {
            self.unseat(agent, link, now);
        }
        agents
    }

    /// A run is as it was committed.
    pub fn learn(&mut self, run: &Run, now: Instant) {
        self.forget(&run.id, &run.agent);
        match run.state {
            RunState::Queued => {
                let waiting = Waiting { run: run.id.clone(), room: run.room.clone() };
                self.queued.entry(run.agent.clone()).or_default().push_back(waiting);
            }
            RunState::Running => {
                let there = self.seats.contains_key(&run.agent);
                let live = Live {
                    agent: run.agent.clone(),
                    room: run.room.clone(),
                    reply: None,
                    rollup: Rollup::default(),
                    terminal: Filter::default(),
                    lost_since: (!there).then_some(now),
                };
                self.running.insert(run.id.clone(), live);
                self.runs_of.entry(run.agent.clone()).or_default().push(run.id.clone());
            }
            RunState::Ended(_) => {}
        }
    }

    fn forget(&mut self, run: &RunId, agent: &AgentId) {
        self.starting.remove(run);
        if let Some(queue) = self.queued.get_mut(agent) {
            queue.retain(|waiting| waiting.run != *run);
            if queue.is_empty() {
                self.queued.remove(agent);
            }
        }
        if self.running.remove(run).is_some()
            && let Some(runs) = self.runs_of.get_mut(agent)
        {
            runs.retain(|known| known != run);
            if runs.is_empty() {
                self.runs_of.remove(agent);
            }
        }
    }

    /// The runs that can begin now; each is given once, until it is told to be tried again.
    pub fn ready(&mut self) -> Vec<RunId> {
        let mut ready = Vec::new();
        for (agent, queue) in &self.queued {
            let Some(seat) = self.seats.get(agent) else { continue };
            let running = self.runs_of.get(agent).into_iter().flatten();
            let mut taken: HashSet<&RoomId> =
                running.filter_map(|run| self.running.get(run)).map(|live| &live.room).collect();
            for waiting in queue {
                let free = if seat.by_room { !taken.contains(&waiting.room) } else { taken.is_empty() };
                if free && !self.starting.contains(&waiting.run) {
                    ready.push(waiting.run.clone());
                }
                // One that is about to start, or must wait, is not overtaken in its room.
                taken.insert(&waiting.room);
                if !seat.by_room {
                    break;
                }
            }
        }
        self.starting.extend(ready.iter().cloned());
        ready
    }

    /// A run that could not be started is tried again.
    pub fn not_started(&mut self, run: &RunId) {
        self.starting.remove(run);
    }

    /// The run that a piece of a reply belongs to: the one that said this before, or else the agent's one in
    /// that room that has said nothing yet.
    pub fn bind(&mut self, agent: &AgentId, room: &RoomId, reply: &MessageId) -> Option<Bound> {
        let runs = self.runs_of.get(agent)?;
        let find = |wanted: &dyn Fn(&Live) -> bool| {
            runs.iter()
                .find(|run| self.running.get(*run).is_some_and(|live| live.room == *room && wanted(live)))
        };
        let run = find(&|live| live.reply.as_ref() == Some(reply))
            .or_else(|| find(&|live| live.reply.is_none()))?;
        let run = run.clone();
        self.running.get_mut(&run)?.reply = Some(reply.clone());
        Some(Bound { run, room: room.clone() })
    }

    /// What the agent runs, in this room or in any.
    pub fn runs(&self, agent: &AgentId, room: Option<&RoomId>) -> Vec<Bound> {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let live = runs.filter_map(|run| self.running.get(run).map(|live| (run, live)));
        live.filter(|(_, live)| room.is_none_or(|room| live.room == *room))
            .map(|(run, live)| Bound { run: run.clone(), room: live.room.clone() })
            .collect()
    }

    pub fn heard(&mut self, run: &RunId, chunk: &Chunk, bounds: Bounds) -> Result<(), TooLong> {
        match self.running.get_mut(run) {
            Some(live) => live.rollup.push(chunk, bounds),
            None => Ok(()),
        }
    }

    /// What a run has said so far, and under which id.
    pub fn so_far(&self, run: &RunId) -> Option<(&Rollup, Option<&MessageId>)> {
        self.running.get(run).map(|live| (&live.rollup, live.reply.as_ref()))
    }

    /// What runs in a room and has begun to speak, for who comes later.
    pub fn speaking(&self, room: &RoomId) -> Vec<(&AgentId, &MessageId, Vec<Chunk>)> {
        let live = self.running.values().filter(|live| live.room == *room);
        live.filter_map(|live| Some((&live.agent, live.reply.as_ref()?, live.rollup.chunks()))).collect()
    }

    /// Terminal bytes as they may be shown, and where; `None` if the agent runs nothing they could belong to.
    pub fn terminal(&mut self, agent: &AgentId, data: &str) -> Option<(RoomId, String)> {
        let run = self.runs_of.get(agent)?.last()?;
        let live = self.running.get_mut(run)?;
        Some((live.room.clone(), live.terminal.pass(data)))
    }

    /// The runs whose agent has been away for longer than that.
    pub fn lost(&self, patience: Duration, now: Instant) -> Vec<RunId> {
        let gone = |live: &Live| live.lost_since.is_some_and(|since| now.duration_since(since) >= patience);
        self.running.iter().filter(|(_, live)| gone(live)).map(|(run, _)| run.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{Addressed, ChunkKind, ConversationId, Lineage, Outcome, Time, Usage};

    const WIDE: Bounds = Bounds { chunks: 100, bytes: 1000 };
    const FOREIGN: Seat = Seat { link: LinkId(1), by_room: false };
    const OURS: Seat = Seat { link: LinkId(1), by_room: true };

    fn agent() -> AgentId {
        AgentId::stored("coder")
    }

    fn run(id: &str, room: &str, state: RunState) -> Run {
        Run {
            id: RunId::stored(id),
            agent: agent(),
            room: RoomId::stored(room),
            trigger: None,
            task: None,
            asked_by: None,
            addressed: Addressed::Directly,
            lineage: Lineage::begun(ConversationId::stored("c"), agent()),
            parent: None,
            state,
            reply: None,
            usage: Usage::default(),
            queued_at: Time(1),
            started_at: None,
            ended_at: None,
        }
    }

    fn desk(seat: Option<Seat>, runs: &[(&str, &str, RunState)]) -> Desk {
        let mut desk = Desk::default();
        if let Some(seat) = seat {
            desk.seat(&agent(), seat);
        }
        for (id, room, state) in runs {
            desk.learn(&run(id, room, state.clone()), Instant::now());
        }
        desk
    }

    fn ready(desk: &mut Desk) -> Vec<String> {
        desk.ready().iter().map(ToString::to_string).collect()
    }

    fn text(content: &str) -> Chunk {
        Chunk { kind: ChunkKind::Text, content: content.into(), metadata: None }
    }

    #[test]
    fn an_agent_that_is_away_starts_nothing_and_one_that_comes_starts_the_oldest() {
        let mut desk = desk(None, &[("1", "a", RunState::Queued), ("2", "b", RunState::Queued)]);
        assert_eq!(ready(&mut desk), [""; 0]);
        desk.seat(&agent(), FOREIGN);
        assert_eq!(ready(&mut desk), ["1"]);
        assert_eq!(ready(&mut desk), [""; 0], "it is given once");
        desk.not_started(&RunId::stored("1"));
        assert_eq!(ready(&mut desk), ["1"]);
    }

    #[test]
    fn a_foreign_host_runs_one_at_a_time_and_ours_one_in_each_room() {
        let waiting = [
            ("0", "a", RunState::Running),
            ("1", "a", RunState::Queued),
            ("2", "b", RunState::Queued),
            ("3", "b", RunState::Queued),
        ];
        assert_eq!(ready(&mut desk(Some(FOREIGN), &waiting)), [""; 0]);
        let mut ours = desk(Some(OURS), &waiting);
        assert_eq!(ready(&mut ours), ["2"]);
        ours.learn(&run("0", "a", RunState::Ended(Outcome::Complete)), Instant::now());
        assert_eq!(ready(&mut ours), ["1"]);
    }

    #[test]
    fn an_old_link_takes_nothing_from_a_newer_one() {
        let mut desk = desk(Some(FOREIGN), &[]);
        let newer = Seat { link: LinkId(2), ..FOREIGN };
        assert_eq!(desk.seat(&agent(), newer), Some(LinkId(1)));
        assert_eq!(desk.cut(LinkId(1), Instant::now()), []);
        assert!(!desk.unseat(&agent(), LinkId(1), Instant::now()));
        assert_eq!(desk.seat_of(&agent()), Some(newer));
        assert_eq!(desk.cut(LinkId(2), Instant::now()), [agent()]);
        assert_eq!(desk.seat_of(&agent()), None);
    }

    #[test]
    fn a_run_is_lost_only_while_nobody_hosts_its_agent() {
        let (start, patience) = (Instant::now(), Duration::from_secs(60));
        let mut desk = desk(Some(FOREIGN), &[("1", "a", RunState::Running)]);
        desk.cut(LinkId(1), start);
        assert_eq!(desk.lost(patience, start + patience / 2), []);
        assert_eq!(desk.lost(patience, start + patience), [RunId::stored("1")]);
        desk.seat(&agent(), Seat { link: LinkId(2), ..FOREIGN });
        assert_eq!(desk.lost(patience, start + 2 * patience), []);
    }

    #[test]
    fn a_reply_stays_with_the_run_that_began_it() {
        let mut desk = desk(Some(OURS), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        let (a, b) = (RoomId::stored("a"), RoomId::stored("b"));
        let (first, second) = (MessageId::stored("m"), MessageId::stored("n"));
        assert_eq!(desk.bind(&agent(), &b, &first).unwrap().run, RunId::stored("2"));
        assert_eq!(desk.bind(&agent(), &b, &first).unwrap().run, RunId::stored("2"));
        assert_eq!(desk.bind(&agent(), &b, &second), None, "its turn speaks under another id");
        assert_eq!(desk.bind(&agent(), &a, &second).unwrap().run, RunId::stored("1"));
        assert_eq!(desk.bind(&AgentId::stored("other"), &a, &second), None);
    }

    #[test]
    fn who_comes_later_is_told_what_was_said_so_far_until_it_is_over() {
        let mut desk = desk(Some(FOREIGN), &[("1", "a", RunState::Running)]);
        let room = RoomId::stored("a");
        assert!(desk.speaking(&room).is_empty(), "it has said nothing");
        let bound = desk.bind(&agent(), &room, &MessageId::stored("m")).unwrap();
        for piece in ["one ", "two"] {
            desk.heard(&bound.run, &text(piece), WIDE).unwrap();
        }
        let speaking = desk.speaking(&room);
        assert_eq!(speaking[0].2, [text("one two")]);
        assert_eq!(desk.terminal(&agent(), "\u{1b}]0;x\u{7}$"), Some((room.clone(), "$".into())));
        desk.learn(&run("1", "a", RunState::Ended(Outcome::Cancelled)), Instant::now());
        assert!(desk.speaking(&room).is_empty());
        assert_eq!(desk.bind(&agent(), &room, &MessageId::stored("m")), None);
        assert_eq!(desk.terminal(&agent(), "$"), None);
    }
}
