//! The sections of a recipe, one struct each: what can be set, what it means, what it is by default.
//!
//! These are plain values; [`super::defaults`] holds their defaults, and `[model]` is [`super::model`].
//! Reading them with line numbers is [`super::parse`], whether they make sense together is
//! [`super::check`]; `recipes/*.toml` show them in use.

use std::path::PathBuf;

use attentive_nn::ops::Precision;
use attentive_text::tokenizer::{TokenizerKind, TokenizerOptions};
use serde::{Deserialize, Deserializer, Serialize};

/// `[data]`: the sentence pairs, the running text, or the images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Folder in front of every relative path below.
    pub dir: String,
    /// Folder of the prepared corpus, for text that is larger than memory: `attentive prepare` writes it, and training
    /// streams from it in place of `src` and `tgt`; empty for none.
    pub prepared: String,
    /// Source sides for training, one sentence a line; file `i` pairs with file `i` of `tgt`.
    #[serde(deserialize_with = "one_or_many")]
    pub src: Vec<String>,
    /// Target sides for training.
    #[serde(deserialize_with = "one_or_many")]
    pub tgt: Vec<String>,
    /// How often an epoch goes through each file: 0.3 means three tenths of its pairs, drawn anew in every
    /// epoch, and 2 every pair twice. Left out, once.
    pub weights: Vec<f64>,
    /// Test sets and other text that must not be learned: training pairs with one of these sentences on a side
    /// are left out, and counted.
    #[serde(deserialize_with = "one_or_many")]
    pub held_out: Vec<String>,
    /// Source sides for validation; may be left out.
    #[serde(deserialize_with = "one_or_many")]
    pub val_src: Vec<String>,
    /// Target sides for validation.
    #[serde(deserialize_with = "one_or_many")]
    pub val_tgt: Vec<String>,
    /// More source text over which the vocabulary, and nothing else, is counted.
    #[serde(deserialize_with = "one_or_many")]
    pub vocab_src: Vec<String>,
    /// More target text over which the vocabulary, and nothing else, is counted.
    #[serde(deserialize_with = "one_or_many")]
    pub vocab_tgt: Vec<String>,
    /// Sentence pairs with more tokens than this on a side are left out, and counted.
    pub max_length: usize,
    /// Running text for training: files that are read as they are, line breaks included (language models).
    #[serde(deserialize_with = "one_or_many")]
    pub text: Vec<String>,
    /// Running text for validation; may be left out.
    #[serde(deserialize_with = "one_or_many")]
    pub val_text: Vec<String>,
    /// Share of each file of `text`, at its end, that is kept for validation in place of `val_text`.
    pub val_share: f64,
    /// Labelled texts to learn a classifier from: tab-separated files whose first line names the columns.
    #[serde(deserialize_with = "one_or_many")]
    pub examples: Vec<String>,
    /// Labelled texts for validation; may be left out.
    #[serde(deserialize_with = "one_or_many")]
    pub val_examples: Vec<String>,
    /// The column of the text, or the two columns of a pair of texts.
    #[serde(deserialize_with = "one_or_many")]
    pub text_columns: Vec<String>,
    /// The column of the label.
    pub label_column: String,
    /// Images for training: IDX files, or folders that hold a folder of PNG files for each class.
    #[serde(deserialize_with = "one_or_many")]
    pub images: Vec<String>,
    /// The IDX file of the classes of each IDX file of `images`.
    #[serde(deserialize_with = "one_or_many")]
    pub labels: Vec<String>,
    /// Images for validation; may be left out.
    #[serde(deserialize_with = "one_or_many")]
    pub val_images: Vec<String>,
    /// Their classes.
    #[serde(deserialize_with = "one_or_many")]
    pub val_labels: Vec<String>,
    /// A generated task instead of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<Synthetic>,
}

/// `[data.synthetic]`: a task made up on the spot, the first sanity check of a translator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Synthetic {
    /// What the target side is.
    pub task: SyntheticTask,
    /// Number of training pairs.
    pub lines: usize,
    /// Number of validation pairs; none of them stands in the training pairs.
    pub val_lines: usize,
    /// Number of different words.
    pub symbols: usize,
    /// Fewest words of a line.
    pub min_length: usize,
    /// Most words of a line.
    pub max_length: usize,
    /// Decides which lines they are.
    pub seed: u64,
}

