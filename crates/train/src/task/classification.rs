//! Classification of texts and of pairs of texts with a BERT (Devlin et al. 2019, §4.1): from scratch, or from a
//! pre-trained one (`training.start_from`).
//!
//! Neighbors: [`crate::data::labelled`] reads the examples, `attentive_nn::models::bert` computes,
//! [`super::masked_language_model`] pre-trains.

use std::{path::Path, sync::Arc};

use attentive_metrics::classification::{accuracy, f1};
use attentive_model::{config::ModelConfig as _, tensors::TensorSpec};
use attentive_nn::{
    attention::pruning::{Pruning, kept_share},
    models::bert::{
        Bert,
        text::{Framed, Texts},
    },
    ops::cross_entropy,
    pass::Pass,
};
use attentive_text::{Tokenizer, special::PAD};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::{Epoch, Scores, Task, bert::Architecture, masked_language_model::most_probable};
use crate::{
    Recipe, Result,
    data::{
        batches::{Budget, Columns, padding_share_of, plan_of},
        fingerprint::CorpusFingerprint,
        labelled::{Labelled, LabelledData, LabelledFile},
        random::SplitMix64,
    },
    distributed::Communicator,
    evaluation::share,
    events::{Event, Observer, Sample},
    recipe::PruningSection,
};

/// Predicting the class of a text.
#[derive(Debug)]
pub struct Classification {
    recipe: Recipe,
    architecture: Architecture,
    train: Arc<Vec<Example>>,
    val: Vec<Example>,
    /// The first validation texts, to show.
    shown: Vec<Labelled>,
}

/// An encoded text and its class.
#[derive(Debug, Clone)]
pub struct Example {
    /// With its special tokens.
    pub text: Framed,
    /// Among the model's labels.
    pub class: usize,
}

/// Some examples, padded.
#[derive(Debug, Clone)]
pub struct ClassBatch {
    texts: Texts,
    classes: Vec<u32>,
}

/// What a classifier makes of some examples.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassScores {
    /// Cross-entropy per example.
    pub loss: f64,
    /// The share of right classes.
    pub accuracy: f64,
    /// F1 of the second of two classes; macro F1 of more.
    pub f1: f64,
    /// The class of each example.
    pub found: Vec<usize>,
    /// With pruning, the share of tokens that are kept, the mean over layers and examples.
    pub kept: Option<f64>,
    /// With pruning, the share of the operations of attention and feed-forward networks that is left.
    pub operations: Option<f64>,
}

impl Task for Classification {
    type Model = Bert;
    type Data = LabelledData;
    type Examples = Arc<Vec<Example>>;
    type Batch = ClassBatch;

    fn read(recipe: &Recipe) -> Result<LabelledData> {
        LabelledData::read(recipe)
    }

    fn fingerprint(data: &LabelledData) -> &CorpusFingerprint {
        &data.fingerprint
    }

    fn begin(
        recipe: &Recipe,
        data: LabelledData,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Bert)> {
        let labels = data.labels()?;
        let texts = data.train.iter().flat_map(|file| &file.texts);
        let mut texts = texts.flat_map(|text| [Some(&text.first), text.second.as_ref()]);
        let mut texts = texts.by_ref().flatten().map(String::as_str);
        let begun = Architecture::begin(recipe, &mut texts, labels, device, observer)?;
        let (architecture, model) = begun;
        Ok((Self::new(recipe, &data, architecture, observer)?, model))
    }

    fn resume(
        recipe: &Recipe,
        data: LabelledData,
        checkpoint: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let architecture = Architecture::resume(recipe, checkpoint)?;
        Self::new(recipe, &data, architecture, observer)
    }

