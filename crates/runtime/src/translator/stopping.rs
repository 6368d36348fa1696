//! Calls that end early, and translators of a process from which this one was forked.
//!
//! For programs that are not all ours, such as Python's: there people press Ctrl-C, and libraries fork.

use std::sync::Arc;

use super::Translator;
use crate::engine::{Engine, Stop};
use crate::search::SearchModel;

impl<M: SearchModel> Translator<M> {
    /// The same translator whose calls end early when they are asked to. What they return then is incomplete, and not
    /// worth a look.
    pub fn stopped_by(&self, stop: Stop) -> Self {
        Self {
            stop,
            ..self.twin()
        }
    }

    /// The same translator for a process that was forked from the one that made it. Threads, and whatever another
    /// thread was about to do, stayed behind there: it gets an engine of its own.
    pub fn after_fork(&self) -> Self {
        Self {
            engine: Arc::new(Engine::new(self.engine.threads())),
            speller: self.speller.after_fork(),
            ..self.twin()
        }
    }

    /// The same model, tokenizers and threads.
    pub(super) fn twin(&self) -> Self {
        Self {
            model: self.model.clone(),
            tokenizers: self.tokenizers.clone(),
            frame: self.frame.clone(),
            options: self.options.clone(),
            engine: self.engine.clone(),
            draft: self.draft.clone(),
            stop: self.stop.clone(),
            speller: self.speller.clone(),
            marks: self.marks.clone(),
        }
    }
}