/// What the target side of a synthetic task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyntheticTask {
    /// The source words again.
    Copy,
    /// The source words from last to first.
    Reverse,
}

/// `[tokenizer]`: how text becomes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizerSection {
    /// Subwords (`unigram`, `bpe`, and `wordpiece` for BERT), words (`word`), `characters`, or tokens already separated by
    /// tabs (`tabs`).
    pub kind: TokenizerKind,
    /// Tokens to learn, the four special ones included; 0 with `word`, `characters` and `tabs` means all.
    pub vocab_size: usize,
    /// Words seen fewer times become `<unk>` (`word`, `tabs`).
    pub min_frequency: usize,
    /// Lower-case the text first.
    pub lowercase: bool,
    /// One vocabulary for both sides, or one each.
    pub shared: bool,
    /// A `vocab.txt` with the pieces of `wordpiece`, in place of learning them; empty for none.
    pub vocabulary: String,
    /// Folder of a translation model whose vocabularies are taken, in place of learning them; empty for none. For models that
    /// work with that one: a draft, the student of a teacher.
    pub from_model: String,
}

/// `[augmentation]`: how often training sees a line in another form; see [`crate::data::augmentation`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// Probability that a subword is hidden where it would fit, so that a word is cut in many ways.
    pub subword_dropout: f64,
    /// Share of the source lines that are written in lower case.
    pub lowercase: f64,
    /// Share of the pairs that lose the punctuation mark at their end, on both sides.
    pub no_punctuation: f64,
    /// Share of the source lines with ae, oe, ue and ss for ä, ö, ü and ß.
    pub plain_umlauts: f64,
    /// Share of the pairs in which a mark stands for something that is copied.
    pub marks: f64,
    /// Most pixels by which an image is moved in each direction.
    pub shift: usize,
}

/// `[training]`: how long, in what portions, towards which loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Decides the first weights, the order of the batches and the dropout.
    pub seed: u64,
    /// Fine-tuning: folder of a trained model whose weights and vocabularies to begin with, in place of random
    /// weights and of `[tokenizer]`; empty for none. It may be quantized. With `model.norm = "pre"` a translation model may
    /// have fewer layers than the recipe asks for: those that it lacks change nothing at first.
    pub start_from: String,
    /// Which vocabularies a model that is fine-tuned has.
    pub start_vocabulary: StartVocabulary,
    /// Most epochs: times that training goes through the corpus.
    pub epochs: usize,
    /// Stop after so many steps; 0 for no limit.
    pub max_steps: usize,
    /// Stop after so many minutes; 0 for no limit.
    pub max_minutes: f64,
    /// Most tokens of a batch on its longer side, padding included.
    pub batch_tokens: usize,
    /// Sentence pairs of every batch; 0 lets `batch_tokens` decide.
    pub batch_sentences: usize,
    /// Whether the sentences of a batch are about as long as each other, so that padding is rare.
    pub similar_lengths: bool,
    /// Examples of every batch: texts, images, or stretches of text as long as the model's context (GPT).
    pub batch_size: usize,
    /// Gradient accumulation: batches that make one step, as one batch as large as all of them would.
    pub accumulate: usize,
    /// What is minimized.
    pub loss: LossKind,
    /// Probability that the smoothed target gives to all wrong words together.
    pub label_smoothing: f64,
    /// Share of the images that lose their class, so that guidance has something to differ from (diffusion models).
    pub class_dropout: f64,
    /// R-Drop: weight of the KL divergence between two predictions of a batch with different dropout, which
    /// takes twice the time; 0 for none.
    pub r_drop: f64,
    /// Epochs without R-Drop at the beginning, where it gives little and costs as much.
    pub r_drop_after: usize,
    /// Gradient clipping: the largest norm over all parameters; 0 for no limit.
    pub clip_norm: f64,
    /// Decay of the exponential moving average of the weights, which is then validated; 0 for none.
    pub ema_decay: f64,
    /// Of the factors of matrix products; weights, sums and everything else stay in f32.
    pub precision: PrecisionChoice,
    /// Steps between two lines of `metrics.jsonl`.
    pub log_every: usize,
}

impl Training {
    /// Whether the vocabularies are learned from the text, as `[tokenizer]` says.
    pub fn learns_vocabulary(&self) -> bool {
        self.start_from.is_empty() || self.start_vocabulary == StartVocabulary::Learned
    }
}

