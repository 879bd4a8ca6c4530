//! Content of one file, in two versions: visible to programs, and durable after a power loss.
//!
//! Owns: the set of pages that differ between the two. Limits: both copies are in memory.

use std::collections::BTreeSet;

const PAGE: usize = 4096;

#[derive(Default)]
pub(super) struct Content {
    visible: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

impl Content {
    pub(super) fn restored(durable: Vec<u8>) -> Self {
        Self { visible: durable.clone(), durable, dirty: BTreeSet::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.visible.len() as u64
    }

    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub(super) fn read(&self, offset: u64, size: u32) -> &[u8] {
        let start = self.visible.len().min(offset as usize);
        let end = self.visible.len().min(start + size as usize);
        &self.visible[start..end]
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let start = offset as usize;
        let end = start + data.len();
        if end > self.visible.len() {
            self.resize(end as u64);
        }
        self.visible[start..end].copy_from_slice(data);
        self.touch(start, end);
    }

    pub(super) fn resize(&mut self, len: u64) {
        // The truncated range is marked dirty, because it must read as zeros if the file grows again. Growing
        // does not write data, so it marks nothing.
        self.touch(len as usize, self.visible.len());
        self.visible.resize(len as usize, 0);
    }

    /// Makes all dirty pages durable: the effect of a successful fsync.
    pub(super) fn sync(&mut self) {
        self.durable.resize(self.visible.len(), 0);
        for page in std::mem::take(&mut self.dirty) {
            let start = (page * PAGE).min(self.visible.len());
            let end = (start + PAGE).min(self.visible.len());
            self.durable[start..end].copy_from_slice(&self.visible[start..end]);
        }
    }

    /// Marks all pages clean without making them durable: the effect of a failed fsync on Linux. A later
    /// fsync succeeds without these pages, so a program that retries and then trusts the disk loses data.
    pub(super) fn forget_dirty(&mut self) {
        self.dirty.clear();
    }

    /// Makes those dirty pages durable for which `reached` returns true: a power loss during writes.
    pub(super) fn tear(&mut self, mut reached: impl FnMut() -> bool) {
        self.dirty.retain(|_| reached());
        self.sync();
    }

    fn touch(&mut self, start: usize, end: usize) {
        if start < end {
            self.dirty.extend(start / PAGE..=(end - 1) / PAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_synced_bytes_are_durable() {
        let mut content = Content::default();
        content.write(0, b"one");
        content.sync();
        content.write(1, b"ther things");
        assert_eq!(content.read(0, 100), b"other things");
        assert_eq!(content.durable(), b"one");
        content.sync();
        assert_eq!(content.durable(), b"other things");
    }

    #[test]
    fn truncated_bytes_read_as_zeros_when_the_file_grows_again() {
        let mut content = Content::default();
        content.write(0, &[7; 3 * PAGE]);
        content.sync();
        content.resize(10);
        content.resize(3 * PAGE as u64);
        content.sync();
        assert_eq!(content.durable()[..10], [7; 10]);
        assert!(content.durable()[10..].iter().all(|byte| *byte == 0));
        assert_eq!(content.durable().len(), 3 * PAGE);
    }

    #[test]
    fn a_later_sync_does_not_write_the_pages_of_a_failed_one() {
        let mut content = Content::default();
        content.write(0, b"first page");
        content.forget_dirty();
        content.write(PAGE as u64, b"second page");
        content.sync();
        assert_eq!(content.read(0, 10), b"first page");
        assert_eq!(content.durable()[..10], [0; 10]);
        assert_eq!(&content.durable()[PAGE..], b"second page");
    }

    #[test]
    fn a_power_loss_during_writes_keeps_or_drops_whole_pages() {
        let mut content = Content::default();
        content.write(0, &[1; 2 * PAGE]);
        content.sync();
        content.write(0, &[2; 2 * PAGE]);
        let mut second_only = [false, true].into_iter();
        content.tear(|| second_only.next().expect("two pages are dirty"));
        assert_eq!(content.durable(), [[1; PAGE], [2; PAGE]].concat());
    }
}
