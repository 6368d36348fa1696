//! The sections of a recipe, one struct each: what can be set, what it means, what it is by default.
//!
//! These are plain values; [`super::defaults`] holds their defaults. Reading them with line numbers is [`super::parse`], whether they make
//! sense together is [`super::check`]; `recipes/*.toml` show them in use.

use std::path::PathBuf;

use attentive_model::config::{
    Activation, NormPlacement, PositionKind, Preset, TransformerConfig, Tying,
};
use attentive_nn::ops::Precision;
use attentive_text::tokenizer::{TokenizerKind, TokenizerOptions};
use serde::{Deserialize, Deserializer, Serialize};

/// `[data]`: the sentence pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Folder in front of every relative path below.
    pub dir: String,
    /// Source sides for training, one sentence a line; file `i` pairs with file `i` of `tgt`.
    #[serde(deserialize_with = "one_or_many")]
    pub src: Vec<String>,
    /// Target sides for training.
    #[serde(deserialize_with = "one_or_many")]
    pub tgt: Vec<String>,
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
    /// Subwords (`unigram`, `bpe`), words (`word`) or tokens already separated by tabs (`tabs`).
    pub kind: TokenizerKind,
    /// Tokens to learn, the four special ones included; 0 with `word` and `tabs` means all.
    pub vocab_size: usize,
    /// Words seen fewer times become `<unk>` (`word`, `tabs`).
    pub min_frequency: usize,
    /// Lower-case the text first.
    pub lowercase: bool,
    /// One vocabulary for both sides, or one each.
    pub shared: bool,
}

/// `[model]`: a preset, and then every size that is to differ from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Where the values that a recipe does not mention come from.
    pub preset: Preset,
    /// Width of every layer's input and output.
    pub d_model: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of key and value heads; as many as `heads` unless a recipe says otherwise.
    pub kv_heads: usize,
    /// Number of encoder layers.
    pub encoder_layers: usize,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// Layer normalisation before (`pre`) or after (`post`, the paper) each sub-layer.
    pub norm: NormPlacement,
    /// `sinusoidal` or `learned` positions.
    pub positions: PositionKind,
    /// Longest sequence with learned positions.
    pub max_positions: usize,
    /// Which of the two embeddings and the output projection are one matrix.
    pub tying: Tying,
    /// Added to the variance in every layer normalisation.
    pub norm_epsilon: f64,
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
}

/// `[training]`: how long, in what portions, towards which loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Decides the first weights, the order of the batches and the dropout.
    pub seed: u64,
    /// Folder of a trained model whose weights and vocabularies to begin with, in place of random weights
    /// and of `[tokenizer]`; empty for none.
    pub start_from: String,
    /// Times the corpus is gone through.
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
    /// Batches that make one step; equal to one batch as large as all of them.
    pub accumulate: usize,
    /// What is minimised.
    pub loss: LossKind,
    /// Probability that the smoothed target gives to all wrong words together.
    pub label_smoothing: f64,
    /// Weight of the agreement between two looks at a batch with different dropout (R-Drop), which
    /// takes twice the time; 0 for one look.
    pub agreement: f64,
    /// Epochs before the agreement counts: at first there is little to agree on, and one look is faster.
    pub agreement_after: usize,
    /// Longest gradient, as a norm over all parameters; 0 for no limit.
    pub clip_norm: f64,
    /// Decay of the moving average of the weights, which is then validated; 0 for none.
    pub ema_decay: f64,
    /// Of the factors of matrix products; weights, sums and everything else stay in f32.
    pub precision: Precision,
    /// Steps between two lines of `metrics.jsonl`.
    pub log_every: usize,
}

/// What training minimises (SPEC section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// KL divergence to the smoothed target.
    LabelSmoothing,
    /// Plain cross-entropy.
    CrossEntropy,
}

/// `[optimizer]`: Adam and its numbers (§5.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// Adam, or AdamW if the weights are to decay.
    pub kind: OptimizerKind,
    /// Decay of the mean of the gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the division from blowing up.
    pub epsilon: f64,
    /// Share of every weight taken away per step and unit of learning rate (`adamw`).
    pub weight_decay: f64,
}

/// Which optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerKind {
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
    /// Step at which `cosine` and `trapezoid` have come down to `min_learning_rate`.
    pub total_steps: usize,
    /// Steps in which `trapezoid` comes down.
    pub decay: usize,
    /// `cosine`, `trapezoid` and `inverse_sqrt` do not fall below this after the warm-up.
    pub min_learning_rate: f64,
}

/// What the schedule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleUnit {
    /// Steps of the optimiser.
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
    /// Warm-up, then always `learning_rate`.
    Constant,
}

/// `[validation]`: how the model is judged while it trains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// Epochs between two validations; 0 for never at the end of an epoch.
    pub every_epochs: usize,
    /// Steps between two validations; 0 for never within an epoch.
    pub every_steps: usize,
    /// Translate the validation set and report BLEU, which takes longer than the loss alone.
    pub bleu: bool,
    /// Beam for these translations; 1 is greedy.
    pub beam: usize,
    /// Sentences to translate; 0 for all.
    pub bleu_sentences: usize,
    /// Translations to show.
    pub samples: usize,
    /// Stop after so many validations without improvement; 0 for never.
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
    /// Average the weights of the last so many epochs' checkpoints at the end; 0 for no average.
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

    /// Whether there is anything to validate on.
    pub fn has_validation(&self) -> bool {
        match &self.synthetic {
            Some(synthetic) => synthetic.val_lines > 0,
            None => !self.val_src.is_empty(),
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

impl Model {
    /// The preset with nothing changed.
    pub fn from_preset(preset: Preset) -> Self {
        let config = preset.config(0, 0);
        Model {
            preset,
            d_model: config.d_model,
            d_ff: config.d_ff,
            heads: config.heads,
            kv_heads: config.kv_heads,
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            dropout: config.dropout,
            norm: config.norm,
            positions: config.positions,
            max_positions: config.max_positions,
            tying: config.tying,
            norm_epsilon: config.norm_epsilon,
        }
    }

    /// The architecture for vocabularies of these sizes.
    pub fn config(&self, src_vocab: usize, tgt_vocab: usize) -> TransformerConfig {
        TransformerConfig {
            src_vocab,
            tgt_vocab,
            d_model: self.d_model,
            d_ff: self.d_ff,
            heads: self.heads,
            kv_heads: self.kv_heads,
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
            dropout: self.dropout,
            norm: self.norm,
            activation: Activation::Relu,
            positions: self.positions,
            max_positions: self.max_positions,
            tying: self.tying,
            norm_epsilon: self.norm_epsilon,
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