/// The vocabularies of a model that begins with another one's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartVocabulary {
    /// Those of the other model.
    Given,
    /// Vocabulary transfer: learned from this text, as `[tokenizer]` says. A token that the other model has keeps its
    /// vector, and any other begins with the mean of those that the other model would write it with.
    Learned,
}

/// The precision of the factors of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrecisionChoice {
    /// bf16 where the device has it, f32 elsewhere.
    Auto,
    /// Everywhere.
    F32,
    /// Faster: on CPUs with bf16 products (AVX512-BF16), and mixed precision on GPUs that compute in bf16.
    Bf16,
}

/// What training minimizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// KL divergence to the smoothed target.
    LabelSmoothing,
    /// Plain cross-entropy.
    CrossEntropy,
}

/// `[optimizer]`: which one, and its numbers (§5.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// How gradients become steps.
    pub kind: OptimizerKind,
    /// Decay of the mean of the gradients (`adam`, `adamw`, `muon`).
    pub beta1: f64,
    /// Decay of the mean of their squares (those, and `rmsprop`).
    pub beta2: f64,
    /// Keeps the division from blowing up.
    pub epsilon: f64,
    /// Share of the earlier steps that goes into the next one (`sgd`, `rmsprop`); 0 for none.
    pub momentum: f64,
    /// Share of every weight taken away per step and unit of learning rate (`adamw`, `muon`; not of biases and of the
    /// scales of normalizations), or added to its gradient (`sgd`, `rmsprop`, `adagrad`).
    pub weight_decay: f64,
}

/// Which optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerKind {
    /// Stochastic gradient descent with momentum (Polyak 1964).
    Sgd,
    /// Steps divided by the root of the mean squares of the gradient (Tieleman, Hinton 2012).
    Rmsprop,
    /// Steps divided by the root of the sum of all squares of the gradient (Duchi et al. 2011).
    Adagrad,
    /// Adam (Kingma, Ba 2015).
    Adam,
    /// Adam with decoupled weight decay (Loshchilov, Hutter 2019).
    #[serde(rename = "adamw")]
    AdamW,
    /// For the matrices of the layers, steps that turn without stretching (Jordan et al. 2024); AdamW
    /// for everything else.
    Muon,
}

/// `[schedule]`: the learning rate as a function of the step; see [`crate::optim::schedule`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleSection {
    /// The shape of the curve.
    pub kind: ScheduleKind,
    /// What `warmup` and `total_steps` count.
    pub unit: ScheduleUnit,
    /// Multiplies the curve of `noam`.
    pub factor: f64,
    /// The highest rate of every other kind.
    pub learning_rate: f64,
    /// Steps in which the rate grows from nothing to its highest; 0 for none (not with `noam`).
    pub warmup: usize,
    /// Step at which `cosine` and `trapezoid` have come down to `min_learning_rate`, and `one_cycle` to nearly nothing.
    pub total_steps: usize,
    /// Steps in which `trapezoid` comes down, and after which `step` falls each time.
    pub decay: usize,
    /// What `step` multiplies the rate by each time.
    pub decay_factor: f64,
    /// Steps of the first cycle of `cosine_restarts`.
    pub cycle: usize,
    /// How many times as long as the one before each further cycle is.
    pub cycle_factor: usize,
    /// `cosine`, `cosine_restarts`, `trapezoid`, `step` and `inverse_sqrt` do not fall below this after the warm-up.
    pub min_learning_rate: f64,
}

/// What the schedule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleUnit {
    /// Steps of the optimizer.
    Steps,
    /// Batches, of which `training.accumulate` make a step, as the Annotated Transformer counts.
    Batches,
}

/// The shape of the learning-rate curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// The paper's: `factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)`.
    Noam,
    /// The same shape with its peak given as `learning_rate`.
    InverseSqrt,
    /// Warm-up, then half a cosine down to `min_learning_rate` at `total_steps`.
    Cosine,
    /// Warm-up, then `learning_rate`, and for the last `decay` steps straight down to
    /// `min_learning_rate` at `total_steps`.
    Trapezoid,
    /// Warm-up, then half a cosine down to `min_learning_rate` in `cycle` steps, and again from the top (Loshchilov,
    /// Hutter 2017).
    CosineRestarts,
    /// Warm-up, then `learning_rate`, which falls to `decay_factor` of itself after every `decay` steps.
    Step,
    /// Half a cosine up from a 25th to `learning_rate` in `warmup` steps, and down to nearly nothing at `total_steps`
    /// (Smith, Topin 2018).
    OneCycle,
    /// Warm-up, then always `learning_rate`.
    Constant,
}