    fn description(&self) -> Vec<(&'static str, String)> {
        let count = |examples: &[Example]| format!("{} examples", examples.len());
        let mut lines = vec![("training", count(&self.train))];
        if self.validates() {
            lines.push(("validation", count(&self.val)));
        }
        let config = &self.architecture.config;
        lines.push(("classes", config.labels.join(", ")));
        lines.push(("vocabulary", format!("{} tokens (wordpiece)", config.vocab)));
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
        let texts = self.train.iter().map(|example| &example.text);
        let columns: Vec<Columns> = texts.map(Columns::of_text).collect();
        let budget = Budget::Sentences(training.batch_size);
        let plan = plan_of(
            &columns,
            budget,
            &mut SplitMix64::new(&[training.seed, epoch]),
        );
        Ok(Epoch {
            padding: padding_share_of(&columns, &plan),
            examples: self.train.clone(),
            plan: Box::new(plan),
        })
    }

    fn batch(&self, examples: &Self::Examples, indices: &[usize]) -> Result<ClassBatch> {
        let examples: Vec<&Example> = indices.iter().map(|index| &examples[*index]).collect();
        Ok(ClassBatch::collect(&examples))
    }

    fn targets(batch: &ClassBatch) -> usize {
        batch.classes.len()
    }

    fn loss(&self, model: &Bert, batch: &ClassBatch, epoch: u64, pass: &mut Pass) -> Tensor<1> {
        let PruningSection {
            soft_epochs,
            temperature,
            regularizer,
            ..
        } = self.recipe.pruning;
        let how = match model.pruning {
            None => Pruning::Off,
            Some(_) if epoch < soft_epochs as u64 => Pruning::Soft { temperature },
            Some(_) => Pruning::Hard,
        };
        let [tokens, segments] = batch.texts.tensors(model);
        let there = tokens.clone().not_equal_elem(i64::from(PAD)).float();
        let output = model.forward_pruned(tokens, segments, how, pass);
        let logits = model.class_logits(output.hidden, pass);
        let logits = logits.expect("the recipe's head is a classifier");
        let loss = cross_entropy(logits, &batch.classes, 0.0);
        if let Pruning::Soft { .. } = how {
            loss + kept_share(output.stays, there).sum() * regularizer
        } else {
            loss
        }
    }

    fn validates(&self) -> bool {
        !self.val.is_empty()
    }

