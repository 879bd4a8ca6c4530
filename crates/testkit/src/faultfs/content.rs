//! The bytes of one file, twice: what programs see and what a power loss leaves.
//!
//! Owns: which pages differ between the two. Limits: both copies live in memory.

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
        // What is cut off must be overwritten with zeros should the file grow again; growing itself writes none.
        self.touch(len as usize, self.visible.len());
        self.visible.resize(len as usize, 0);
    }

    /// What fsync does when it succeeds.
    pub(super) fn sync(&mut self) {
        self.durable.resize(self.visible.len(), 0);
        for page in std::mem::take(&mut self.dirty) {
            let start = (page * PAGE).min(self.visible.len());
            let end = (start + PAGE).min(self.visible.len());
            self.durable[start..end].copy_from_slice(&self.visible[start..end]);
        }
    }

    /// What fsync does when it fails: Linux marks the pages clean although they never reached the disk, so
    /// that a later fsync succeeds without them. A program that retries and then trusts the disk loses data.
    pub(super) fn forget_dirty(&mut self) {
        self.dirty.clear();
    }

    /// A power loss that catches the disk at work: each unsynced page reached it or did not.
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
    fn bytes_cut_off_do_not_come_back_when_the_file_grows_again() {
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
    fn a_failed_sync_is_not_made_good_by_a_later_one() {
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
    fn a_torn_loss_keeps_whole_pages() {
        let mut content = Content::default();
        content.write(0, &[1; 2 * PAGE]);
        content.sync();
        content.write(0, &[2; 2 * PAGE]);
        let mut second_only = [false, true].into_iter();
        content.tear(|| second_only.next().expect("two pages are dirty"));
        assert_eq!(content.durable(), [[1; PAGE], [2; PAGE]].concat());
    }
}
