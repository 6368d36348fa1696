//! `attentive demo`: the whole way in half a minute, with nothing to fetch: train a Transformer to
//! reverse random letters (recipes/reverse.toml), then let it reverse lines it has never seen.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::translator::TranslatorOptions;
use attentive_train::Recipe;
use attentive_train::data::synthetic;
use attentive_train::events::Outcome;
use attentive_train::recipe::Synthetic;
use clap::Args;

use super::train::{Follower, train};
use crate::arguments::{DeviceArg, positive};
use crate::decoding::ComputeKind;
use crate::exit::Ending;
use crate::model::{self, Choice};
use crate::network::LoadedModel;
use crate::output::Output;
use crate::ranks::Ranks;
use crate::terminal::{Colors, Look, Terminal};

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Keep the run in this folder [default: a temporary one, removed at the end]
    #[arg(long, short, value_name = "RUN_DIR")]
    out: Option<PathBuf>,
    /// Lines to show
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive())]
    lines: usize,
    /// Override a value of recipes/reverse.toml, the recipe that is trained; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive demo
  attentive demo --out runs/demo
  attentive translate --model runs/demo \"a b c d e\"";

/// Compiled in, so that the demo needs no files.
const RECIPE: &str = include_str!("../../../../recipes/reverse.toml");

/// The model is evaluated on so many unseen lines.
const UNSEEN: usize = 200;

/// Trains and translates.
pub fn run(args: DemoArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let recipe = Recipe::from_toml_str("recipes/reverse.toml", RECIPE, &args.set)
        .map_err(|error| Ending::Usage(error.to_string()))?;
    let Some(task) = &recipe.data.synthetic else {
        bail!("recipes/reverse.toml has no synthetic task, which the demo needs");
    };
    // Removed when this function ends, however it ends.
    let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
    let out = args.out.as_deref().unwrap_or(temporary.path());

    terminal.note("A Transformer learns to write lines of letters backwards, from examples alone.");
    let device = &args.device.device;
    let outcome = train(
        &recipe,
        out,
        device,
        Follower::None,
        &Ranks::alone(),
        terminal,
    )?;
    if outcome == Outcome::Interrupted {
        let advice = match args.out {
            Some(_) => "stopped; the same command goes on from here",
            None => "stopped; nothing was kept, as there was no --out",
        };
        bail!(Ending::Interrupted(advice.to_owned()));
    }
    terminal.note("\nLines that it has never seen:");
    show(&args, out, task)?;
    match &args.out {
        Some(out) => terminal.note(format_args!(
            "\nTry your own:\n  attentive translate --model {} \"h e l l o\"",
            out.display()
        )),
        None => terminal.note("\nKeep the model with --out DIR to try your own lines."),
    }
    Ok(())
}

/// Translates unseen lines; prints some of them, and how many were right.
fn show(args: &DemoArgs, run: &Path, task: &Synthetic) -> anyhow::Result<()> {
    let unseen = unseen(task, UNSEEN.max(args.lines));
    let (sources, expected): (Vec<String>, Vec<String>) = unseen.into_iter().unzip();
    let options = TranslatorOptions::default();
    let outputs = match args.device.device.as_str() {
        "cpu" => {
            let choice = Choice::Directory(run.to_owned());
            let translator = model::translator(choice.open()?, ComputeKind::Auto, options)?;
            translator.translate(&sources)
        }
        device => {
            let model = LoadedModel::<Transformer>::open(run, device)?;
            model.translator(options)?.translate(&sources)
        }
    };
    let width = sources
        .iter()
        .take(args.lines)
        .map(String::len)
        .max()
        .unwrap_or(0);

    let colors = Colors::of_stdout();
    let mut output = Output::stdout();
    let mut right = 0;
    for (index, (source, expected)) in sources.iter().zip(&expected).enumerate() {
        let text = &outputs[index].text;
        let is_right = text == expected;
        right += usize::from(is_right);
        if index < args.lines {
            let verdict = if is_right {
                colors.paint(Look::Green, "right")
            } else {
                format!("{}, expected {expected}", colors.paint(Look::Red, "wrong"))
            };
            writeln!(output, "{source:width$}  ->  {text:width$}  {verdict}")?;
        }
    }
    let percent = 100.0 * right as f64 / sources.len().max(1) as f64;
    writeln!(
        output,
        "{right} of {} unseen lines right ({percent:.1}%)",
        sources.len()
    )?;
    output.finish()
}

/// Lines of the task that were neither trained nor validated on.
fn unseen(task: &Synthetic, wanted: usize) -> Vec<(String, String)> {
    let seen = synthetic::generate(task);
    let seen: HashSet<&String> = seen
        .train
        .iter()
        .chain(&seen.val)
        .map(|(src, _)| src)
        .collect();
    // As many more as could be seen already would be too many to wait for; a few lines suffice.
    let others = synthetic::generate(&Synthetic {
        lines: wanted * 4,
        val_lines: 0,
        seed: task.seed.wrapping_add(1),
        ..task.clone()
    });
    let new = others
        .train
        .into_iter()
        .filter(|(src, _)| !seen.contains(src));
    new.take(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_lines_are_unseen() {
        let recipe = Recipe::from_toml_str("reverse", RECIPE, &[]).unwrap();
        let task = recipe.data.synthetic.unwrap();
        let unseen = unseen(&task, 50);
        assert_eq!(unseen.len(), 50);
        let seen = synthetic::generate(&task);
        assert!(
            unseen
                .iter()
                .all(|pair| !seen.train.contains(pair) && !seen.val.contains(pair))
        );
    }
}
