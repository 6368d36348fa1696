//! What every key of a recipe is when the recipe does not mention it.
//!
//! The values suit a corpus of some ten thousand sentence pairs on a laptop; the optimizer, its
//! schedule and label smoothing are the paper's (§5.3, §5.4). The keys themselves are in
//! [`super::sections`].

use attentive_model::config::{Family, Preset};
use attentive_text::tokenizer::TokenizerOptions;

use super::Model;
use super::sections::{
    BestBy, Checkpoints, Data, LossKind, Optimizer, OptimizerKind, PrecisionChoice, ScheduleKind,
    ScheduleSection, ScheduleUnit, StartVocabulary, Synthetic, SyntheticTask, TokenizerSection,
    Training, Validation,
};

impl Default for Data {
    fn default() -> Self {
        Data {
            dir: String::new(),
            prepared: String::new(),
            src: Vec::new(),
            tgt: Vec::new(),
            weights: Vec::new(),
            held_out: Vec::new(),
            val_src: Vec::new(),
            val_tgt: Vec::new(),
            vocab_src: Vec::new(),
            vocab_tgt: Vec::new(),
            max_length: 256,
            text: Vec::new(),
            val_text: Vec::new(),
            val_share: 0.0,
            examples: Vec::new(),
            val_examples: Vec::new(),
            text_columns: vec!["sentence".to_owned()],
            label_column: "label".to_owned(),
            images: Vec::new(),
            labels: Vec::new(),
            val_images: Vec::new(),
            val_labels: Vec::new(),
            synthetic: None,
        }
    }
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic {
            task: SyntheticTask::Reverse,
            lines: 20_000,
            val_lines: 500,
            symbols: 26,
            min_length: 3,
            max_length: 10,
            seed: 1,
        }
    }
}

impl Default for TokenizerSection {
    fn default() -> Self {
        let usual = TokenizerOptions::default();
        TokenizerSection {
            kind: usual.kind,
            vocab_size: usual.vocab_size,
            min_frequency: usual.min_frequency,
            lowercase: usual.lowercase,
            shared: true,
            vocabulary: String::new(),
            from_model: String::new(),
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Model::from_preset(Family::default(), Preset::Small)
    }
}

impl Default for Training {
    fn default() -> Self {
        Training {
            seed: 1,
            start_from: String::new(),
            start_vocabulary: StartVocabulary::Given,
            epochs: 20,
            max_steps: 0,
            max_minutes: 0.0,
            batch_tokens: 4096,
            batch_sentences: 0,
            similar_lengths: true,
            batch_size: 32,
            accumulate: 1,
            loss: LossKind::LabelSmoothing,
            label_smoothing: 0.1,
            class_dropout: 0.1,
            r_drop: 0.0,
            r_drop_after: 0,
            clip_norm: 0.0,
            ema_decay: 0.0,
            precision: PrecisionChoice::Auto,
            log_every: 50,
        }
    }
}

impl Default for Optimizer {
    fn default() -> Self {
        Optimizer {
            kind: OptimizerKind::Adam,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-9,
            momentum: 0.9,
            weight_decay: 0.0,
        }
    }
}

impl Default for ScheduleSection {
    fn default() -> Self {
        ScheduleSection {
            kind: ScheduleKind::Noam,
            unit: ScheduleUnit::Steps,
            factor: 1.0,
            learning_rate: 1e-3,
            warmup: 4000,
            total_steps: 0,
            decay: 0,
            decay_factor: 0.1,
            cycle: 0,
            cycle_factor: 1,
            min_learning_rate: 0.0,
        }
    }
}

impl Default for Validation {
    fn default() -> Self {
        Validation {
            every_epochs: 1,
            every_steps: 0,
            bleu: true,
            beam: 1,
            bleu_sentences: 0,
            samples: 3,
            patience: 0,
            best_by: BestBy::Bleu,
        }
    }
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints {
            every_steps: 0,
            every_minutes: 10.0,
            keep_last: 3,
            average_last: 0,
        }
    }
}
