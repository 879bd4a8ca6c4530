//! Choices derived from random bytes when a step runs, so that they can depend on the entities that exist
//! then.

pub type Bytes = [u8; 12];

pub struct Dice {
    bytes: Bytes,
    rolled: usize,
}

impl Dice {
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, rolled: 0 }
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        let byte = self.bytes[self.rolled % self.bytes.len()];
        self.rolled += 1;
        usize::from(byte) % sides
    }

    pub fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) == times - 1
    }

    pub fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())].clone()
    }

    /// A random element of `list`, which may name deleted entities; sometimes (or if it is empty) `never`.
    pub fn known<T: Clone>(&mut self, list: &[T], never: T) -> T {
        if list.is_empty() || self.once_in(20) { never } else { self.one_of(list) }
    }

    pub fn maybe<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.once_in(2).then(|| then(self))
    }

    pub fn some_of<T: Clone>(&mut self, list: &[T]) -> Vec<T> {
        let chosen = self.roll(256);
        list.iter().enumerate().filter(|(n, _)| chosen >> n & 1 == 1).map(|(_, item)| item.clone()).collect()
    }
}
