//! Language modelling: running text, GPT, cross-entropy of the next token, perplexity.
//!
//! The tokens of all files stand one behind the other, `</s>` after each file. An epoch cuts them into windows as long
//! as the model's context, at another place each time, and shuffles the windows. Neighbors: [`crate::data::text`]
//! reads the files, `attentive_nn::models::gpt` computes, [`crate::trainer`] loops.

use std::{path::Path, sync::Arc};

use attentive_model::{
    config::{GptConfig, ModelConfig as _},
    directory::{AnyModelDir, ModelDir, Tokenizers},
    tensors::TensorSpec,
};
use attentive_nn::{
    models::gpt::{Gpt, generation::Generator},
    parameters,
    pass::Pass,
};
use attentive_text::Tokenizer;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{Epoch, Scores, Task};
use crate::{
    Recipe, Result, TrainError,
    data::{
        fingerprint::CorpusFingerprint,
        random::SplitMix64,
        text::{RunningText, token_stream},
    },
    distributed::Communicator,
    evaluation::share,
    events::{Event, Observer, Sample},
};

/// Predicting the next token of a text.
#[derive(Debug)]
pub struct LanguageModel {
    recipe: Recipe,
    tokenizer: Tokenizer,
    config: GptConfig,
    train: Vec<u32>,
    val: Vec<u32>,
}

/// Some texts of one length.
#[derive(Debug, Clone)]
pub struct Windows {
    /// What the model reads, row by row.
    pub read: Vec<u32>,
    /// The token behind each of them.
    pub predicted: Vec<u32>,
    /// Tokens of a row.
    pub len: usize,
}

impl Task for LanguageModel {
    type Model = Gpt;
    type Data = RunningText;
    /// Where each window begins.
    type Examples = Arc<Vec<usize>>;
    type Batch = Windows;

    fn read(recipe: &Recipe) -> Result<RunningText> {
        RunningText::read(recipe)
    }

    fn fingerprint(text: &RunningText) -> &CorpusFingerprint {
        &text.fingerprint
    }

    fn begin(
        recipe: &Recipe,
        text: RunningText,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Gpt)> {
        let folder = &recipe.training.start_from;
        if folder.is_empty() {
            observer.event(&Event::Preparing("learning the vocabulary"));
            let mut texts = text.train.iter().map(String::as_str);
            let tokenizer = Tokenizer::train(&recipe.tokenizer.options(), &mut texts)?;
            let task = Self::new(recipe, text, tokenizer, observer)?;
            let model = Gpt::new(&task.config, recipe.training.seed, device);
            return Ok((task, model));
        }
        observer.event(&Event::Preparing("reading the model to start from"));
        let given = AnyModelDir::open(folder)?;
        let config: &GptConfig = given.config_of()?;
        let task = Self::new(recipe, text, given.tokenizer()?.clone(), observer)?;
        super::refuse_other_sizes(&given.path, config, &task.config, &[])?;
        let model = Gpt::load(&task.config, &ModelDir::weights_path(&given.path), device)?;
        Ok((task, model))
    }

    fn resume(
        recipe: &Recipe,
        text: RunningText,
        checkpoint: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let tokenizer = Tokenizers::load(checkpoint)?.tgt;
        Self::new(recipe, text, tokenizer, observer)
    }

