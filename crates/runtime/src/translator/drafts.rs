//! Translators with a draft: a smaller model proposes tokens, which the model verifies.
//!
//! Neighbor: [`crate::search::draft`] searches with it.

use std::sync::Arc;

use attentive_model::Shortlist;
use attentive_model::directory::ModelDir;

use super::{Translator, TranslatorOptions};
use crate::cpu::{Compute, CpuModel};
use crate::error::{Result, RuntimeError};
use crate::search::SearchModel;
use crate::search::draft::{Draft, ModelDraft};

impl<M: SearchModel> Translator<M> {
    /// The same translator with a draft, which must know the same tokens. It lets sentences that are
    /// translated one at a time be found sooner, and changes no translation. It needs greedy search.
    pub fn with_draft(self, draft: Arc<dyn Draft>) -> Result<Self> {
        takes_drafts(&*self.model, &self.options)?;
        let draft = Some(draft);
        Ok(Self { draft, ..self })
    }

    /// As [`Translator::with_draft`], with a smaller model that was trained with the same tokenizers, and the
    /// shortlist of what it may guess, if there is one.
    pub fn with_draft_model(
        self,
        directory: &ModelDir,
        compute: Compute,
        shortlist: Option<Arc<Shortlist>>,
    ) -> Result<Self> {
        takes_drafts(&*self.model, &self.options)?;
        let (own, other) = (&self.tokenizers, &directory.tokenizers);
        for (side, own, other) in [
            ("the source", &own.src, &other.src),
            ("the target", &own.tgt, &other.tgt),
        ] {
            if own.fingerprint() != other.fingerprint() {
                let path = directory.path.clone();
                return Err(RuntimeError::Draft { side, path });
            }
        }
        let model = CpuModel::open(directory, compute)?;
        let mut draft = ModelDraft::new(model, directory.config.position_limit());
        if let Some(shortlist) = shortlist {
            shortlist.check(other)?;
            draft = draft.with_shortlist(shortlist);
        }
        self.with_draft(Arc::new(draft))
    }
}

/// Whether drafts can be used.
pub(super) fn takes_drafts<M: SearchModel>(model: &M, options: &TranslatorOptions) -> Result<()> {
    let problem = if !options.search.takes_drafts() {
        "a draft needs greedy search: use a beam of 1 (--beam 1) and no sampling"
    } else if model.elastic().is_none() {
        "a draft needs a model that can verify it: use the CPU's"
    } else {
        return Ok(());
    };
    Err(RuntimeError::Options(vec![problem.to_owned()]))
}
