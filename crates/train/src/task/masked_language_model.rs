//! Pre-training of BERT (Devlin et al. 2019, §3.1): hidden tokens are predicted from both sides, and whether the second
//! sentence follows the first.
//!
//! Neighbors: [`crate::data::documents`] makes the examples, `attentive_nn::models::bert` computes, [`super::classification`]
//! goes on from what this learns.

use std::{path::Path, sync::Arc};

use attentive_model::{
    config::{BertHead, ModelConfig as _},
    tensors::TensorSpec,
};
use attentive_nn::{
    models::bert::{
        Bert,
        text::{Framed, Texts},
        vectors_at,
    },
    ops::{cross_entropy, smoothed_loss},
    pass::Pass,
};
use attentive_text::{Tokenizer, tokenizer::MASK};
use burn::tensor::{Device, Tensor};

use super::{Epoch, Scores, Task, bert::Architecture};
use crate::{
    Recipe, Result, TrainError,
    data::{
        batches::{Budget, Columns, padding_share_of, plan_of},
        documents::{Documents, Masked, Masking, Second},
        fingerprint::CorpusFingerprint,
        random::SplitMix64,
        text::RunningText,
    },
    distributed::Communicator,
    evaluation::share,
    events::{Event, Observer, Sample},
};

/// Predicting hidden tokens and next sentences.
#[derive(Debug)]
pub struct MaskedLanguageModel {
    recipe: Recipe,
    architecture: Architecture,
    masking: Masking,
    train: Documents,
    /// Examples that are the same in every validation.
    val: Vec<Masked>,
}

/// Some examples, padded.
#[derive(Debug, Clone)]
pub struct MaskedBatch {
    texts: Texts,
    /// Counted row by row.
    places: Vec<usize>,
    /// What stood at these places.
    tokens: Vec<u32>,
    /// The class of each pair, where there are pairs.
    second: Vec<u32>,
}

/// How good a masked language model is on some text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaskedScores {
    /// Cross-entropy per hidden token.
    pub cross_entropy: f64,
    /// Share of hidden tokens that are the most probable ones.
    pub accuracy: f64,
    /// The same for whether the second sentence follows: cross-entropy and share. Nothing without that head.
    pub next_sentence: Option<(f64, f64)>,
    /// Hidden tokens.
    pub tokens: usize,
}

