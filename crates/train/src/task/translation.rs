//! Translation: sentence pairs, an encoder-decoder (the Transformer, or a recurrent one), label-smoothed loss, BLEU.
//!
//! Neighbors: [`crate::data`] makes the batches, `attentive_nn` computes, [`crate::evaluation`] scores, and
//! [`crate::trainer`] loops.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use attentive_model::{
    config::ModelConfig as _,
    directory::{AnyModelDir, ModelDir, Tokenizers},
    tensors::TensorSpec,
    weights::Weights,
};
use attentive_nn::{
    models::{EncoderDecoder, transformer::Transformer},
    ops::{SmoothedLoss, kl_divergence, smoothed_loss},
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{Epoch, Scores, Task, growth, vocabulary_transfer::VocabularyTransfer};
use crate::{
    Recipe, Result,
    data::{
        batches::{Batch, Budget, padding_share, plan},
        corpus::{Corpus, CorpusText, Pair},
        fingerprint::CorpusFingerprint,
        prepared::stream::{EpochOptions, StreamedEpoch},
    },
    distributed::Communicator,
    evaluation,
    events::{Event, Observer},
    recipe::{BestBy, LossKind, StartVocabulary, Training},
};

/// Translation from one language to another.
#[derive(Debug)]
pub struct Translation<N: EncoderDecoder = Transformer> {
    recipe: Recipe,
    corpus: Corpus,
    tokenizers: Tokenizers,
    config: N::Config,
}

/// The sentence pairs of an epoch.
#[derive(Debug)]
pub enum Examples {
    /// In memory.
    Pairs(Arc<Vec<Pair>>),
    /// In the files of a prepared corpus.
    Streamed(Arc<StreamedEpoch>),
}

impl<N: EncoderDecoder> Task for Translation<N> {
    type Model = N;
    type Data = CorpusText;
    type Examples = Examples;
    type Batch = Batch;

    fn read(recipe: &Recipe) -> Result<CorpusText> {
        CorpusText::read(recipe)
    }

    fn fingerprint(text: &CorpusText) -> &CorpusFingerprint {
        &text.fingerprint
    }

    fn begin(
        recipe: &Recipe,
        text: CorpusText,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, N)> {
        let (tokenizers, config, model) = first_model::<N>(recipe, &text, device, observer)?;
        let task = Self::new(recipe, text, tokenizers, config, observer)?;
        Ok((task, model))
    }

    fn resume(
        recipe: &Recipe,
        text: CorpusText,
        checkpoint: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let tokenizers = Tokenizers::load(checkpoint)?;
        let config = model_config::<N>(recipe, &tokenizers)?;
        Self::new(recipe, text, tokenizers, config, observer)
    }

    fn description(&self) -> Vec<(&'static str, String)> {
        let Self { corpus, config, .. } = self;
        let mut lines = vec![("training", corpus.train_report.to_string())];
        if self.validates() {
            lines.push(("validation", corpus.val_report.to_string()));
        }
        let (src, tgt) = config.vocabularies().unwrap_or_default();
        lines.push((
            "vocabulary",
            format!("{src} source and {tgt} target tokens"),
        ));
        lines
    }

    fn d_model(&self) -> usize {
        self.config.width()
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        self.config.tensors()
    }

    fn epoch(&self, epoch: u64) -> Result<Epoch<Examples>> {
        let training = &self.recipe.training;
        let (budget, seed) = (Budget::of(training), training.seed);
        if let Some(prepared) = &self.corpus.prepared {
            let options = EpochOptions {
                budget,
                weights: self.recipe.data.weights.clone(),
                seed,
                epoch,
            };
            let streamed = Arc::new(StreamedEpoch::new(prepared.clone(), options)?);
            return Ok(Epoch {
                padding: streamed.padding()?,
                examples: Examples::Streamed(streamed.clone()),
                plan: Box::new(streamed),
            });
        }
        let pairs = self.corpus.of_epoch(&self.recipe, &self.tokenizers, epoch);
        let plan = plan(&pairs, budget, seed, epoch as usize);
        Ok(Epoch {
            padding: padding_share(&pairs, &plan),
            examples: Examples::Pairs(pairs),
            plan: Box::new(plan),
        })
    }

    fn batch(&self, examples: &Examples, indices: &[usize]) -> Result<Batch> {
        Ok(match examples {
            Examples::Pairs(pairs) => Batch::collect(pairs, indices),
            Examples::Streamed(epoch) => epoch.collect(indices)?,
        })
    }

    fn targets(batch: &Batch) -> usize {
        batch.tgt_tokens()
    }

    fn loss(&self, model: &N, batch: &Batch, epoch: u64, pass: &mut Pass) -> Tensor<1> {
        let training = &self.recipe.training;
        let smoothing = smoothing(training);
        let loss = match r_drop(training, epoch) {
            0.0 => batch_loss(model, batch, smoothing, pass),
            weight => r_drop_loss(model, batch, smoothing, weight, pass),
        };
        loss.objective
    }

    fn validates(&self) -> bool {
        !self.corpus.val.is_empty()
    }

    fn validate(&self, model: &N, processes: &dyn Communicator) -> Result<Scores> {
        let Self { recipe, corpus, .. } = self;
        let (loss, entropy, tokens) =
            evaluation::sums(model, &corpus.val, smoothing(&recipe.training), processes);
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
            &self.config,
            &self.tokenizers,
            &corpus.val_src[..lines],
            &corpus.val_tgt[..lines],
            validation,
            processes,
        )?;
        let loss = loss / tokens;
        let mut metrics = vec![("perplexity", (entropy / tokens).exp())];
        if validation.bleu {
            metrics.push(("bleu", bleu));
        }
        let by_bleu = validation.bleu && validation.best_by == BestBy::Bleu;
        Ok(Scores {
            loss,
            metrics,
            score: if by_bleu { bleu } else { -loss },
            samples,
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<N> {
        let file = ModelDir::weights_path(dir);
        Ok(N::load(&self.config, &file, device)?)
    }

    fn save_model(&self, dir: &Path, model: &N) -> Result<()> {
        let tensors = parameters::export(model);
        let list = super::listed(&tensors);
        Ok(ModelDir::save(dir, &self.config, &self.tokenizers, list)?)
    }
}

impl<N: EncoderDecoder> Translation<N> {
    fn new(
        recipe: &Recipe,
        text: CorpusText,
        tokenizers: Tokenizers,
        config: N::Config,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        observer.event(&Event::Preparing("encoding the corpus"));
        Ok(Self {
            recipe: recipe.clone(),
            corpus: text.encode(recipe, &tokenizers)?,
            tokenizers,
            config,
        })
    }
}

/// What a new run begins with: random weights or those of another model, and vocabularies of its own text or of that model.
fn first_model<N: EncoderDecoder>(
    recipe: &Recipe,
    text: &CorpusText,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<(Tokenizers, N::Config, N)> {
    let folder = &recipe.training.start_from;
    if folder.is_empty() {
        observer.event(&Event::Preparing("learning the vocabulary"));
        let tokenizers = text.train_tokenizers(recipe)?;
        let config = model_config::<N>(recipe, &tokenizers)?;
        let model = N::create(&config, recipe.training.seed, device);
        return Ok((tokenizers, config, model));
    }
    observer.event(&Event::Preparing("reading the model to start from"));
    let given = AnyModelDir::open(folder)?;
    let given_config = given.config_of::<N::Config>()?;
    let given_tokenizers = match &given.tokenizers {
        Some(tokenizers) => tokenizers.clone(),
        None => Tokenizers::load(&given.path)?,
    };
    let weights = Weights::open(ModelDir::weights_path(&given.path))?;
    // The sizes of vocabularies that are yet to be learned are free, and all others are compared before it takes time.
    let asked: N::Config = super::any_config(recipe)?;
    let (src, tgt) = (
        given_tokenizers.src.vocab_size(),
        given_tokenizers.tgt.vocab_size(),
    );
    let asked = asked.with_vocabularies(src, tgt);
    let grown = growth::grown_keys(given_config, &asked);
    super::refuse_other_sizes(&given.path, given_config, &asked, &grown)?;
    let tokenizers = match recipe.training.start_vocabulary {
        StartVocabulary::Given => given_tokenizers.clone(),
        StartVocabulary::Learned => {
            observer.event(&Event::Preparing("learning the vocabulary"));
            text.train_tokenizers(recipe)?
        }
    };
    let config = model_config::<N>(recipe, &tokenizers)?;
    let mut values = BTreeMap::new();
    for tensor in given_config.tensors() {
        values.insert(tensor.name.clone(), weights.unpacked(&tensor)?);
    }
    if recipe.training.start_vocabulary == StartVocabulary::Learned {
        let transfer = VocabularyTransfer::new(&given_tokenizers, &tokenizers);
        transfer.apply(&given_config.tensors(), &mut values);
    }
    let random = N::create(&config, recipe.training.seed, device);
    let model = parameters::replace(random, |name, old| match values.remove(name) {
        Some(values) => {
            let count = values.len();
            Tensor::from_data(TensorData::new(values, [count]), &old.device())
        }
        None if growth::ends_a_sub_layer(name) => old.zeros_like(),
        None => old,
    });
    Ok((tokenizers, config, model))
}

fn model_config<N: EncoderDecoder>(recipe: &Recipe, tokenizers: &Tokenizers) -> Result<N::Config> {
    super::model_config(
        recipe,
        tokenizers.src.vocab_size(),
        tokenizers.tgt.vocab_size(),
    )
}

/// The label smoothing that a recipe asks for; plain cross-entropy has none.
pub fn smoothing(training: &Training) -> f64 {
    match training.loss {
        LossKind::LabelSmoothing => training.label_smoothing,
        LossKind::CrossEntropy => 0.0,
    }
}

/// The weight of R-Drop in an epoch, counted from 0; 0 for none.
pub fn r_drop(training: &Training, epoch: u64) -> f64 {
    if epoch < training.r_drop_after as u64 {
        0.0
    } else {
        training.r_drop
    }
}

/// The loss of R-Drop (Liang et al. 2021): every batch is computed twice with different dropout. The mean of
/// both losses and, `weight` times, a quarter of the symmetric KL divergence between both predictions; that
/// is half of the paper's loss, so that it is still one of `tgt_tokens` tokens.
pub fn r_drop_loss<N: EncoderDecoder>(
    model: &N,
    batch: &Batch,
    smoothing: f64,
    weight: f64,
    pass: &mut Pass,
) -> SmoothedLoss {
    let (hidden, predicted) = hidden_of(model, &batch.twice(), pass);
    let logits = model.logits(hidden, pass).flatten::<2>(0, 1);
    let divergence = kl_divergence(logits.clone(), &predicted[..predicted.len() / 2]);
    let loss = smoothed_loss(logits, &predicted, smoothing);
    SmoothedLoss {
        objective: loss.objective.mul_scalar(0.5) + divergence.mul_scalar(0.25 * weight),
        cross_entropy: loss.cross_entropy.mul_scalar(0.5),
    }
}

/// Sums over the batch's target tokens: feeds `tgt[:-1]`, predicts `tgt[1:]`.
pub fn batch_loss<N: EncoderDecoder>(
    model: &N,
    batch: &Batch,
    smoothing: f64,
    pass: &mut Pass,
) -> SmoothedLoss {
    let (hidden, predicted) = hidden_of(model, batch, pass);
    model.loss(hidden, &predicted, smoothing, pass)
}

/// What the decoder makes of a batch, `[rows, len, d_model]`, and the token that each position should predict.
fn hidden_of<N: EncoderDecoder>(
    model: &N,
    batch: &Batch,
    pass: &mut Pass,
) -> (Tensor<3>, Vec<u32>) {
    let device = model.device();
    let (rows, len) = (batch.rows(), batch.tgt_len - 1);
    let src = ids(&batch.src, [rows, batch.src_len], &device);
    let (fed, predicted): (Vec<&[u32]>, Vec<&[u32]>) = batch
        .tgt
        .chunks(batch.tgt_len)
        .map(|row| (&row[..len], &row[1..]))
        .unzip();
    let tgt = ids(&fed.concat(), [rows, len], &device);
    let hidden = model.teacher_forcing(src, tgt, pass);
    (hidden, predicted.concat())
}

fn ids(values: &[u32], shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = values.iter().map(|id| i64::from(*id)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
