//! What a run says about itself.

use super::Trainer;
use crate::{
    data::batches,
    data::corpus::Pair,
    events::{Started, StepReport},
    trainer::start::Ready,
};

impl Trainer<'_> {
    pub(super) fn step_report(&self, learning_rate: f64, norm: f64) -> StepReport {
        let state = &self.ready.snapshot.state;
        let tokens = state.window_tokens as f64;
        let own = (tokens - self.window_before as f64).max(0.0);
        StepReport {
            step: state.step,
            epoch: state.epoch,
            examples: state.examples,
            tokens: state.tgt_tokens,
            loss: state.window_loss / tokens.max(1.0),
            learning_rate,
            gradient_norm: Some(norm),
            tokens_per_second: own / self.window.elapsed().as_secs_f64().max(1e-9),
            seconds: self.seconds(),
        }
    }

    pub(super) fn introduction(&self, pairs: &[Pair], plan: &[Vec<usize>]) -> Started {
        let Ready {
            run,
            corpus,
            config,
            snapshot,
            continued_from,
            ..
        } = &self.ready;
        let training = &self.session.recipe.training;
        let steps = (plan.len() * training.epochs / training.accumulate.max(1)) as u64;
        Started {
            run: run.path().to_owned(),
            continued_from: *continued_from,
            parameters: config.parameter_count(),
            vocabularies: (config.src_vocab, config.tgt_vocab),
            train: corpus.train_report.clone(),
            val: corpus.val_report.clone(),
            batches: plan.len(),
            padding: batches::padding_share(pairs, plan),
            total_steps: self.last_step().unwrap_or(steps).min(steps),
            first_step: snapshot.state.step,
        }
    }
}
