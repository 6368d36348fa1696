//! Whether the values of a recipe make sense, alone and together, before any tensor exists.
//!
//! Every message names its keys in backticks with their values; [`super::Recipe`] finds the line by
//! them. Sizes of the network are checked by `attentive-model`, which owns their rules.

use attentive_model::config::{AnyConfig, BertConfig, BertHead, PositionKind, Tying};
use attentive_text::tokenizer::TokenizerKind;

use super::keys::{IMAGES, TRANSLATION};
use super::{
    BestBy, Data, LossKind, OptimizerKind, Recipe, ScheduleKind, ScheduleSection, Synthetic,
};

/// Stands in for the vocabulary, which does not exist yet.
const SOME_VOCABULARY: usize = 8_000;

/// Everything that is wrong, in the order of the sections.
pub(super) fn problems(recipe: &Recipe) -> Vec<String> {
    let mut found = Found(Vec::new());
    let family = recipe.model.family();
    let translation = TRANSLATION.contains(&family);
    if let AnyConfig::Bert(model) = &recipe.model.config {
        check_bert(recipe, model, &mut found);
    } else if IMAGES.contains(&family) {
        check_images(&recipe.data, &mut found);
    } else if !translation {
        check_text(&recipe.data, &mut found);
    } else if let Some(synthetic) = &recipe.data.synthetic {
        check_synthetic(&recipe.data, synthetic, &mut found);
    } else {
        check_pairs(&recipe.data, &mut found);
    }
    found.at_least("data.max_length", recipe.data.max_length, 1);
    check_prepared(recipe, &mut found);
    check_tokenizer(recipe, &mut found);
    check_augmentation(recipe, &mut found);
    check_model(recipe, &mut found);
    check_training(recipe, &mut found);
    if translation {
        check_batches(recipe, &mut found);
    } else {
        found.at_least("training.batch_size", recipe.training.batch_size, 1);
    }
    check_optimizer(recipe, &mut found);
    check_schedule(&recipe.schedule, &mut found);
    check_validation(recipe, &mut found);
    let minutes = recipe.checkpoints.every_minutes;
    found.not_negative("checkpoints.every_minutes", minutes);
    found.at_least("checkpoints.keep_last", recipe.checkpoints.keep_last, 1);
    found.0
}

fn check_text(data: &Data, found: &mut Found) {
    if data.text.is_empty() {
        found.push("`data.text` is missing: name the files of running text to learn");
    }
    found.share("data.val_share", data.val_share);
    found.require(data.val_text.is_empty() || data.val_share == 0.0, || {
        "`data.val_text` and `data.val_share` exclude each other: remove one of them".to_owned()
    });
    check_lists(data, found);
}

fn check_bert(recipe: &Recipe, model: &BertConfig, found: &mut Found) {
    let data = &recipe.data;
    let kind = recipe.tokenizer.kind;
    found.require(kind == TokenizerKind::WordPiece, || {
        format!("`tokenizer.kind` (\"{kind}\") must be \"wordpiece\" for a BERT")
    });
    let pruning = &recipe.pruning;
    found.positive("pruning.temperature", pruning.temperature);
    found.not_negative("pruning.regularizer", pruning.regularizer);
    found.share("pruning.initial_threshold", pruning.initial_threshold);
    match model.head {
        BertHead::Classification => check_examples(data, found),
        BertHead::MaskedLanguageModel | BertHead::Pretraining => check_text(data, found),
        BertHead::None => found.push(
            "`model.head` (\"none\") learns nothing: set it to \"pretraining\", \"masked_language_model\" or \
             \"classification\"",
        ),
    }
}

fn check_examples(data: &Data, found: &mut Found) {
    if data.examples.is_empty() {
        found.push("`data.examples` is missing: name the files of labelled texts to learn");
    }
    found.require(data.text.is_empty() && data.val_text.is_empty(), || {
        "`data.text` is for pre-training: remove it, or set `model.head` to \"pretraining\""
            .to_owned()
    });
    let columns = data.text_columns.len();
    found.require((1..=2).contains(&columns), || {
        format!("`data.text_columns` ({columns} names) must name one column, or the two of a pair of texts")
    });
    check_lists(data, found);
}

fn check_images(data: &Data, found: &mut Found) {
    if data.images.is_empty() {
        found.push(
            "`data.images` is missing: name IDX files (and `data.labels`), or a folder with a folder of PNG files \
             for each class",
        );
    }
    check_lists(data, found);
}

