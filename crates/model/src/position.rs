//! Where in the one order something stands, and since when that order is unbroken.

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
}
