//! The KV cache in pages of [`super::simd::LANES`] positions: keys and values of the source and of each row's past.
//!
//! Beams share the pages of their common past. A page that a row is about to write into is copied first
//! (copy on write), so that rearranging beams copies at most one page per row, however long the sentence.
//! Neighbors: [`super::attend`] says what is inside a page.

use std::ops::{Deref, DerefMut};

use memmap2::{MmapMut, MmapOptions};

use super::buffers::Usage;

/// Pages of one size, shared by counting.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    memory: Reserve,
    size: usize,
    users: Vec<u32>,
    free: Vec<usize>,
    /// How many pages were used at once since they were cleared.
    most_used: usize,
}

impl Pages {
    /// Forgets everything; from now on a page has `size` numbers.
    pub fn clear(&mut self, size: usize) {
        self.size = size;
        self.users.fill(0);
        self.free.clear();
        self.free.extend((0..self.users.len()).rev());
        self.most_used = 0;
    }

    pub fn memory(&self) -> &[f32] {
        &self.memory
    }

    /// The numbers of a page.
    pub fn page_mut(&mut self, page: usize) -> &mut [f32] {
        &mut self.memory[page..][..self.size]
    }

    /// A new page; its number is where it begins in the memory.
    pub fn take(&mut self) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.users.push(0);
            self.memory.grow(self.users.len() * self.size);
            self.users.len() - 1
        });
        self.users[index] = 1;
        self.most_used = self.most_used.max(index + 1); // Lower ones are taken first.
        index * self.size
    }

    /// How much of it was used since it was cleared.
    pub fn usage(&self) -> Usage {
        let bytes = self.size * size_of::<f32>();
        Usage {
            held: self.users.len() * bytes,
            used: self.most_used * bytes,
        }
    }

    /// One user more.
    pub fn share(&mut self, page: usize) {
        self.users[page / self.size] += 1;
    }

    /// One user less.
    pub fn give_back(&mut self, page: usize) {
        let index = page / self.size;
        self.users[index] -= 1;
        if self.users[index] == 0 {
            self.free.push(index);
        }
    }

    /// A page with the same content that nobody else uses; only the first `used` numbers of every
    /// `block` matter.
    pub fn own(&mut self, page: usize, block: usize, used: usize) -> usize {
        if self.users[page / self.size] == 1 {
            return page;
        }
        let copy = self.take();
        for at in (0..self.size).step_by(block) {
            let from = page + at;
            self.memory.copy_within(from..from + used, copy + at);
        }
        self.give_back(page);
        copy
    }
}

/// Numbers in one piece that can become more without being moved: addresses are reserved ahead, and
/// the system gives memory to those that are used. (A vector that doubles would hold its old copy
/// beside the new one, and half of the new one for nothing.)
#[derive(Debug, Default)]
struct Reserve {
    map: Option<MmapMut>,
    len: usize,
}

impl Reserve {
    const FIRST_BYTES: usize = 64 << 20;

    /// Makes room for at least `len` numbers; new ones are zero.
    fn grow(&mut self, len: usize) {
        let bytes = len * size_of::<f32>();
        let reserved = self.map.as_ref().map_or(0, |map| map.len());
        if bytes > reserved {
            let more = bytes.max(2 * reserved).max(Self::FIRST_BYTES);
            let map = MmapOptions::new().len(more).no_reserve_swap().map_anon();
            // As with every allocation, there is nothing to go on with when there is no memory.
            let mut map = map.expect("memory for the decoder");
            if let Some(old) = &self.map {
                let used = self.len * size_of::<f32>();
                map[..used].copy_from_slice(&old[..used]);
            }
            self.map = Some(map);
        }
        self.len = self.len.max(len);
    }
}

impl Deref for Reserve {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.map {
            // SAFETY: a map begins on a page, holds `len` numbers, and any bytes are numbers.
            Some(map) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.len) },
            None => &[],
        }
    }
}

impl DerefMut for Reserve {
    fn deref_mut(&mut self) -> &mut [f32] {
        match &mut self.map {
            // SAFETY: as above, and the borrow is exclusive.
            Some(map) => unsafe {
                std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.len)
            },
            None => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_stays_when_more_is_reserved() {
        let mut reserve = Reserve::default();
        assert!(reserve.is_empty());
        reserve.grow(10);
        reserve[9] = 7.0;
        let many = Reserve::FIRST_BYTES / size_of::<f32>() + 1;
        reserve.grow(many);
        assert_eq!(
            (reserve.len(), reserve[9], reserve[many - 1]),
            (many, 7.0, 0.0)
        );
        reserve.grow(5);
        assert_eq!(reserve.len(), many, "it never shrinks");
    }
}
