//! The results of checking an agent on this machine, as printed by `parlor gateway doctor`.

/// Result of one check: a state, a sentence that describes it, and an optional remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub state: Health,
    pub what: Box<str>,
    /// Remedy for the problem: a command or an instruction for the operator.
    pub fix: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Ok,
    Warning,
    Failure,
}
