//! Memory that begins on a cache line, so that no vector straddles two.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::buffers::Usage;

/// Numbers without padding or forbidden values: any bytes are one, zeros are zero.
pub(crate) trait Plain: Copy {}
impl Plain for f32 {}
impl Plain for u8 {}
impl Plain for i8 {}

/// A vector of plain numbers that begins on a cache line.
#[derive(Debug, Default, Clone)]
pub(crate) struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    /// How many numbers were asked for since the last [`Aligned::take_usage`].
    used: usize,
    kind: PhantomData<T>,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl<T: Plain> Aligned<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let lines = Box::new_zeroed_slice((len * size_of::<T>()).div_ceil(64));
        Self {
            // SAFETY: zeros are a line. The system's own zeros are used where they are, and not written again.
            lines: unsafe { lines.assume_init() }.into_vec(),
            len,
            used: len,
            kind: PhantomData,
        }
    }

    /// Makes room for at least `len` numbers; new ones are zero.
    pub fn grow(&mut self, len: usize) {
        self.used = self.used.max(len);
        if len > self.len {
            self.lines
                .resize((len * size_of::<T>()).div_ceil(64), Line([0; 64]));
            self.len = len;
        }
    }

    /// How much of it was used, counted anew from now on.
    pub fn take_usage(&mut self) -> Usage {
        Usage {
            held: self.len * size_of::<T>(),
            used: std::mem::take(&mut self.used) * size_of::<T>(),
        }
    }
}

impl<T: Plain> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `len` numbers, initialized and aligned.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
