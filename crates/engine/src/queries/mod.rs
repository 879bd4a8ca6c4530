//! Queries: one file per query, which contains everything that the engine knows about it.
//!
//! A query's data and answer are in `parlor_model::query`.

mod legacy;

pub(crate) use legacy::facts;

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Refusal;

/// A request to read. Changes nothing.
pub trait Query: Send + 'static {
    /// Input of `answer`. Whatever `permit` has proved is not optional here.
    type Facts;
    type Answer: Send + 'static;

    /// Stateless check of the query's form.
    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        Ok(())
    }

    /// Whether the query is expensive and waits for one of the permits for searches.
    fn is_search(&self) -> bool {
        false
    }

    /// Refuses the caller, or returns the facts that `answer` needs.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Self::Facts, PermitError>;

    /// Reads the answer from the snapshot that `permit` has read from.
    fn answer(
        &self,
        facts: Self::Facts,
        store: &mut dyn Snapshot,
        limits: &Limits,
    ) -> Result<Self::Answer, Fault>;
}
