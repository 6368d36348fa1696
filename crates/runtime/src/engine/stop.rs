//! Stopping a call before its end: Ctrl-C in a Python program, a client that has left.
//!
//! The one who waits for a call says by a function whether it shall go on. It is asked on the waiting thread, a few
//! times each second, and by the searches before every step: a search that is asked to stop leaves its sentences
//! where they are. Neighbors: [`super::Engine::map_until`] waits, `translator::queue` stops searches.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whether a call shall stop; never by default.
#[derive(Clone, Default)]
pub struct Stop(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// How often a waiting thread asks.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);

impl Stop {
    /// Stops as soon as `asked` answers yes. It is asked very often, and must not wait for the call.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }

    /// Whether the call shall stop.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked())
    }

    /// Whether it never will.
    pub(super) fn is_never(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_never() { "Never" } else { "When(..)" })
    }
}
