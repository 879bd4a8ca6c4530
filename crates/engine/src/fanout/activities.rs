//! What agents are at in their turns, as they say or, where they say nothing of it, as it shows.
//!
//! Owns: what was begun is ended before the next begins, and with its turn at the latest.

use parlor_model::run_event::Activity;
use parlor_model::{AgentId, Chunk, ChunkKind, Ordinal, RoomId, Run, RunEvent, RunId, RunState, Signal};
use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::Arc;

#[derive(Default)]
pub struct Activities {
    of_run: HashMap<RunId, RunActivity>,
}

struct RunActivity {
    room: RoomId,
    agent: AgentId,
    /// Whether it says by itself what it is at.
    says: bool,
    current: Option<CurrentActivity>,
    /// How many it told of each kind.
    told: HashMap<Discriminant<RunEvent>, u64>,
}

#[derive(Clone)]
struct CurrentActivity {
    activity: Activity,
    detail: Option<Box<str>>,
    subagent: Option<Box<str>>,
    began: Ordinal,
    rev: u64,
}

impl Activities {
    /// A turn began; `next` is the number that the next signal gets.
    pub fn begin(&mut self, run: &Run, next: Ordinal) -> Vec<Signal> {
        if run.state != RunState::Running || self.of_run.contains_key(&run.id) {
            return Vec::new();
        }
        let (room, agent) = (run.room.clone(), run.agent.clone());
        let begun = RunActivity { room, agent, says: false, current: None, told: HashMap::new() };
        self.of_run.insert(run.id.clone(), begun);
        self.turn_to(&run.id, Activity::Working, None, None, next)
    }

    /// What a turn was at is over, and so is the turn.
    pub fn end(&mut self, run: &RunId) -> Option<Signal> {
        let mut of_run = self.of_run.remove(run)?;
        of_run.finish(run)
    }

    /// What a piece of a reply shows, where the agent says nothing of it.
    pub fn shown(&mut self, run: &RunId, chunk: &Chunk, next: Ordinal) -> Vec<Signal> {
        if self.of_run.get(run).is_none_or(|of_run| of_run.says) {
            return Vec::new();
        }
        let activity = match chunk.kind {
            ChunkKind::Thinking => Activity::Thinking,
            ChunkKind::ToolUse => Activity::CallingTool,
            ChunkKind::Text => Activity::Working,
            ChunkKind::ToolResult | ChunkKind::Error | ChunkKind::WorkspaceStatus => return Vec::new(),
        };
        let current = self.of_run.get(run).and_then(|of_run| of_run.current.as_ref());
        if current.is_some_and(|current| current.activity == activity) {
            return Vec::new();
        }
        self.turn_to(run, activity, None, None, next)
    }

    /// What an agent tells of its turn, as it is passed on; nothing where there is no such turn any more.
    pub fn told(&mut self, run: &RunId, event: RunEvent, next: Ordinal) -> Vec<Signal> {
        let Some(of_run) = self.of_run.get_mut(run) else { return Vec::new() };
        if let RunEvent::Status { activity, detail, subagent } = event {
            // That its model is on the way, or what another does for it, tells nothing of the rest.
            of_run.says |= activity != Activity::ModelLoading && subagent.is_none();
            return self.turn_to(run, activity, detail, subagent, next);
        }
        let rev = of_run.told.entry(std::mem::discriminant(&event)).or_default();
        *rev += 1;
        let (room, agent) = (of_run.room.clone(), of_run.agent.clone());
        vec![Signal::RunEvent { run: run.clone(), room, agent, event: Arc::new(event), rev: *rev }]
    }

    /// What is done in a room now, for who comes later.
    pub fn in_room<'a>(&'a self, room: &'a RoomId) -> impl Iterator<Item = Signal> + 'a {
        let here = self.of_run.iter().filter(move |(_, of_run)| of_run.room == *room);
        here.filter_map(|(run, of_run)| Some(of_run.signal(run, of_run.current.as_ref()?, false)))
    }

    /// Ends what nobody will end any more.
    pub fn close_where(&mut self, gone: impl Fn(&RoomId, &AgentId) -> bool) {
        self.of_run.retain(|_, of_run| !gone(&of_run.room, &of_run.agent));
    }

