//! How much memory reading a file may take, whatever the file says about itself.
//!
//! Every reader has a [`Budget`] of twice the size of the file and a little more, and takes from it before it
//! allocates. Nothing is given back: what is left at the end is what was never used.

use std::path::{Path, PathBuf};

use crate::error::{ConvertError, Result};

/// What may be allocated in addition to twice the file. The limit that users are promised is 16 MB; the rest of
/// it is for what is not counted one by one, such as the nodes of a map and messages.
const CONSTANT: usize = 12 << 20;

/// What a named entry of a map takes besides its name.
pub(crate) const ENTRY: usize = 256;

/// No name of a tensor is longer than this.
pub(crate) const MAX_NAME: usize = 4096;

/// No tensor of a model has more dimensions than this.
pub(crate) const MAX_RANK: usize = 16;

/// The memory that may still be used for a file.
#[derive(Debug)]
pub(crate) struct Budget {
    path: PathBuf,
    limit: usize,
    left: usize,
}

impl Budget {
    /// The budget of a file of `size` bytes.
    pub fn new(path: &Path, size: usize) -> Self {
        let limit = size.saturating_mul(2).saturating_add(CONSTANT);
        Self {
            path: path.to_path_buf(),
            limit,
            left: limit,
        }
    }

    /// Takes `bytes` for what `place` names, or says that there are not so many.
    pub fn take(&mut self, bytes: usize, place: impl FnOnce() -> String) -> Result<()> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| ConvertError::TooLarge {
                path: self.path.clone(),
                place: place(),
                needed: bytes,
                left: self.left,
                limit: self.limit,
            })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_gone_and_the_error_says_how_much_was_left() {
        let mut budget = Budget::new(Path::new("m.bin"), 50);
        budget.take(CONSTANT, String::new).expect("it is there");
        budget.take(60, String::new).expect("it is there");
        let error = budget
            .take(41, || "byte 7".to_string())
            .expect_err("40 are left");
        let message = error.to_string();
        assert!(message.starts_with("m.bin: byte 7 would need 41 more bytes, but 40 are left"));
    }
}
