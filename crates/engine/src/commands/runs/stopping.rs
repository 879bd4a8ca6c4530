//! Stops of runs, which several commands share.

use super::{put, put_ended};
use crate::effects::EffectsBuilder;
use parlor_model::{Run, RunOutcome, RunState};

/// Ends a queued run, or requests the stop of an active one. The scheduler ends the active run with the text
/// streamed so far, when its gateway has confirmed the stop.
pub fn stop(run: &Run, effects: &mut EffectsBuilder<'_>) {
    match run.state {
        RunState::Queued => {
            if let Ok(ended) = run.ended(RunOutcome::Cancelled, None, effects.now) {
                put_ended(ended, effects);
            }
        }
        RunState::Running if !run.stop_requested => {
            put(Run { stop_requested: true, ..run.clone() }, effects);
        }
        RunState::Running | RunState::Ended(_) => {}
    }
}
