//! What is right or wrong with an agent on this machine, in one sentence, and what to do about it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub state: Health,
    pub what: Box<str>,
    /// One thing to do, if something is wrong.
    pub fix: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Ok,
    Warning,
    Failure,
}
