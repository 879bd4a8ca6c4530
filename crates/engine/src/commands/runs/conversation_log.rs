//! Records runs in the conversation logs of their sessions: the prompt when the run starts, and its result or the
//! reason why it has none when it ends.

use crate::changes::ConversationChange;
use crate::effects::EffectsBuilder;
use parlor_model::{ConversationEntry, EntryKind, Run, RunCause, RunOutcome, RunState};
use std::sync::Arc;

/// Records the prompt of a run that starts. Does nothing for a run outside a session.
pub fn record_start(run: &Run, prompt: &Arc<str>, effects: &mut EffectsBuilder<'_>) {
    let kind = match run.cause {
        RunCause::Batch { .. } => EntryKind::AutoTurn,
        _ => EntryKind::Prompt,
    };
    append(run, kind, prompt.clone(), effects);
}

/// Records the end of a run, with the text of its reply. Does nothing for a run outside a session.
pub fn record_end(run: &Run, reply: Option<&Arc<str>>, effects: &mut EffectsBuilder<'_>) {
    let RunState::Ended(outcome) = &run.state else { return };
    let (result, error) = match run.cause {
        RunCause::Batch { .. } => (EntryKind::AutoTurnResult, EntryKind::AutoTurnError),
        _ => (EntryKind::Result, EntryKind::Error),
    };
    // A run that never started has no entry with its prompt yet.
    if let (None, RunCause::Explicit { prompt, .. }) = (run.started_at, &run.cause) {
        record_start(run, prompt, effects);
    }
    let reply = reply.filter(|text| !text.trim().is_empty()).cloned();
    if *outcome == RunOutcome::Complete {
        return append(run, result, reply.unwrap_or_default(), effects);
    }
    if let Some(partial) = reply {
        append(run, result, partial, effects);
    }
    append(run, error, outcome.reason().unwrap_or(outcome.as_str()).into(), effects);
}

fn append(run: &Run, kind: EntryKind, text: Arc<str>, effects: &mut EffectsBuilder<'_>) {
    let Some(session) = run.session().cloned() else { return };
    let (agent, run, at) = (run.agent.clone(), Some(run.id.clone()), effects.now);
    // The store assigns the number.
    let entry = ConversationEntry { agent, session, number: 0, at, kind, text, run, details: None };
    effects.change(ConversationChange::AppendEntry(Arc::new(entry)));
}