/// `[validation]`: how the model is evaluated while it trains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// Epochs between two validations; 0 for never at the end of an epoch.
    pub every_epochs: usize,
    /// Steps between two validations; 0 for never within an epoch.
    pub every_steps: usize,
    /// Translate the validation set and report BLEU, which takes longer than the loss alone.
    pub bleu: bool,
    /// Beam size for these translations; 1 is greedy search.
    pub beam: usize,
    /// Sentences to translate; 0 for all.
    pub bleu_sentences: usize,
    /// Translations to show.
    pub samples: usize,
    /// Early stopping: after so many validations without improvement; 0 for never.
    pub patience: usize,
    /// What the best model is best by.
    pub best_by: BestBy,
}

/// What the best model is best by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BestBy {
    /// Highest BLEU.
    Bleu,
    /// Lowest validation loss.
    Loss,
    /// Highest share of right classes.
    Accuracy,
    /// The same minus `pruning.regularizer` times the share of tokens that are kept.
    PrunedAccuracy,
}

/// `[checkpoints]`: what is kept of a run. There is one at the end of every epoch in any case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Checkpoints {
    /// Steps between two more checkpoints; 0 for none.
    pub every_steps: usize,
    /// Minutes between two more checkpoints; 0 for none.
    pub every_minutes: f64,
    /// Newest checkpoints to keep, beside the best one.
    pub keep_last: usize,
    /// Checkpoint averaging: at the end, the mean of the weights of the last so many epochs; 0 for none.
    pub average_last: usize,
}

impl Data {
    /// The paths of `src` and the other lists: `dir` stands in front of relative ones.
    pub fn paths(&self, files: &[String]) -> Vec<PathBuf> {
        files
            .iter()
            .map(|file| PathBuf::from(&self.dir).join(file))
            .collect()
    }

    /// Every list of files, with its key.
    pub fn lists(&self) -> [(&'static str, &Vec<String>); 15] {
        [
            ("src", &self.src),
            ("tgt", &self.tgt),
            ("held_out", &self.held_out),
            ("val_src", &self.val_src),
            ("val_tgt", &self.val_tgt),
            ("vocab_src", &self.vocab_src),
            ("vocab_tgt", &self.vocab_tgt),
            ("text", &self.text),
            ("val_text", &self.val_text),
            ("examples", &self.examples),
            ("val_examples", &self.val_examples),
            ("images", &self.images),
            ("labels", &self.labels),
            ("val_images", &self.val_images),
            ("val_labels", &self.val_labels),
        ]
    }

    /// Whether there is anything to validate on.
    pub fn has_validation(&self) -> bool {
        match &self.synthetic {
            Some(synthetic) => synthetic.val_lines > 0,
            None => {
                let lists = [
                    &self.val_src,
                    &self.val_text,
                    &self.val_examples,
                    &self.val_images,
                ];
                lists.iter().any(|list| !list.is_empty()) || self.val_share > 0.0
            }
        }
    }
}

impl TokenizerSection {
    /// What `attentive-text` needs to know to train one tokenizer.
    pub fn options(&self) -> TokenizerOptions {
        TokenizerOptions {
            kind: self.kind,
            vocab_size: self.vocab_size,
            min_frequency: self.min_frequency,
            lowercase: self.lowercase,
        }
    }
}

impl PrecisionChoice {
    /// What it says if it does not leave it to the device.
    pub fn explicit(self) -> Option<Precision> {
        match self {
            PrecisionChoice::Auto => None,
            PrecisionChoice::F32 => Some(Precision::F32),
            PrecisionChoice::Bf16 => Some(Precision::Bf16),
        }
    }
}

/// A list of files, or one file without the brackets.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a file name or a list of file names")]
    enum Files {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Files::deserialize(deserializer)? {
        Files::One(file) => vec![file],
        Files::Many(files) => files,
    })
}