    fn turn_to(
        &mut self,
        run: &RunId,
        activity: Activity,
        detail: Option<Box<str>>,
        subagent: Option<Box<str>>,
        next: Ordinal,
    ) -> Vec<Signal> {
        let Some(of_run) = self.of_run.get_mut(run) else { return Vec::new() };
        let same = |doing: &&mut CurrentActivity| doing.activity == activity && doing.subagent == subagent;
        if let Some(doing) = of_run.current.as_mut().filter(same) {
            doing.detail = detail;
            doing.rev += 1;
            let doing = doing.clone();
            return vec![of_run.signal(run, &doing, false)];
        }
        let ended = of_run.finish(run);
        if activity == Activity::Idle {
            return ended.into_iter().collect();
        }
        let began = next.plus(ended.is_some().into());
        let doing = CurrentActivity { activity, detail, subagent, began, rev: 1 };
        let begun = of_run.signal(run, &doing, false);
        of_run.current = Some(doing);
        ended.into_iter().chain([begun]).collect()
    }
}

impl RunActivity {
    fn finish(&mut self, run: &RunId) -> Option<Signal> {
        let mut doing = self.current.take()?;
        doing.rev += 1;
        Some(self.signal(run, &doing, true))
    }

    fn signal(&self, run: &RunId, doing: &CurrentActivity, done: bool) -> Signal {
        let CurrentActivity { activity, detail, subagent, began, rev } = doing.clone();
        let (room, agent) = (self.room.clone(), self.agent.clone());
        Signal::Activity { run: run.clone(), room, agent, activity, detail, subagent, began, rev, done }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::replies::run;
    use super::*;

    /// What is told, as `activity` or `-activity` where it is over, with its number and revision.
    fn told(signals: &[Signal]) -> Vec<String> {
        let word = |signal: &Signal| match signal {
            Signal::Activity { activity, began, rev, done, .. } => {
                let sign = if *done { "-" } else { "" };
                format!("{sign}{} {} {rev}", activity.as_str(), began.0)
            }
            other => panic!("{other:?}"),
        };
        signals.iter().map(word).collect()
    }

    fn status(activity: Activity) -> RunEvent {
        RunEvent::Status { activity, detail: Some("a.rs".into()), subagent: None }
    }

    fn chunk(kind: ChunkKind) -> Chunk {
        Chunk { kind, content: "x".into(), metadata: None }
    }

    #[test]
    fn what_was_begun_is_ended_before_the_next_begins_and_with_its_turn() {
        let (mut activities, id) = (Activities::default(), RunId::stored("1"));
        assert_eq!(told(&activities.begin(&run("1", RunState::Running), Ordinal(10))), ["working 10 1"]);
        assert_eq!(told(&activities.begin(&run("1", RunState::Running), Ordinal(11))), [""; 0], "once");
        let thinking = activities.told(&id, status(Activity::Thinking), Ordinal(11));
        assert_eq!(told(&thinking), ["-working 10 2", "thinking 12 1"]);
        let again = activities.told(&id, status(Activity::Thinking), Ordinal(13));
        assert_eq!(told(&again), ["thinking 12 2"]);
        assert_eq!(told(&activities.end(&id).into_iter().collect::<Vec<_>>()), ["-thinking 12 3"]);
        assert!(activities.told(&id, status(Activity::Working), Ordinal(14)).is_empty(), "it is over");
    }

    #[test]
    fn what_an_agent_does_not_say_is_seen_by_what_it_shows() {
        let (mut activities, id) = (Activities::default(), RunId::stored("1"));
        activities.begin(&run("1", RunState::Running), Ordinal(10));
        let shown = |activities: &mut Activities, kind| {
            told(&activities.shown(&RunId::stored("1"), &chunk(kind), Ordinal(20)))
        };
        assert_eq!(shown(&mut activities, ChunkKind::Text), [""; 0], "it works already");
        assert_eq!(shown(&mut activities, ChunkKind::ToolUse), ["-working 10 2", "calling_tool 21 1"]);
        assert_eq!(shown(&mut activities, ChunkKind::ToolResult), [""; 0]);
        activities.told(&id, status(Activity::ModelLoading), Ordinal(30));
        assert_eq!(
            shown(&mut activities, ChunkKind::Thinking).len(),
            2,
            "it says nothing of what comes behind it"
        );
        activities.told(&id, status(Activity::Working), Ordinal(40));
        assert_eq!(shown(&mut activities, ChunkKind::Thinking), [""; 0], "it says so itself");
    }
}
