//! Where in the one order something stands, and since when that order is unbroken.

use crate::Time;
use std::fmt;

/// The place of an event in the log; assigned inside the commit, without holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
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

/// Names one unbroken history; a restored backup gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What every cursor and every resume carries: `<epoch>-<seq>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub epoch: Epoch,
    pub seq: Seq,
}

impl Position {
    /// Reads `<epoch>-<seq>`; a bare number means the current epoch.
    pub fn parse(text: &str, current: Epoch) -> Option<Self> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().map(Seq)
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

/// Where something stands among everything that is told, whether it is logged or not: the same for whoever hears
/// it, and always higher than what was told before.
///
/// It follows from the `Seq`, so that what is told again out of the log has the number that it had the first time:
/// an event has [`Ordinal::MAX_PARTS`] numbers for what it is told as, and the signals that follow it those after, up
/// to the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ordinal(pub u64);

impl Ordinal {
    /// Into how many pieces a door may take an event apart.
    pub const MAX_PARTS: u64 = 16;
    /// Numbers from one event to the next. Exact in a browser for eight thousand million events.
    const STRIDE: u64 = 1 << 20;

    /// The first number of an event.
    pub fn of(seq: Seq) -> Self {
        Self(seq.0.saturating_mul(Self::STRIDE))
    }

    /// Where the signals that follow an event begin.
    pub fn after(seq: Seq) -> Self {
        Self::of(seq).part(Self::MAX_PARTS)
    }

    pub fn part(self, part: u64) -> Self {
        Self(self.0 + part)
    }

    /// So many numbers further on, if that is before the next event.
    pub fn plus(self, numbers: u64) -> Self {
        Self((self.0 + numbers).min(self.0 | (Self::STRIDE - 1)))
    }

    /// Whether half of the numbers up to the next event are given.
    pub fn is_half_used(self) -> bool {
        self.0 % Self::STRIDE >= Self::STRIDE / 2
    }
}

/// What a signal is told with: its number, and when it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalStamp {
    pub ordinal: Ordinal,
    pub at: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_what_it_writes() {
        let position = Position { epoch: Epoch(0x0a1b2c3d), seq: Seq(42) };
        assert_eq!(position.to_string(), "0a1b2c3d-42");
        assert_eq!(Position::parse("0a1b2c3d-42", Epoch(1)), Some(position));
        assert_eq!(Position::parse("42", Epoch(0x0a1b2c3d)), Some(position));
    }

    #[test]
    fn nonsense_is_no_position() {
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
    fn what_follows_has_a_higher_number_also_where_there_are_too_many() {
        let event = Ordinal::of(Seq(7));
        let first = Ordinal::after(Seq(7));
        assert!(event.part(Ordinal::MAX_PARTS - 1) < first);
        assert!(first < first.plus(1) && first.plus(1) < Ordinal::of(Seq(8)));
        assert!(first.plus(u64::from(u32::MAX)) < Ordinal::of(Seq(8)));
        assert!(!first.is_half_used() && first.plus(1 << 19).is_half_used());
        assert!(Ordinal::after(Seq(8_000_000_000)).0 < 1 << 53, "exact in a browser");
    }
}
