//! How a run judges its model, and which model it calls the best.

use std::{path::PathBuf, time::Instant};

use attentive_nn::models::transformer::Transformer;

use super::Trainer;
use crate::{
    Result, evaluation,
    events::{Event, Observer, ValidationReport},
    optim::average::average,
    recipe::BestBy,
    run::checkpoint,
    run::directory::Link,
    run::manifest::CheckpointKind,
    run::snapshot::write_model,
    task::translation::smoothing,
    trainer::start::Ready,
};

impl Trainer<'_> {
    /// Judges the model, keeps a checkpoint of it, and notes whether it is the best.
    pub(super) fn validate(
        &mut self,
        kind: CheckpointKind,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let recipe = self.session.recipe;
        let began = Instant::now();
        let mut report = self.judge(&self.ready.snapshot.model_to_use())?;
        let score = score(&report, recipe.validation.best_by);
        let state = &mut self.ready.snapshot.state;
        report.improved = state.best_score.is_none_or(|best| score > best);
        state.val_loss = Some(report.loss);
        state.val_bleu = report.bleu;
        if report.improved {
            state.best_score = Some(score);
            state.best_step = Some(state.step);
            state.validations_without_improvement = 0;
        } else {
            state.validations_without_improvement += 1;
            let patience = recipe.validation.patience as u64;
            state.stopped_early = patience > 0 && state.validations_without_improvement >= patience;
        }
        let improved = report.improved;
        self.ready.log.append("validation", state.step, &report)?;
        observer.event(&Event::Validated(report));
        let checkpoint = self.save(kind, observer)?;
        if improved {
            self.ready.run.point(Link::Best, &checkpoint)?;
        }
        // Tokens per second are those of training.
        self.window += began.elapsed();
        Ok(())
    }

    fn judge(&self, model: &Transformer) -> Result<ValidationReport> {
        let recipe = self.session.recipe;
        let Ready {
            corpus,
            config,
            tokenizers,
            ..
        } = &self.ready;
        let (loss, entropy, tokens) =
            evaluation::sums(model, &corpus.val, smoothing(&recipe.training));
        let tokens = tokens.max(1) as f64;
        let validation = &recipe.validation;
        let wanted = match (validation.bleu, validation.bleu_sentences) {
            (false, _) => validation.samples,
            (true, 0) => corpus.val_src.len(),
            (true, sentences) => sentences,
        };
        let lines = wanted.min(corpus.val_src.len());
        let (bleu, samples) = evaluation::bleu(
            model,
            config,
            tokenizers,
            &corpus.val_src[..lines],
            &corpus.val_tgt[..lines],
            validation.beam,
            validation.samples,
        )?;
        Ok(ValidationReport {
            epoch: self.ready.snapshot.state.epoch,
            loss: loss / tokens,
            perplexity: (entropy / tokens).exp(),
            bleu: validation.bleu.then_some(bleu),
            seconds: self.seconds(),
            improved: false,
            samples,
        })
    }

    /// Keeps the mean of these checkpoints as a model, and as the best one if it is.
    pub(super) fn keep_average(
        &mut self,
        checkpoints: &[PathBuf],
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let Ready {
            run,
            config,
            tokenizers,
            ..
        } = &self.ready;
        let Some(model) = average(checkpoints, config, &self.session.device)? else {
            return Ok(());
        };
        let folder = run.path().join("average");
        checkpoint::write(&folder, CheckpointKind::Model, |folder| {
            write_model(folder, &model, config, tokenizers)
        })?;
        observer.event(&Event::Saved(folder.clone()));
        if self.ready.corpus.val.is_empty() {
            return Ok(());
        }
        let mut report = self.judge(&model)?;
        let score = score(&report, self.session.recipe.validation.best_by);
        let state = &self.ready.snapshot.state;
        report.improved = state.best_score.is_none_or(|best| score > best);
        self.ready.log.append("average", state.step, &report)?;
        if report.improved {
            self.ready.run.point(Link::Best, &folder)?;
        }
        observer.event(&Event::Validated(report));
        Ok(())
    }
}

/// Higher is better.
fn score(report: &ValidationReport, by: BestBy) -> f64 {
    match (by, report.bleu) {
        (BestBy::Bleu, Some(bleu)) => bleu,
        _ => -report.loss,
    }
}