    fn description(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("training", format!("{} tokens", self.train.len()))];
        if self.validates() {
            lines.push(("validation", format!("{} tokens", self.val.len())));
        }
        let (size, kind) = (self.config.vocab, self.tokenizer.kind());
        lines.push(("vocabulary", format!("{size} tokens ({kind})")));
        lines
    }

    fn d_model(&self) -> usize {
        self.config.d_model
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        self.config.tensors()
    }

    fn epoch(&self, epoch: u64) -> Result<Epoch<Self::Examples>> {
        let training = &self.recipe.training;
        let mut random = SplitMix64::new(&[training.seed, epoch]);
        let context = self.config.context;
        // The last window needs a token behind it.
        let spare = self.train.len() - 1 - context;
        let shift = random.below(spare.min(context - 1) + 1);
        let mut starts: Vec<usize> = (shift..=spare).step_by(context).collect();
        random.shuffle(&mut starts);
        let indices: Vec<usize> = (0..starts.len()).collect();
        let batches = indices.chunks(training.batch_size).map(<[usize]>::to_vec);
        Ok(Epoch {
            examples: Arc::new(starts),
            plan: Box::new(batches.collect::<Vec<_>>()),
            padding: 0.0,
        })
    }

    fn batch(&self, starts: &Self::Examples, indices: &[usize]) -> Result<Windows> {
        let starts = indices.iter().map(|index| starts[*index]);
        Ok(Windows::collect(&self.train, starts, self.config.context))
    }

    fn targets(batch: &Windows) -> usize {
        batch.predicted.len()
    }

    fn loss(&self, model: &Gpt, batch: &Windows, _epoch: u64, pass: &mut Pass) -> Tensor<1> {
        batch.cross_entropy(model, pass)
    }

    fn validates(&self) -> bool {
        self.val.len() > 1
    }

    fn validate(&self, model: &Gpt, processes: &dyn Communicator) -> Result<Scores> {
        let loss = cross_entropy_per_token(model, &self.val, processes);
        Ok(Scores {
            loss,
            metrics: vec![("perplexity", loss.exp())],
            score: -loss,
            samples: self.samples(model),
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<Gpt> {
        let file = ModelDir::weights_path(dir);
        Ok(Gpt::load(&self.config, &file, device)?)
    }

    fn save_model(&self, dir: &Path, model: &Gpt) -> Result<()> {
        let tensors = parameters::export(model);
        let list = super::listed(&tensors);
        let tokenizers = Tokenizers::shared(self.tokenizer.clone());
        Ok(ModelDir::save(dir, &self.config, &tokenizers, list)?)
    }
}

/// Tokens of a validation sample that are given, and that are written.
const SAMPLE: usize = 32;

impl LanguageModel {
    fn new(
        recipe: &Recipe,
        text: RunningText,
        tokenizer: Tokenizer,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        observer.event(&Event::Preparing("encoding the text"));
        let size = tokenizer.vocab_size();
        let config: GptConfig = super::model_config(recipe, size, size)?;
        let train = token_stream(&tokenizer, &text.train);
        if train.len() <= config.context {
            return Err(TrainError::ShortText {
                tokens: train.len(),
                context: config.context,
            });
        }
        Ok(Self {
            recipe: recipe.clone(),
            val: token_stream(&tokenizer, &text.val),
            tokenizer,
            config,
            train,
        })
    }

    /// The beginnings of some windows of the validation text, and how the model goes on: by its most probable tokens.
    fn samples(&self, model: &Gpt) -> Vec<Sample> {
        let windows = self.val.chunks_exact(2 * SAMPLE);
        let sample = |window: &[u32]| {
            let (given, reference) = window.split_at(SAMPLE);
            let written: Vec<u32> =
                Generator::new(model, given.to_vec(), SAMPLE, None, 0).collect();
            Sample {
                source: self.on_one_line(given),
                reference: self.on_one_line(reference),
                output: self.on_one_line(&written),
            }
        };
        windows
            .take(self.recipe.validation.samples)
            .map(sample)
            .collect()
    }

    fn on_one_line(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens).replace('\n', "⏎")
    }
}

impl Windows {
    /// The windows of a text that begin at `starts`, each of `len` tokens with one behind it.
    fn collect(tokens: &[u32], starts: impl Iterator<Item = usize>, len: usize) -> Self {
        let (mut read, mut predicted) = (Vec::new(), Vec::new());
        for start in starts {
            read.extend(&tokens[start..start + len]);
            predicted.extend(&tokens[start + 1..start + len + 1]);
        }
        Self {
            read,
            predicted,
            len,
        }
    }

    /// Summed over all tokens. `[1]`
    fn cross_entropy(&self, model: &Gpt, pass: &mut Pass) -> Tensor<1> {
        let ids: Vec<i64> = self.read.iter().map(|id| i64::from(*id)).collect();
        let rows = ids.len() / self.len;
        let ids = TensorData::new(ids, [rows, self.len]);
        let ids = Tensor::<2, Int>::from_data(ids, &model.device());
        let output = model.forward(ids, None, pass);
        model.loss(output.hidden, &self.predicted, pass).objective
    }
}

/// Tokens of a batch when nothing is kept for a backward pass.
const BATCH_TOKENS: usize = 4096;

/// The mean cross-entropy of every token of a text but the first, each seen after at most a context of others.
pub fn cross_entropy_per_token(model: &Gpt, tokens: &[u32], processes: &dyn Communicator) -> f64 {
    let context = model.context();
    let predicted = tokens.len() - 1;
    let whole: Vec<usize> = (0..predicted / context).map(|i| i * context).collect();
    let mut batches: Vec<Windows> = whole
        .chunks((BATCH_TOKENS / context).max(1))
        .map(|starts| Windows::collect(tokens, starts.iter().copied(), context))
        .collect();
    let rest = predicted % context;
    if rest > 0 {
        let last = Windows::collect(tokens, std::iter::once(predicted - rest), rest);
        batches.push(last);
    }
    let sum = |batch: &Windows| {
        let loss = batch.cross_entropy(model, &mut Pass::evaluation());
        // Bits, because JSON has no word for what is not a number.
        loss.into_scalar::<f32>().to_bits()
    };
    let sums = share(&batches, processes, sum).into_iter();
    sums.map(|bits| f64::from(f32::from_bits(bits)))
        .sum::<f64>()
        / predicted as f64
}
