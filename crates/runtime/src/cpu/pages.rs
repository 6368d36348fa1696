//! The decoder's memory in pages of [`LANES`] positions: the source's keys and values, and each row's past.
//!
//! Beams share the pages of their common past. A page that a row is about to write into becomes its
//! own first, so that rearranging beams copies at most one page per row, however long the sentence.
//! Neighbours: [`super::attend`] says what is inside a page.

use super::aligned::Aligned;

/// Pages of one size, shared by counting.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    memory: Aligned<f32>,
    size: usize,
    users: Vec<u32>,
    free: Vec<usize>,
}

impl Pages {
    /// Forgets everything; from now on a page has `size` numbers.
    pub fn clear(&mut self, size: usize) {
        self.size = size;
        self.users.fill(0);
        self.free.clear();
        self.free.extend((0..self.users.len()).rev());
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
        index * self.size
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
