//! Current activities of agents in their runs: reported by the agent or, if it reports none, inferred from
//! its chunks.
//!
//! Owns: an activity is ended before the next one of the run begins, and at the latest with its run.

use super::viewers::Viewers;
use parlor_model::run_event::Activity;
use parlor_model::{AgentId, Chunk, ChunkKind, Ordinal, Run, RunEvent, RunId, RunPlace, RunState, Signal};
use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::Arc;

#[derive(Default)]
pub struct Activities {
    of_run: HashMap<RunId, RunActivity>,
}

struct RunActivity {
    place: RunPlace,
    agent: AgentId,
    /// Whether the agent reports its activity itself; then nothing is inferred from chunks.
    reports_status: bool,
    current: Option<CurrentActivity>,
    /// Number of run events published, by kind.
    revisions: HashMap<Discriminant<RunEvent>, u64>,
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
    /// Starts tracking a run with the activity `Working`. `next` is the ordinal of the next signal.
    pub fn begin(&mut self, run: &Run, next: Ordinal) -> Vec<Signal> {
        if run.state != RunState::Running || self.of_run.contains_key(&run.id) {
            return Vec::new();
        }
        let (place, agent) = (run.place.clone(), run.agent.clone());
        let begun =
            RunActivity { place, agent, reports_status: false, current: None, revisions: HashMap::new() };
        self.of_run.insert(run.id.clone(), begun);
        self.switch_to(&run.id, Activity::Working, None, None, next)
    }

    /// Ends a run and its current activity.
    pub fn end(&mut self, run: &RunId) -> Option<Signal> {
        let mut of_run = self.of_run.remove(run)?;
        of_run.finish(run)
    }

    /// Infers the activity from a chunk's kind, unless the agent reports its activity itself.
    pub fn infer_from_chunk(&mut self, run: &RunId, chunk: &Chunk, next: Ordinal) -> Vec<Signal> {
        if self.of_run.get(run).is_none_or(|of_run| of_run.reports_status) {
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
        self.switch_to(run, activity, None, None, next)
    }

    /// Applies an event that an agent reports about its run and returns the signals to publish; none if the
    /// run has ended.
    pub fn apply_run_event(&mut self, run: &RunId, event: RunEvent, next: Ordinal) -> Vec<Signal> {
        let Some(of_run) = self.of_run.get_mut(run) else { return Vec::new() };
        if let RunEvent::Status { activity, detail, subagent } = event {
            // A loading model, or the activity of a subagent, says nothing about the agent's other
            // activities.
            of_run.reports_status |= activity != Activity::ModelLoading && subagent.is_none();
            return self.switch_to(run, activity, detail, subagent, next);
        }
        let rev = of_run.revisions.entry(std::mem::discriminant(&event)).or_default();
        *rev += 1;
        let (place, agent) = (of_run.place.clone(), of_run.agent.clone());
        vec![Signal::RunEvent { run: run.clone(), place, agent, event: Arc::new(event), rev: *rev }]
    }

    /// Signals with the current activities that these viewers see, for late joiners.
    pub fn of_viewers<'a>(&'a self, viewers: &'a Viewers) -> impl Iterator<Item = Signal> + 'a {
        let here = self
            .of_run
            .iter()
            .filter(|(_, of_run)| Viewers::of(of_run.place.scope()).is_some_and(|own| own == *viewers));
        here.filter_map(|(run, of_run)| Some(of_run.signal(run, of_run.current.as_ref()?, false)))
    }

    /// Drops the activities of removed agents or rooms without publishing their end.
    pub fn close_where(&mut self, is_removed: impl Fn(&RunPlace, &AgentId) -> bool) {
        self.of_run.retain(|_, of_run| !is_removed(&of_run.place, &of_run.agent));
    }

    fn switch_to(
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
        let (place, agent) = (self.place.clone(), self.agent.clone());
        Signal::Activity { run: run.clone(), place, agent, activity, detail, subagent, began, rev, done }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::replies::run;
    use super::*;

    /// The signals in short form: `activity`, or `-activity` for an ended one, with its ordinal and revision.
    fn summarise(signals: &[Signal]) -> Vec<String> {
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
    fn an_activity_ends_before_the_next_begins_and_with_its_run() {
        let (mut activities, id) = (Activities::default(), RunId::stored("1"));
        assert_eq!(summarise(&activities.begin(&run("1", RunState::Running), Ordinal(10))), ["working 10 1"]);
        assert_eq!(
            summarise(&activities.begin(&run("1", RunState::Running), Ordinal(11))),
            [""; 0],
            "a run begins only once"
        );
        let thinking = activities.apply_run_event(&id, status(Activity::Thinking), Ordinal(11));
        assert_eq!(summarise(&thinking), ["-working 10 2", "thinking 12 1"]);
        let again = activities.apply_run_event(&id, status(Activity::Thinking), Ordinal(13));
        assert_eq!(summarise(&again), ["thinking 12 2"]);
        assert_eq!(summarise(&activities.end(&id).into_iter().collect::<Vec<_>>()), ["-thinking 12 3"]);
        assert!(
            activities.apply_run_event(&id, status(Activity::Working), Ordinal(14)).is_empty(),
            "the run has ended"
        );
    }

    #[test]
    fn activities_that_an_agent_does_not_report_are_inferred_from_its_chunks() {
        let (mut activities, id) = (Activities::default(), RunId::stored("1"));
        activities.begin(&run("1", RunState::Running), Ordinal(10));
        let shown = |activities: &mut Activities, kind| {
            summarise(&activities.infer_from_chunk(&RunId::stored("1"), &chunk(kind), Ordinal(20)))
        };
        assert_eq!(shown(&mut activities, ChunkKind::Text), [""; 0], "it is working already");
        assert_eq!(shown(&mut activities, ChunkKind::ToolUse), ["-working 10 2", "calling_tool 21 1"]);
        assert_eq!(shown(&mut activities, ChunkKind::ToolResult), [""; 0]);
        activities.apply_run_event(&id, status(Activity::ModelLoading), Ordinal(30));
        assert_eq!(
            shown(&mut activities, ChunkKind::Thinking).len(),
            2,
            "a loading model does not stop the inference"
        );
        activities.apply_run_event(&id, status(Activity::Working), Ordinal(40));
        assert_eq!(
            shown(&mut activities, ChunkKind::Thinking),
            [""; 0],
            "the agent reports its activity itself"
        );
    }
}