    fn validate(&self, model: &Bert, processes: &dyn Communicator) -> Result<Scores> {
        let labels = &self.architecture.config.labels;
        let scores = evaluate(model, &self.val, labels.len(), processes);
        let mut metrics = vec![("accuracy", scores.accuracy), ("f1", scores.f1)];
        metrics.extend(scores.kept.map(|kept| ("kept", kept)));
        metrics.extend(scores.operations.map(|share| ("operations", share)));
        let samples = self
            .shown
            .iter()
            .zip(&scores.found)
            .map(|(text, class)| Sample {
                source: match &text.second {
                    Some(second) => format!("{} | {second}", text.first),
                    None => text.first.clone(),
                },
                reference: text.label.clone(),
                output: labels[*class].clone(),
            });
        Ok(Scores {
            loss: scores.loss,
            score: scores.accuracy - self.recipe.pruning.regularizer * scores.kept.unwrap_or(0.0),
            metrics,
            samples: samples.collect(),
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<Bert> {
        self.architecture.load_model(dir, device)
    }

    fn save_model(&self, dir: &Path, model: &Bert) -> Result<()> {
        self.architecture.save_model(dir, model)
    }
}

impl Classification {
    fn new(
        recipe: &Recipe,
        data: &LabelledData,
        architecture: Architecture,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        observer.event(&Event::Preparing("encoding the examples"));
        let Architecture { tokenizer, config } = &architecture;
        let mut read = |files: &[LabelledFile], role: &str| -> Result<Vec<Example>> {
            let mut all = Vec::new();
            for file in files {
                all.extend(examples(
                    file,
                    tokenizer,
                    &config.labels,
                    config.max_positions,
                )?);
            }
            let cut = all.iter().filter(|it| it.text.left_out > 0).count();
            if cut > 0 {
                observer.event(&Event::Warning(format!(
                    "{cut} of {} {role} texts are longer than the {} tokens that the model reads (`model.max_positions`): \
                     their ends are left out",
                    all.len(),
                    config.max_positions
                )));
            }
            Ok(all)
        };
        let train = Arc::new(read(&data.train, "training")?);
        let val = read(&data.val, "validation")?;
        let shown = data.val.iter().flat_map(|file| &file.texts);
        let shown = shown.take(recipe.validation.samples).cloned().collect();
        Ok(Self {
            recipe: recipe.clone(),
            train,
            val,
            shown,
            architecture,
        })
    }
}

/// The encoded texts of a file, and their classes among these.
pub fn examples(
    file: &LabelledFile,
    tokenizer: &Tokenizer,
    labels: &[String],
    longest: usize,
) -> Result<Vec<Example>> {
    let classes = file.classes(labels)?;
    let texts = file.texts.par_iter().zip(classes);
    let example = |(text, class): (&Labelled, usize)| {
        let second = text.second.as_ref().map(|text| tokenizer.encode(text));
        let first = tokenizer.encode(&text.first);
        Example {
            text: Framed::new(&first, second.as_deref(), longest),
            class,
        }
    };
    Ok(texts.map(example).collect())
}

/// Examples of a batch when nothing is kept for a backward pass.
const BATCH: usize = 64;

/// What a classifier of so many classes makes of the examples. The processes share the batches.
pub fn evaluate(
    model: &Bert,
    examples: &[Example],
    classes: usize,
    processes: &dyn Communicator,
) -> ClassScores {
    // Texts of similar length together.
    let mut order: Vec<usize> = (0..examples.len()).collect();
    order.sort_by_key(|index| examples[*index].text.tokens.len());
    let batches: Vec<&[usize]> = order.chunks(BATCH).collect();
    let of_batch = |indices: &&[usize]| {
        let chosen = indices.iter().map(|index| &examples[*index]);
        let texts: Vec<Framed> = chosen.clone().map(|example| example.text.clone()).collect();
        let targets: Vec<u32> = chosen.map(|example| example.class as u32).collect();
        let (logits, encoded) = model.classes(&texts).expect("a classifier");
        let loss = cross_entropy(logits.clone(), &targets, 0.0);
        let work = model.work(&texts, &encoded);
        // Bits, because JSON has no word for what is not a number.
        let bits = loss.into_scalar::<f32>().to_bits();
        (
            bits,
            most_probable(logits),
            encoded.kept_shares(&texts),
            work,
        )
    };
    let (mut loss, mut found) = (0.0, vec![0; examples.len()]);
    let (mut kept, mut work) = (0.0, [0.0; 2]);
    let shared = share(&batches, processes, of_batch);
    for (indices, (bits, classes, shares, of_work)) in batches.iter().zip(shared) {
        loss += f64::from(f32::from_bits(bits));
        kept += shares;
        work = [work[0] + of_work[0], work[1] + of_work[1]];
        for (index, class) in indices.iter().zip(classes) {
            found[*index] = class as usize;
        }
    }
    let prunes = model.pruning.is_some();
    let expected: Vec<usize> = examples.iter().map(|example| example.class).collect();
    ClassScores {
        loss: loss / examples.len().max(1) as f64,
        accuracy: accuracy(&found, &expected),
        f1: f1(&found, &expected, classes),
        found,
        kept: prunes.then(|| kept / examples.len().max(1) as f64),
        operations: prunes.then(|| work[0] / work[1].max(1.0)),
    }
}

impl ClassBatch {
    fn collect(examples: &[&Example]) -> Self {
        Self {
            texts: Texts::collect(examples.iter().map(|example| &example.text)),
            classes: examples
                .iter()
                .map(|example| example.class as u32)
                .collect(),
        }
    }
}
