//! `attentive train`: a recipe becomes a run, or a run goes on where it stopped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_model::config::Family;
use attentive_train::events::{Event, Observer, Outcome};
use attentive_train::recipe::{BestBy, Place, RecipeError};
use attentive_train::tensorboard::TensorBoard;
use attentive_train::{Recipe, Session};
use clap::Args;

use crate::arguments::DeviceArg;
use crate::exit::Ending;
use crate::interrupt;
use crate::progress::TrainingProgress;
use crate::ranks::{Ranks, binding_note};
use crate::terminal::Terminal;
use crate::wording::quoted;

/// Arguments of `train`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TrainArgs {
    /// Recipe: a TOML file that says everything about the run
    recipe: PathBuf,
    /// Folder of the run: checkpoints and history; a run that is there already is continued
    #[arg(long, short, value_name = "RUN_DIR")]
    out: PathBuf,
    /// Override a value of the recipe, such as training.seed=2; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<String>,
    /// Write event files for TensorBoard into RUN_DIR/tensorboard too
    #[arg(long)]
    tensorboard: bool,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive train recipes/reverse.toml --out runs/reverse
  attentive train recipes/multi30k.toml --out runs/m30k --set data.dir=data/multi30k \\
    --set training.max_minutes=60
  attentive train my.toml --out runs/mine --set training.start_from=runs/m30k   # fine-tuning
  attentive train recipes/reverse.toml --out runs/reverse --tensorboard
  mpirun -n 4 attentive train my.toml --out runs/mine --set training.accumulate=4   # built with --features mpi

Ctrl-C saves a checkpoint and stops; the same command resumes from it, with the same result as an uninterrupted run.
The folder holds recipe.toml, metrics.jsonl, checkpoints/, and the links best and last; each of
these two, and the folder itself, can be given to `translate --model`.";

/// Trains.
pub fn run(args: TrainArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let recipe = Recipe::load(&args.recipe, &args.set).map_err(explained)?;
    let ranks = Ranks::join()?;
    let run = args.out.display();
    let follower = if args.tensorboard {
        Follower::TensorBoard
    } else {
        Follower::None
    };
    if ranks.communicator().is_root()
        && let Some(note) = binding_note()
    {
        terminal.warn(note);
    }
    let outcome = train(
        &recipe,
        &args.out,
        &args.device.device,
        follower,
        &ranks,
        terminal,
    );
    let outcome = ranks.ended(outcome, terminal)?;
    if !ranks.communicator().is_root() {
        return Ok(());
    }
    match outcome {
        Outcome::Finished => terminal.note(format_args!("the run {run} is finished")),
        Outcome::StoppedEarly => terminal.note(format_args!(
            "early stopping of the run {run}: no improvement in {} validations",
            recipe.validation.patience
        )),
        Outcome::Interrupted => bail!(Ending::Interrupted(format!(
            "stopped, and saved in {run}; the same command goes on from here:\n  {}",
            this_command()
        ))),
    }
    let (what, command) = match recipe.model.family() {
        Family::Transformer | Family::Recurrent => ("translate", "translate"),
        Family::Gpt => ("continue text", "generate"),
        Family::Bert if recipe.validation.best_by == BestBy::Loss => {
            ("fill in hidden words", "fill")
        }
        Family::Bert => ("classify texts", "classify"),
    };
    terminal.note(format_args!(
        "{what} with it:\n  attentive {command} --model {}",
        quoted(&run.to_string())
    ));
    Ok(())
}

/// Who else is told how training goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follower {
    /// Nobody.
    None,
    /// TensorBoard, through its event files.
    TensorBoard,
}

/// Trains with a progress bar until the recipe, or Ctrl-C, says stop.
pub fn train(
    recipe: &Recipe,
    out: &Path,
    device: &str,
    follower: Follower,
    ranks: &Ranks,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let processes = ranks.communicator();
    let stop = interrupt::stop_flag(match (processes.size(), processes.is_root()) {
        (1, _) => Some("saving a checkpoint first (once more to stop at once, unsaved)"),
        (_, true) => Some(
            "the ranks save a checkpoint first; if one of them is gone, the same command goes on from the last one, \
             with as many ranks as there are",
        ),
        // Another rank says it for all.
        (_, false) => None,
    })?;
    let session = Session {
        recipe,
        out,
        device: attentive_nn::device::parse(device)?,
        stop: &stop,
    };
    if !processes.is_root() {
        return Ok(attentive_train::train_together(
            session,
            processes,
            &mut Silent,
        )?);
    }
    let mut progress = TrainingProgress::new(terminal, recipe);
    let outcome = match follower {
        Follower::None => attentive_train::train_together(session, processes, &mut progress),
        Follower::TensorBoard => {
            let mut board = TensorBoard::new(out, &mut progress);
            attentive_train::train_together(session, processes, &mut board)
        }
    };
    progress.clear();
    Ok(outcome?)
}

/// What other ranks than the first tell.
struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &Event) {}
}

/// Whether a text is `key=value`.
pub fn setting(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("expected key=value, such as training.seed=2".to_owned()),
    }
}

/// A recipe that is not there: which ones are; a wrong `--set`: wrong usage.
pub fn explained(error: RecipeError) -> anyhow::Error {
    match &error {
        RecipeError::Unreadable { path, source }
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            anyhow::anyhow!("{error}\n{}", suggestion(path, Path::new("recipes")))
        }
        RecipeError::Invalid { problems, .. }
            if problems
                .iter()
                .all(|problem| matches!(problem.place, Place::Override(_))) =>
        {
            Ending::Usage(error.to_string()).into()
        }
        _ => error.into(),
    }
}

fn suggestion(path: &Path, folder: &Path) -> String {
    let mut recipes: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    recipes.sort();
    let same_name = recipes
        .iter()
        .find(|recipe| recipe.file_stem() == path.file_stem());
    if let Some(recipe) = same_name {
        return format!("did you mean {}?", recipe.display());
    }
    if recipes.is_empty() {
        return "a recipe is a TOML file; `attentive demo` trains without one".to_owned();
    }
    let list: String = recipes
        .iter()
        .map(|path| format!("\n  {}", path.display()))
        .collect();
    format!("these recipes are here:{list}")
}

/// The command line of this process, to be typed again.
pub fn this_command() -> String {
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_without_its_folder_or_ending_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["base.toml", "reverse.toml", "notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let near = suggestion(Path::new("reverse"), folder.path());
        assert!(
            near.starts_with("did you mean ") && near.ends_with("reverse.toml?"),
            "{near}"
        );
        let far = suggestion(Path::new("x.toml"), folder.path());
        assert!(
            far.contains("base.toml\n") && !far.contains("notes"),
            "{far}"
        );
        assert!(suggestion(Path::new("x"), Path::new("no such folder")).contains("demo"));
    }
}
