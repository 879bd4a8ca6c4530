//! The cursor file of a running watch: saved after output, at limited intervals.

use crate::{Cursor, CursorFile};
use std::io;
use std::time::{Duration, Instant};

/// Minimum time between two saves while lines arrive. After a kill, the lines of this time are printed again.
const SAVE_INTERVAL: Duration = Duration::from_millis(300);

pub struct SavedCursor {
    file: CursorFile,
    saved: Cursor,
    current: Cursor,
    saved_at: Instant,
    /// A failed save was reported: the next failure is not, until a save succeeds.
    reported: bool,
}

impl SavedCursor {
    /// Saves the position at the start.
    pub fn new(file: CursorFile, cursor: Cursor) -> io::Result<Self> {
        file.save(&cursor)?;
        Ok(Self { file, saved: cursor.clone(), current: cursor, saved_at: Instant::now(), reported: false })
    }

    /// Moves the position. All output before it has been flushed.
    pub fn advance(&mut self, cursor: Cursor) {
        self.current = cursor;
    }

    /// Returns the time at which [`Self::save_when_due`] has something to save.
    pub fn wake_at(&self) -> Option<Instant> {
        (self.current != self.saved).then(|| self.saved_at + SAVE_INTERVAL)
    }

    /// Returns the problem if saving fails, once.
    pub fn save_when_due(&mut self) -> Option<String> {
        if self.wake_at().is_none_or(|due| Instant::now() < due) {
            return None;
        }
        let failed = self.save().err();
        let first = !std::mem::replace(&mut self.reported, failed.is_some());
        failed.filter(|_| first).map(|error| format!("cannot save the cursor: {error}"))
    }

    /// Saves the position before the process ends.
    pub fn finish(mut self) -> io::Result<()> {
        if self.current == self.saved {
            return Ok(());
        }
        self.save().map_err(|error| io::Error::new(error.kind(), format!("cannot save the cursor: {error}")))
    }

    fn save(&mut self) -> io::Result<()> {
        self.saved_at = Instant::now();
        self.file.save(&self.current)?;
        self.saved = self.current.clone();
        Ok(())
    }
}