impl Task for MaskedLanguageModel {
    type Model = Bert;
    type Data = RunningText;
    type Examples = Arc<Vec<Masked>>;
    type Batch = MaskedBatch;

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
    ) -> Result<(Self, Bert)> {
        let mut lines = text.train.iter().flat_map(|text| text.lines());
        let labels = Vec::new();
        let begun = Architecture::begin(recipe, &mut lines, labels, device, observer)?;
        let (architecture, model) = begun;
        Ok((Self::new(recipe, &text, architecture, observer)?, model))
    }

    fn resume(
        recipe: &Recipe,
        text: RunningText,
        checkpoint: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let architecture = Architecture::resume(recipe, checkpoint)?;
        Self::new(recipe, &text, architecture, observer)
    }

    fn description(&self) -> Vec<(&'static str, String)> {
        let [documents, sentences, tokens] = self.train.count();
        let training = format!("{documents} documents, {sentences} sentences, {tokens} tokens");
        let mut lines = vec![("training", training)];
        if self.validates() {
            lines.push(("validation", format!("{} examples", self.val.len())));
        }
        let size = self.architecture.config.vocab;
        lines.push(("vocabulary", format!("{size} tokens (wordpiece)")));
        lines
    }

    fn d_model(&self) -> usize {
        self.architecture.config.d_model
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        self.architecture.config.tensors()
    }

    fn epoch(&self, epoch: u64) -> Result<Epoch<Self::Examples>> {
        let training = &self.recipe.training;
        let examples = self.train.examples(&self.masking, training.seed, epoch);
        let columns: Vec<Columns> = examples
            .iter()
            .map(|it| Columns::of_text(&it.text))
            .collect();
        // Another generator than the one that made the examples.
        let mut random = SplitMix64::new(&[training.seed, epoch, 1]);
        let plan = plan_of(
            &columns,
            Budget::Sentences(training.batch_size),
            &mut random,
        );
        Ok(Epoch {
            padding: padding_share_of(&columns, &plan),
            examples: Arc::new(examples),
            plan: Box::new(plan),
        })
    }

    fn batch(&self, examples: &Self::Examples, indices: &[usize]) -> Result<MaskedBatch> {
        let examples: Vec<&Masked> = indices.iter().map(|index| &examples[*index]).collect();
        Ok(MaskedBatch::collect(&examples))
    }

    fn targets(batch: &MaskedBatch) -> usize {
        batch.tokens.len()
    }

    /// Both losses are means, as in BERT: that of the next sentence is multiplied by the number of hidden tokens, by which
    /// the trainer divides.
    fn loss(&self, model: &Bert, batch: &MaskedBatch, _epoch: u64, pass: &mut Pass) -> Tensor<1> {
        let [tokens, segments] = batch.texts.tensors(model);
        let hidden = model.forward(tokens, segments, pass).hidden;
        let (places, targets) = (&batch.places, &batch.tokens);
        let masked = model.masked_loss(hidden.clone(), places, targets, pass);
        let masked = masked.expect("the recipe's head predicts hidden tokens");
        let Some(logits) = model.next_sentence_logits(hidden, pass) else {
            return masked.objective;
        };
        let next = cross_entropy(logits, &batch.second, 0.0);
        let weight = targets.len() as f64 / batch.second.len() as f64;
        masked.objective + next * weight
    }

    fn validates(&self) -> bool {
        !self.val.is_empty()
    }

    fn validate(&self, model: &Bert, processes: &dyn Communicator) -> Result<Scores> {
        let scores = evaluate(model, &self.val, self.recipe.training.batch_size, processes);
        let mut loss = scores.cross_entropy;
        let mut metrics = vec![
            ("perplexity", loss.exp()),
            ("masked_accuracy", scores.accuracy),
        ];
        if let Some((entropy, share)) = scores.next_sentence {
            loss += entropy;
            metrics.push(("next_sentence_accuracy", share));
        }
        Ok(Scores {
            loss,
            metrics,
            score: -loss,
            samples: self.samples(model),
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<Bert> {
        self.architecture.load_model(dir, device)
    }

    fn save_model(&self, dir: &Path, model: &Bert) -> Result<()> {
        self.architecture.save_model(dir, model)
    }
}

/// Decides the hidden tokens of validation, whatever the seed of training.
const VALIDATION_SEED: u64 = 0;

impl MaskedLanguageModel {
    fn new(
        recipe: &Recipe,
        text: &RunningText,
        architecture: Architecture,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        observer.event(&Event::Preparing("encoding the text"));
        let Architecture { tokenizer, config } = &architecture;
        let masking = masking(tokenizer, config.max_positions, config.head)?;
        let train = Documents::encode(tokenizer, &text.train);
        if train.is_empty() {
            return Err(TrainError::NoSentences);
        }
        let val = Documents::encode(tokenizer, &text.val);
        Ok(Self {
            recipe: recipe.clone(),
            val: val.examples(&masking, VALIDATION_SEED, 0),
            train,
            masking,
            architecture,
        })
    }

    /// Some examples, what was hidden in them, and what the model takes it for.
    fn samples(&self, model: &Bert) -> Vec<Sample> {
        let tokenizer = &self.architecture.tokenizer;
        let sample = |example: &Masked| {
            let scored = MaskedBatch::collect(&[example]).score(model);
            let words = |tokens: &mut dyn Iterator<Item = u32>| -> String {
                let words: Vec<String> = tokens.map(|id| tokenizer.label(id)).collect();
                words.join(" ")
            };
            Sample {
                source: tokenizer.decode(&example.text.tokens),
                reference: words(&mut example.hidden.iter().map(|(_, token)| *token)),
                output: words(&mut scored.found.into_iter()),
            }
        };
        let samples = self.recipe.validation.samples;
        self.val.iter().take(samples).map(sample).collect()
    }
}

/// How examples for a model are made.
pub fn masking(tokenizer: &Tokenizer, longest: usize, head: BertHead) -> Result<Masking> {
    let mask = tokenizer.id(MASK).ok_or(TrainError::NoMask)?;
    Ok(Masking {
        longest,
        mask,
        vocab: tokenizer.vocab_size(),
        pairs: head == BertHead::Pretraining,
    })
}

/// The examples of some documents, as validation has them.
pub fn examples(documents: &Documents, masking: &Masking) -> Vec<Masked> {
    documents.examples(masking, VALIDATION_SEED, 0)
}

/// How well hidden tokens and next sentences are predicted. The processes share the batches.
pub fn evaluate(
    model: &Bert,
    examples: &[Masked],
    batch_size: usize,
    processes: &dyn Communicator,
) -> MaskedScores {
    let batches: Vec<&[Masked]> = examples.chunks(batch_size.max(1)).collect();
    let of_batch = |examples: &&[Masked]| {
        let examples: Vec<&Masked> = examples.iter().collect();
        let batch = MaskedBatch::collect(&examples);
        let scored = batch.score(model);
        let right = batch.tokens.iter().zip(&scored.found);
        let right = right.filter(|(a, b)| a == b).count();
        // Bits, because JSON has no word for what is not a number.
        let bits = [scored.masked, scored.next].map(f32::to_bits);
        (
            bits,
            [
                right,
                batch.tokens.len(),
                scored.next_right,
                batch.second.len(),
            ],
        )
    };
    let (mut entropies, mut counts) = ([0.0; 2], [0usize; 4]);
    for (bits, of_counts) in share(&batches, processes, of_batch) {
        for (sum, bits) in entropies.iter_mut().zip(bits) {
            *sum += f64::from(f32::from_bits(bits));
        }
        for (sum, count) in counts.iter_mut().zip(of_counts) {
            *sum += count;
        }
    }
    let [right, tokens, next_right, pairs] = counts;
    let share = |sum: f64, count: usize| sum / count.max(1) as f64;
    MaskedScores {
        cross_entropy: share(entropies[0], tokens),
        accuracy: share(right as f64, tokens),
        next_sentence: (pairs > 0)
            .then(|| (share(entropies[1], pairs), share(next_right as f64, pairs))),
        tokens,
    }
}

/// Sums over a batch.
struct Scored {
    masked: f32,
    next: f32,
    next_right: usize,
    /// The most probable token at each place.
    found: Vec<u32>,
}

impl MaskedBatch {
    fn collect(examples: &[&Masked]) -> Self {
        let texts = Texts::collect(examples.iter().map(|example| &example.text));
        let (mut places, mut tokens) = (Vec::new(), Vec::new());
        for (row, example) in examples.iter().enumerate() {
            places.extend(
                example
                    .hidden
                    .iter()
                    .map(|(place, _)| row * texts.len + place),
            );
            tokens.extend(example.hidden.iter().map(|(_, token)| *token));
        }
        let class = |second: Second| match second {
            Second::Follows => 0,
            Second::Random => 1,
        };
        Self {
            second: examples
                .iter()
                .filter_map(|it| it.second.map(class))
                .collect(),
            texts,
            places,
            tokens,
        }
    }

    fn score(&self, model: &Bert) -> Scored {
        let pass = &mut Pass::evaluation();
        let [tokens, segments] = self.texts.tensors(model);
        let hidden = model.forward(tokens, segments, pass).hidden;
        let logits = model.masked_logits(vectors_at(hidden.clone(), &self.places), pass.precision);
        let logits = logits.expect("a head for hidden tokens").flatten::<2>(0, 1);
        let masked = smoothed_loss(logits.clone(), &self.tokens, 0.0).cross_entropy;
        let (mut next, mut next_right) = (0.0, 0);
        if let Some(logits) = model.next_sentence_logits(hidden, pass)
            && !self.second.is_empty()
        {
            let found = most_probable(logits.clone());
            let pairs = found.iter().zip(&self.second);
            next_right = pairs.filter(|(a, b)| a == b).count();
            let entropy = cross_entropy(logits, &self.second, 0.0);
            next = entropy.into_scalar::<f32>();
        }
        Scored {
            masked: masked.into_scalar::<f32>(),
            next,
            next_right,
            found: most_probable(logits),
        }
    }
}

/// The largest of each row.
pub(super) fn most_probable(logits: Tensor<2>) -> Vec<u32> {
    let [_, columns] = logits.dims();
    let values: Vec<f32> = logits.into_data().iter::<f32>().collect();
    let best = |row: &[f32]| {
        let numbered = (0u32..).zip(row);
        let best = numbered.reduce(|best, one| if one.1 > best.1 { one } else { best });
        best.map_or(0, |(number, _)| number)
    };
    values.chunks(columns).map(best).collect()
}

impl Columns {
    /// Of a text in memory.
    pub(super) fn of_text(text: &Framed) -> Self {
        Self {
            src: text.tokens.len() as u32,
            tgt: 0,
        }
    }
}