fn check_pairs(data: &Data, found: &mut Found) {
    if data.src.is_empty() && data.tgt.is_empty() {
        found.push(
            "`data.src` and `data.tgt` are missing: name the two sides of the corpus, or generate one \
             with [data.synthetic]",
        );
    }
    let pairs = [
        ("src", &data.src, "tgt", &data.tgt),
        ("val_src", &data.val_src, "val_tgt", &data.val_tgt),
    ];
    for (src_key, src, tgt_key, tgt) in pairs {
        found.require(src.len() == tgt.len(), || {
            format!(
                "`data.{src_key}` ({}) and `data.{tgt_key}` ({}) must pair file by file",
                files(src.len()),
                files(tgt.len())
            )
        });
    }
    let weights = &data.weights;
    found.require(
        weights.is_empty() || weights.len() == data.src.len(),
        || {
            format!(
                "`data.weights` ({} numbers) needs one for each file of `data.src` ({})",
                weights.len(),
                files(data.src.len())
            )
        },
    );
    for weight in weights {
        found.require(weight.is_finite() && *weight > 0.0, || {
            format!(
                "`data.weights` has {weight}, which must be more than 0; to leave a file out, do not name it"
            )
        });
    }
    check_lists(data, found);
}

fn check_lists(data: &Data, found: &mut Found) {
    for (key, list) in data.lists() {
        found.require(!list.iter().any(String::is_empty), || {
            format!("`data.{key}` has an empty file name")
        });
        found.require(!list.iter().any(|file| file == "-"), || {
            format!(
                "`data.{key}` is standard input, which a continued run could not read again; save it \
                 to a file first"
            )
        });
    }
}

fn check_prepared(recipe: &Recipe, found: &mut Found) {
    if recipe.data.prepared.is_empty() {
        return;
    }
    found.require(recipe.data.synthetic.is_none(), || {
        "`data.prepared` is for files: remove it, or `data.synthetic`".to_owned()
    });
    found.require(recipe.augmentation.is_off(), || {
        "[augmentation] gives lines other forms in every epoch, and `data.prepared` holds their tokens only: set its \
         keys to 0, or train without `data.prepared`"
            .to_owned()
    });
}

fn check_synthetic(data: &Data, synthetic: &Synthetic, found: &mut Found) {
    found.require(data.weights.is_empty(), || {
        "`data.weights` are for files: remove them, or `data.synthetic`".to_owned()
    });
    for (key, list) in data.lists() {
        found.require(list.is_empty(), || {
            format!("`data.{key}` and `data.synthetic` exclude each other: remove one of them")
        });
    }
    found.at_least("data.synthetic.lines", synthetic.lines, 1);
    found.at_least("data.synthetic.symbols", synthetic.symbols, 2);
    found.at_least("data.synthetic.min_length", synthetic.min_length, 1);
    let (min, max) = (synthetic.min_length, synthetic.max_length);
    found.require(min <= max, || {
        format!(
            "`data.synthetic.min_length` ({min}) must be at most `data.synthetic.max_length` ({max})"
        )
    });
    found.require(max <= data.max_length, || {
        format!(
            "`data.synthetic.max_length` ({max}) must be at most `data.max_length` ({}), or lines are \
             left out",
            data.max_length
        )
    });
    // With fewer possible lines, unseen ones for validation would be hard or impossible to find.
    let possible =
        (synthetic.symbols as u128).saturating_pow(u32::try_from(max).unwrap_or(u32::MAX));
    found.require(possible >= 2 * synthetic.val_lines as u128, || {
        format!(
            "`data.synthetic.val_lines` ({}) are too many to be all unseen: {} symbols in lines of \
             {max} words allow {possible} lines; raise `data.synthetic.symbols` or \
             `data.synthetic.max_length`",
            synthetic.val_lines, synthetic.symbols
        )
    });
}

fn check_tokenizer(recipe: &Recipe, found: &mut Found) {
    if let Err(error) = recipe.tokenizer.options().check() {
        let message = error.to_string();
        found.push(&message.replace("`vocab_size`", "`tokenizer.vocab_size`"));
    }
    let learned = recipe.training.learns_vocabulary();
    found.require(learned || recipe.tokenizer.from_model.is_empty(), || {
        "`tokenizer.from_model` means nothing with the vocabularies of `training.start_from`: leave it out, or set \
         `training.start_vocabulary` = \"learned\""
            .to_owned()
    });
}

