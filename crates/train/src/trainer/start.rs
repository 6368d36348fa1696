//! From a recipe and a folder to a run that is ready to go on, new or continued.
//!
//! Whatever would make a continued run differ from an uninterrupted one is refused here: another
//! recipe, other data, another precision. Neighbor: [`crate::trainer`] loops over the result.

use std::path::{Path, PathBuf};

use attentive_nn::ops::Precision;
use burn::tensor::Device;

use super::Session;
use crate::{
    Recipe, Result, TrainError,
    distributed::{Communicator, broadcast, setup},
    events::{Event, Observer},
    recipe::{PrecisionChoice, RECIPE_FILE},
    run::{
        directory::{CHECKPOINTS, Link, RunDir},
        log::MetricsLog,
        snapshot::Snapshot,
        state::TrainState,
    },
    task::Task,
};

/// Everything that the loop needs.
pub(super) struct Ready<T: Task> {
    pub(super) task: T,
    pub(super) snapshot: Snapshot<T::Model>,
    pub(super) precision: Precision,
    /// The step that the run continues from, if it was begun before.
    pub(super) continued_from: Option<u64>,
    /// The machine of every process.
    pub(super) hosts: Vec<String>,
    /// In process 0, which alone writes.
    pub(super) files: Option<Files>,
}

/// The files of the run that are open while it trains.
pub(super) struct Files {
    pub(super) run: RunDir,
    pub(super) log: MetricsLog,
}

/// Opens the run's folder and continues what is there, or begins.
pub(super) fn prepare<T: Task>(
    session: &Session<'_>,
    communicator: &dyn Communicator,
    observer: &mut dyn Observer,
) -> Result<Ready<T>> {
    let recipe = session.recipe;
    let precision = resolve(recipe.training.precision, &session.device)?;
    let hosts = setup::check(communicator, recipe, precision)?;
    let root = communicator.is_root();
    let run = root
        .then(|| RunDir::open_or_create(session.out))
        .transpose()?;
    let checkpoint = newest_checkpoint(session, run.as_ref(), communicator, observer)?;
    let folder = checkpoint.as_deref().unwrap_or(session.out);
    let begun = refuse_other_recipe(session, &folder.join(RECIPE_FILE))?;
    observer.event(&Event::Preparing("reading the corpus"));
    let data = T::read(recipe)?;
    setup::check_data(communicator, T::fingerprint(&data))?;
    let device = session.device.clone().autodiff();

    let (task, snapshot) = match &checkpoint {
        None => {
            let state = TrainState {
                precision: Some(precision),
                corpus: T::fingerprint(&data).clone(),
                ..TrainState::default()
            };
            let (task, model) = T::begin(recipe, data, &device, observer)?;
            let snapshot = Snapshot::new(&task, model, recipe, state);
            (task, snapshot)
        }
        Some(checkpoint) => {
            let state = TrainState::load(checkpoint)?;
            let before = state
                .precision
                .or_else(|| begun?.training.precision.explicit());
            refuse_other_precision(session, before, precision)?;
            let differences = state.corpus.differences(T::fingerprint(&data));
            refuse("corpus", session.out, differences)?;
            let task = T::resume(recipe, data, checkpoint, observer)?;
            let mut snapshot = Snapshot::load(checkpoint, &task, recipe, &device)?;
            snapshot.state.precision = Some(precision);
            (task, snapshot)
        }
    };
    let files = match run {
        Some(run) => Some(open(run, recipe, &snapshot.state, checkpoint.as_deref())?),
        None => None,
    };
    Ok(Ready {
        continued_from: checkpoint.is_some().then_some(snapshot.state.step),
        task,
        snapshot,
        precision,
        hosts,
        files,
    })
}

/// The checkpoint to continue from: process 0 finds it, and tells the others.
fn newest_checkpoint(
    session: &Session<'_>,
    run: Option<&RunDir>,
    communicator: &dyn Communicator,
    observer: &mut dyn Observer,
) -> Result<Option<PathBuf>> {
    let mut name = Vec::new();
    if let Some(run) = run {
        let latest = run.latest_intact()?;
        for damaged in &latest.damaged {
            observer.event(&Event::Warning(format!("{damaged}")));
        }
        if let Some(folder) = latest.checkpoint.as_deref().and_then(Path::file_name) {
            name = folder.to_string_lossy().into_owned().into_bytes();
        }
    }
    let name = broadcast(communicator, name);
    let name = String::from_utf8_lossy(&name);
    let path = session.out.join(CHECKPOINTS).join(name.as_ref());
    Ok((!name.is_empty()).then_some(path))
}

/// Writes the recipe and opens the history at the place where the run goes on.
fn open(
    run: RunDir,
    recipe: &Recipe,
    state: &TrainState,
    checkpoint: Option<&Path>,
) -> Result<Files> {
    let log = MetricsLog::resume(&run.metrics_path(), state.step, state.metrics_lines)?;
    run.write_recipe(recipe)?;
    if let Some(checkpoint) = checkpoint
        && state.best_step == Some(state.step)
    {
        // The run may have ended between writing this checkpoint and calling its model the best.
        let average = state.best_is_average.then(|| run.average_path());
        run.point(Link::Best, average.as_deref().unwrap_or(checkpoint))?;
    }
    Ok(Files { run, log })
}

/// The precision that a recipe comes to on this device; one that would silently be another is refused.
fn resolve(choice: PrecisionChoice, device: &Device) -> Result<Precision> {
    match choice {
        PrecisionChoice::F32 => Ok(Precision::F32),
        PrecisionChoice::Auto | PrecisionChoice::Bf16 if has_bf16(device) => Ok(Precision::Bf16),
        PrecisionChoice::Auto => Ok(Precision::F32),
        PrecisionChoice::Bf16 => Err(TrainError::Precision {
            device: if *device == Device::flex() {
                "this one"
            } else {
                "the chosen device"
            },
        }),
    }
}

fn has_bf16(device: &Device) -> bool {
    Precision::Bf16.available_on(device)
}

/// The recipe stands in the run's folder from the first moment, and in every checkpoint. The recipe of the run
/// comes back, if there is one.
fn refuse_other_recipe(session: &Session<'_>, path: &Path) -> Result<Option<Recipe>> {
    if !path.exists() {
        return Ok(None);
    }
    let begun = Recipe::load_from_run(path)?;
    refuse("recipe", session.out, begun.differences(session.recipe))?;
    Ok(Some(begun))
}

fn refuse_other_precision(
    session: &Session<'_>,
    before: Option<Precision>,
    now: Precision,
) -> Result<()> {
    match before {
        Some(before) if before != now => Err(TrainError::OtherPrecision {
            run: session.out.to_owned(),
            before,
            possible: before == Precision::F32 || has_bf16(&session.device),
        }),
        _ => Ok(()),
    }
}

fn refuse(what: &'static str, run: &Path, differences: Vec<String>) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(TrainError::Changed {
        what,
        run: run.to_owned(),
        differences,
    })
}
