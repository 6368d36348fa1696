//! Buffers of searches that are over, kept so that those to come need not allocate them again.
//!
//! How much is kept follows recent use: buffers that one large request has grown are freed when they are far
//! larger than what searches needed of late. Neighbors: [`super::decoder`] takes them and releases them.

use std::sync::Mutex;

use super::decoder::DecoderBuffers;

/// Bytes that buffers hold, and how many of them the last search used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub held: usize,
    pub used: usize,
}

/// Buffers that no search uses.
#[derive(Debug, Default)]
pub(super) struct BufferPool(Mutex<Pool>);

#[derive(Debug, Default)]
struct Pool {
    /// With the bytes that they hold.
    free: Vec<(usize, DecoderBuffers)>,
    /// A moving average of the bytes that searches used.
    recent: usize,
}

/// Buffers up to this size are always kept.
const SMALL: usize = 8 << 20;

impl BufferPool {
    /// Buffers for a search.
    ///
    /// Where the pool is busy, in another thread or in the process from which this one was forked, new buffers
    /// are better than waiting.
    pub fn take(&self) -> DecoderBuffers {
        let pool = self.0.try_lock().ok();
        let free = pool.and_then(|mut pool| pool.free.pop());
        free.map(|(_, buffers)| buffers).unwrap_or_default()
    }

    /// Keeps the buffers of a search, and frees all that are too large now.
    pub fn release(&self, mut buffers: DecoderBuffers) {
        let Usage { held, used } = buffers.take_usage();
        let mut too_large = Vec::new(); // Freed when the pool is not busy any more.
        if let Ok(mut pool) = self.0.try_lock() {
            pool.recent = (3 * pool.recent + used) / 4;
            let most = SMALL.max(3 * pool.recent);
            pool.free.push((held, buffers));
            too_large.extend(pool.free.extract_if(.., |(held, _)| *held > most));
        }
    }
}

impl Usage {
    /// Both sums.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let zero = Self { held: 0, used: 0 };
        parts.into_iter().fold(zero, |a, b| Self {
            held: a.held + b.held,
            used: a.used + b.used,
        })
    }
}

#[cfg(test)]
mod tests {
    use attentive_model::directory::ModelDir;
    use attentive_model::fake_dir;
    use attentive_text::special::source_ids;

    use super::*;
    use crate::cpu::{Compute, CpuModel};
    use crate::search::{LengthLimit, Request, SearchOptions, search};

    /// Searches with a source of so many tokens; returns the bytes that are kept afterwards.
    fn kept_after(model: &CpuModel, tokens: usize) -> usize {
        let request = Request {
            max_length: Some(LengthLimit {
                cap: Some(3),
                ..Default::default()
            }),
            ..Request::new(source_ids(vec![5; tokens]))
        };
        search(model, &[request], &SearchOptions::beam(4));
        let pool = model.buffers.0.lock().expect("no panic");
        pool.free.iter().map(|(held, _)| held).sum()
    }

    #[test]
    fn buffers_are_kept_while_they_are_needed_and_shrink_after_a_large_request() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fake_dir::write(folder.path()).expect("written");
        let dir = ModelDir::open(folder.path()).expect("a model");
        let model = CpuModel::open(&dir, Compute::F32).expect("a model");

        let small = kept_after(&model, 10);
        assert!(small > 0 && small < SMALL);
        assert_eq!(kept_after(&model, 10), small, "nothing grows");
        assert!(kept_after(&model, 9000) < SMALL, "one large request");
        // Where all requests are large, their buffers stay.
        let large: Vec<usize> = (0..4).map(|_| kept_after(&model, 9000)).collect();
        assert!(large[3] > 2 * SMALL, "{large:?}");
        let after: Vec<usize> = (0..12).map(|_| kept_after(&model, 10)).collect();
        assert!(after[11] <= small, "{after:?}");
    }
}