fn check_augmentation(recipe: &Recipe, found: &mut Found) {
    let augmentation = &recipe.augmentation;
    let shares = [
        ("subword_dropout", augmentation.subword_dropout),
        ("lowercase", augmentation.lowercase),
        ("no_punctuation", augmentation.no_punctuation),
        ("plain_umlauts", augmentation.plain_umlauts),
        ("marks", augmentation.marks),
    ];
    for (key, share) in shares {
        found.share(&format!("augmentation.{key}"), share);
    }
    let one_cut = recipe.tokenizer.kind != TokenizerKind::Unigram;
    found.require(!(one_cut && augmentation.subword_dropout > 0.0), || {
        format!(
            "`augmentation.subword_dropout` ({}) needs `tokenizer.kind` = \"unigram\": the other kinds \
             cut a word in one way only",
            augmentation.subword_dropout
        )
    });
}

fn check_model(recipe: &Recipe, found: &mut Found) {
    let mut any = recipe.model.config.clone();
    if let AnyConfig::Bert(model) = &mut any
        && model.head == BertHead::Classification
        && model.labels.is_empty()
    {
        // The examples name them.
        model.labels = vec!["0".to_owned(), "1".to_owned()];
    }
    if let Err(problems) = any
        .with_vocabularies(SOME_VOCABULARY, SOME_VOCABULARY)
        .check()
    {
        found.0.extend(problems);
    }
    let tying = match &recipe.model.config {
        AnyConfig::Transformer(model) => model.tying,
        AnyConfig::Recurrent(model) => model.tying,
        AnyConfig::Gpt(_) | AnyConfig::Bert(_) | AnyConfig::Vit(_) | AnyConfig::Diffusion(_) => {
            return;
        }
    };
    found.require(tying != Tying::All || recipe.tokenizer.shared, || {
        "`model.tying` (\"all\") needs one vocabulary: set `tokenizer.shared` = true, or tie only the \
         output"
            .to_owned()
    });
    let AnyConfig::Transformer(model) = &recipe.model.config else {
        return;
    };
    let longest = recipe.data.max_length;
    let limited = model.positions == PositionKind::Learned;
    found.require(!limited || longest < model.max_positions, || {
        format!(
            "`model.max_positions` ({}) must be more than `data.max_length` ({longest}): learned \
             positions end there",
            model.max_positions
        )
    });
}

fn check_training(recipe: &Recipe, found: &mut Found) {
    let training = &recipe.training;
    found.at_least("training.epochs", training.epochs, 1);
    found.at_least("training.accumulate", training.accumulate, 1);
    found.at_least("training.log_every", training.log_every, 1);
    found.not_negative("training.max_minutes", training.max_minutes);
    found.not_negative("training.r_drop", training.r_drop);
    let after = training.r_drop_after;
    found.require(after == 0 || training.r_drop > 0.0, || {
        format!("`training.r_drop_after` ({after}) does nothing without `training.r_drop`")
    });
    found.not_negative("training.clip_norm", training.clip_norm);
    found.share("training.ema_decay", training.ema_decay);
    found.share("training.class_dropout", training.class_dropout);
    if training.loss == LossKind::LabelSmoothing {
        found.share("training.label_smoothing", training.label_smoothing);
    }
}

fn check_batches(recipe: &Recipe, found: &mut Found) {
    let training = &recipe.training;
    if training.batch_sentences == 0 {
        let (budget, longest) = (training.batch_tokens, recipe.data.max_length);
        found.require(budget > longest, || {
            format!(
                "`training.batch_tokens` ({budget}) must be more than `data.max_length` ({longest}): \
                 the longest sentence and its end must fit into a batch"
            )
        });
        found.require(training.similar_lengths, || {
            "`training.similar_lengths` = false needs `training.batch_sentences`: batches of so many tokens \
             are always of similar length"
                .into()
        });
    }
}

fn check_optimizer(recipe: &Recipe, found: &mut Found) {
    let optimizer = &recipe.optimizer;
    found.share("optimizer.beta1", optimizer.beta1);
    found.share("optimizer.beta2", optimizer.beta2);
    found.positive("optimizer.epsilon", optimizer.epsilon);
    found.share("optimizer.momentum", optimizer.momentum);
    found.not_negative("optimizer.weight_decay", optimizer.weight_decay);
    let ignored = optimizer.kind == OptimizerKind::Adam && optimizer.weight_decay > 0.0;
    found.require(!ignored, || {
        format!(
            "`optimizer.weight_decay` ({}) needs `optimizer.kind` = \"adamw\": \"adam\" ignores it",
            optimizer.weight_decay
        )
    });
}

