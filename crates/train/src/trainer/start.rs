//! From a recipe and a folder to a run that is ready to go on, new or continued.
//!
//! Whatever would make a continued run differ from an uninterrupted one is refused here: another
//! recipe, another corpus, another vocabulary. Neighbour: [`crate::trainer`] loops over the result.

use attentive_model::{
    config::{ModelConfig, TransformerConfig},
    directory::{ModelDir, Tokenizers},
};
use attentive_nn::{models::transformer::Transformer, ops::Precision};

use burn::tensor::Device;

use crate::{
    Recipe, Result, TrainError,
    data::corpus::{Corpus, CorpusText},
    events::{Event, Observer},
    optim::ema::Ema,
    optim::optimizer::Optimizer,
    run::directory::{Link, RunDir},
    run::log::MetricsLog,
    run::snapshot::Snapshot,
    run::state::TrainState,
    trainer::Session,
};

/// Everything that the loop needs.
pub(crate) struct Ready {
    pub(crate) run: RunDir,
    pub(crate) corpus: Corpus,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) config: TransformerConfig,
    pub(crate) snapshot: Snapshot,
    pub(crate) log: MetricsLog,
    pub(crate) continued_from: Option<u64>,
}

/// Opens the run's folder and continues what is there, or begins.
pub(crate) fn prepare(session: &Session<'_>, observer: &mut dyn Observer) -> Result<Ready> {
    let recipe = session.recipe;
    refuse_missing_precision(session)?;
    let run = RunDir::open_or_create(session.out)?;
    refuse_other_recipe(&run, recipe)?;
    let latest = run.latest_intact()?;
    for damaged in &latest.damaged {
        observer.event(&Event::Warning(format!("{damaged}")));
    }
    observer.event(&Event::Preparing("reading the corpus"));
    let text = CorpusText::read(recipe)?;
    let device = session.device.clone().autodiff();

    let Some(checkpoint) = latest.checkpoint else {
        let (tokenizers, config, model) = first_model(recipe, &text, &device, observer)?;
        observer.event(&Event::Preparing("encoding the corpus"));
        let corpus = text.encode(recipe, &tokenizers)?;
        let ema_decay = recipe.training.ema_decay;
        let snapshot = Snapshot {
            ema: (ema_decay > 0.0).then(|| Ema::new(ema_decay, &model)),
            model,
            optimizer: Optimizer::default(),
            gradients: Default::default(),
            state: TrainState {
                recipe_fingerprint: recipe.fingerprint(),
                corpus: corpus.fingerprint.clone(),
                src_tokenizer: tokenizers.src.fingerprint(),
                tgt_tokenizer: tokenizers.tgt.fingerprint(),
                ..TrainState::default()
            },
        };
        run.write_recipe(recipe)?;
        let log = MetricsLog::create(&run.metrics_path())?;
        return Ok(Ready {
            run,
            corpus,
            tokenizers,
            config,
            snapshot,
            log,
            continued_from: None,
        });
    };

    let tokenizers = Tokenizers::load(&checkpoint)?;
    let config = model_config(recipe, &tokenizers)?;
    let snapshot = Snapshot::load(&checkpoint, &config, recipe.training.ema_decay, &device)?;
    let state = &snapshot.state;
    refuse("corpus", &run, state.corpus.differences(&text.fingerprint))?;
    refuse(
        "vocabulary",
        &run,
        vocabulary_differences(state, &tokenizers),
    )?;
    observer.event(&Event::Preparing("encoding the corpus"));
    let corpus = text.encode(recipe, &tokenizers)?;
    let log = MetricsLog::resume(&run.metrics_path(), state.step, state.metrics_lines)?;
    run.write_recipe(recipe)?;
    if state.best_step == Some(state.step) {
        // The run may have ended between writing this checkpoint and calling it the best.
        run.point(Link::Best, &checkpoint)?;
    }
    let continued_from = Some(state.step);
    Ok(Ready {
        run,
        corpus,
        tokenizers,
        config,
        snapshot,
        log,
        continued_from,
    })
}

/// What a new run begins with: random weights and vocabularies of its own text, or those of another model.
fn first_model(
    recipe: &Recipe,
    text: &CorpusText,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<(Tokenizers, TransformerConfig, Transformer)> {
    let folder = &recipe.training.start_from;
    if folder.is_empty() {
        observer.event(&Event::Preparing("learning the vocabulary"));
        let tokenizers = text.train_tokenizers(recipe)?;
        let config = model_config(recipe, &tokenizers)?;
        let model = Transformer::new(&config, recipe.training.seed, device);
        return Ok((tokenizers, config, model));
    }
    observer.event(&Event::Preparing("reading the model to start from"));
    let given = ModelDir::open(folder)?;
    let config = model_config(recipe, &given.tokenizers)?;
    let differences = size_differences(&given.config, &config);
    if !differences.is_empty() {
        return Err(TrainError::OtherModel {
            model: given.path,
            differences,
        });
    }
    let model = Transformer::load(&config, &ModelDir::weights_path(&given.path), device)?;
    Ok((given.tokenizers, config, model))
}

/// What the recipe's `[model]` says otherwise than the model to start from; dropout has no weights.
fn size_differences(given: &TransformerConfig, asked: &TransformerConfig) -> Vec<String> {
    let keys = |config: &TransformerConfig| match serde_json::to_value(config) {
        Ok(serde_json::Value::Object(keys)) => keys,
        _ => unreachable!("a configuration is an object of plain values"),
    };
    let asked = keys(asked);
    keys(given)
        .into_iter()
        .filter(|(key, value)| key != "dropout" && asked.get(key) != Some(value))
        .map(|(key, value)| {
            format!(
                "`model.{key}`: {value} in the model, {} in the recipe",
                asked[&key]
            )
        })
        .collect()
}

fn model_config(recipe: &Recipe, tokenizers: &Tokenizers) -> Result<TransformerConfig> {
    let config = recipe.model_config(tokenizers.src.vocab_size(), tokenizers.tgt.vocab_size());
    config
        .check()
        .map_err(|problems| TrainError::Architecture { problems })?;
    Ok(config)
}

/// A precision that would silently be another one is refused.
fn refuse_missing_precision(session: &Session<'_>) -> Result<()> {
    let device = match session.device == Device::flex() {
        true => "this one",
        false => "the chosen device",
    };
    match session.recipe.training.precision {
        Precision::Bf16 if session.device != Device::flex() || !Precision::Bf16.available() => {
            Err(TrainError::Precision { device })
        }
        _ => Ok(()),
    }
}

/// The recipe stands in the folder from the first moment, before there is any checkpoint.
fn refuse_other_recipe(run: &RunDir, recipe: &Recipe) -> Result<()> {
    if !run.recipe_path().exists() {
        return Ok(());
    }
    let begun = Recipe::load(&run.recipe_path(), &[])?;
    refuse("recipe", run, begun.differences(recipe))
}

fn vocabulary_differences(state: &TrainState, tokenizers: &Tokenizers) -> Vec<String> {
    let sides = [
        ("source", &state.src_tokenizer, tokenizers.src.fingerprint()),
        ("target", &state.tgt_tokenizer, tokenizers.tgt.fingerprint()),
    ];
    sides
        .into_iter()
        .filter(|(_, begun, now)| *begun != now)
        .map(|(side, _, _)| format!("the {side} tokenizer in the checkpoint is not the run's"))
        .collect()
}

fn refuse(what: &'static str, run: &RunDir, differences: Vec<String>) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(TrainError::Changed {
        what,
        run: run.path().to_owned(),
        differences,
    })
}
