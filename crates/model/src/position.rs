//! Sequence numbers, epochs and positions in the event log, and ordinals on the chat-events stream.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sequence number of an event in the log. Assigned inside the commit, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl Seq {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies one unbroken history of the log. A restored backup gets a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Position in the log, written `<epoch>-<seq>`. Used by cursors and by resuming clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub epoch: Epoch,
    pub seq: Seq,
}

impl Position {
    /// Parses `<epoch>-<seq>`. A number without an epoch refers to the current epoch.
    pub fn parse(text: &str, current: Epoch) -> Option<Self> {
        let number = |digits: &str| {
            let only_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            only_digits.then(|| digits.parse().ok()).flatten().map(Seq)
        };
        match text.split_once('-') {
            None => number(text).map(|seq| Self { epoch: current, seq }),
            Some((epoch, seq)) => {
                let hex = epoch.len() == 8 && epoch.bytes().all(|b| b.is_ascii_hexdigit());
                let epoch = hex.then(|| u32::from_str_radix(epoch, 16).ok()).flatten()?;
                number(seq).map(|seq| Self { epoch: Epoch(epoch), seq })
            }
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

/// Number of an item (part of an event, or signal) on the chat-events stream. Equal for all subscribers, and
/// higher than that of every earlier item.
///
/// Derived from `Seq`, so that a replayed event has the ordinal of its first publication. Each event owns a
/// range of ordinals: the first [`Ordinal::MAX_PARTS`] are for its parts, the rest for the signals up to the
/// next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ordinal(pub u64);

impl Ordinal {
    /// Maximum number of items into which a protocol adapter may split one event.
    pub const MAX_PARTS: u64 = 16;
    /// Number of ordinals per event. Ordinals of the first 8 × 10⁹ events are exact in JavaScript (below
    /// 2⁵³).
    const STRIDE: u64 = 1 << 20;

    /// Returns the first ordinal of an event.
    pub fn of(seq: Seq) -> Self {
        Self(seq.0.saturating_mul(Self::STRIDE))
    }

    /// Returns the first ordinal for signals that follow an event.
    pub fn after(seq: Seq) -> Self {
        Self::of(seq).part(Self::MAX_PARTS)
    }

    pub fn part(self, part: u64) -> Self {
        Self(self.0 + part)
    }

    /// Returns the ordinal `numbers` further on, but at most the last one before the next event.
    pub fn plus(self, numbers: u64) -> Self {
        Self((self.0 + numbers).min(self.0 | (Self::STRIDE - 1)))
    }

    /// Returns whether half of the ordinals up to the next event are used.
    pub fn is_half_used(self) -> bool {
        self.0 % Self::STRIDE >= Self::STRIDE / 2
    }
}

/// Ordinal of a signal, and the time at which it was assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalStamp {
    pub ordinal: Ordinal,
    pub at: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_parses_its_own_display_form() {
        let position = Position { epoch: Epoch(0x0a1b2c3d), seq: Seq(42) };
        assert_eq!(position.to_string(), "0a1b2c3d-42");
        assert_eq!(Position::parse("0a1b2c3d-42", Epoch(1)), Some(position));
        assert_eq!(Position::parse("42", Epoch(0x0a1b2c3d)), Some(position));
    }

    #[test]
    fn malformed_positions_are_rejected() {
        for bad in [
            "",
            "-",
            "x",
            "-1",
            "+1",
            "1-2",
            "0a1b2c3d-",
            "0a1b2c3d--1",
            "99999999999999999999",
            "+a1b2c3d-1",
        ] {
            assert_eq!(Position::parse(bad, Epoch(1)), None, "{bad:?}");
        }
    }

    #[test]
    fn ordinals_increase_and_stay_below_the_next_event_even_if_signals_exceed_the_range() {
        let event = Ordinal::of(Seq(7));
        let first = Ordinal::after(Seq(7));
        assert!(event.part(Ordinal::MAX_PARTS - 1) < first);
        assert!(first < first.plus(1) && first.plus(1) < Ordinal::of(Seq(8)));
        assert!(first.plus(u64::from(u32::MAX)) < Ordinal::of(Seq(8)));
        assert!(!first.is_half_used() && first.plus(1 << 19).is_half_used());
        assert!(Ordinal::after(Seq(8_000_000_000)).0 < 1 << 53, "exact in JavaScript");
    }
}