fn check_schedule(schedule: &ScheduleSection, found: &mut Found) {
    match schedule.kind {
        ScheduleKind::Noam => {
            found.positive("schedule.factor", schedule.factor);
            found.at_least("schedule.warmup", schedule.warmup, 1);
        }
        _ => found.positive("schedule.learning_rate", schedule.learning_rate),
    }
    if matches!(schedule.kind, ScheduleKind::Cosine | ScheduleKind::OneCycle) {
        let name = if schedule.kind == ScheduleKind::Cosine {
            "cosine"
        } else {
            "one_cycle"
        };
        found.require(schedule.total_steps > schedule.warmup, || {
            format!(
                "`schedule.kind` (\"{name}\") needs `schedule.total_steps` ({}) to be more than \
                 `schedule.warmup` ({}): it comes down between them",
                schedule.total_steps, schedule.warmup
            )
        });
    }
    match schedule.kind {
        ScheduleKind::OneCycle => found.at_least("schedule.warmup", schedule.warmup, 2),
        ScheduleKind::CosineRestarts => {
            found.require(schedule.cycle >= 1, || {
                "`schedule.kind` (\"cosine_restarts\") needs `schedule.cycle` (0) to be at least 1".to_owned()
            });
            found.at_least("schedule.cycle_factor", schedule.cycle_factor, 1);
        }
        ScheduleKind::Step => {
            found.require(schedule.decay >= 1, || {
                "`schedule.kind` (\"step\") needs `schedule.decay` (0) to be at least 1".to_owned()
            });
            found.positive("schedule.decay_factor", schedule.decay_factor);
        }
        _ => {}
    }
    if schedule.kind == ScheduleKind::Trapezoid {
        found.at_least("schedule.decay", schedule.decay, 1);
        let (rise, fall) = (schedule.warmup, schedule.decay);
        found.require(schedule.total_steps >= rise + fall, || {
            format!(
                "`schedule.total_steps` ({}) must hold the `schedule.warmup` ({rise}) and the \
                 `schedule.decay` ({fall})",
                schedule.total_steps
            )
        });
    }
    if matches!(
        schedule.kind,
        ScheduleKind::Cosine
            | ScheduleKind::CosineRestarts
            | ScheduleKind::Trapezoid
            | ScheduleKind::Step
            | ScheduleKind::InverseSqrt
    ) {
        found.not_negative("schedule.min_learning_rate", schedule.min_learning_rate);
        found.require(schedule.min_learning_rate <= schedule.learning_rate, || {
            format!(
                "`schedule.min_learning_rate` ({}) must be at most `schedule.learning_rate` ({})",
                schedule.min_learning_rate, schedule.learning_rate
            )
        });
    }
}

fn check_validation(recipe: &Recipe, found: &mut Found) {
    let validation = &recipe.validation;
    found.at_least("validation.beam", validation.beam, 1);
    let validates = recipe.data.has_validation();
    found.require(validates || validation.patience == 0, || {
        format!(
            "`validation.patience` ({}) needs validation data: set `data.val_src` and `data.val_tgt`, \
             `data.val_text`, `data.val_examples`, or `data.val_images`",
            validation.patience
        )
    });
    let without_bleu = validation.best_by == BestBy::Bleu && !validation.bleu;
    found.require(!(validates && without_bleu), || {
        "`validation.best_by` (\"bleu\") needs `validation.bleu` = true; or set it to \"loss\""
            .to_owned()
    });
}

/// The problems so far, with one line for each common kind of check.
struct Found(Vec<String>);

impl Found {
    fn push(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }

    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(message());
        }
    }

    fn at_least(&mut self, key: &str, value: usize, least: usize) {
        self.require(value >= least, || {
            format!("`{key}` ({value}) must be at least {least}")
        });
    }

    fn not_negative(&mut self, key: &str, value: f64) {
        let holds = value >= 0.0 && value.is_finite();
        self.require(holds, || format!("`{key}` ({value}) must be 0 or more"));
    }

    fn positive(&mut self, key: &str, value: f64) {
        let holds = value > 0.0 && value.is_finite();
        self.require(holds, || format!("`{key}` ({value}) must be more than 0"));
    }

    fn share(&mut self, key: &str, value: f64) {
        let holds = (0.0..1.0).contains(&value);
        self.require(holds, || {
            format!("`{key}` ({value}) must be at least 0 and less than 1")
        });
    }
}

fn files(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        _ => format!("{count} files"),
    }
}
