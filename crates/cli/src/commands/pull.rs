//! `attentive pull`: models of the Hugging Face hub, fetched and converted (`attentive-hub`).

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use attentive_convert::{ImportOptions, Imported};
use attentive_hub::{Event, ModelName, Pulled, Settings, Store};
use attentive_models::ALL;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::models::Row;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::bytes;

/// Arguments of `pull`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PullArgs {
    /// Which models: a pair of languages (fr-en is that of OPUS-MT), or ORGANIZATION/NAME on the hub
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ModelName>,
}

const EXAMPLES: &str = "\
Examples:
  attentive pull fr-en
  attentive translate --from fr --to en \"Où est la gare ?\"
  attentive translate --from fr --to de \"Où est la gare ?\"
  attentive pull Helsinki-NLP/opus-mt-tc-big-en-tr en-es
  attentive models
  attentive models remove fr-en

Files go through the cache that all programs of the hub share, are verified by their checksums and converted; a
download that was interrupted goes on where it ended. A model that is there already is replaced if the hub has a
newer one. Models are kept in attentive/models in the user's data folder, or in ATTENTIVE_MODELS_DIR.
HF_TOKEN, HF_ENDPOINT, HF_HOME, HF_HUB_CACHE and HF_HUB_OFFLINE mean what they mean elsewhere.";

/// Pulls one after the other.
pub fn run(args: PullArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let (settings, store) = (Settings::from_env()?, Store::from_env()?);
    for name in &args.names {
        let progress = Progress::new(terminal);
        let observe = |event: Event<'_>| progress.event(&event);
        let convert = |files: &Path, out: &Path| -> anyhow::Result<Imported> {
            Ok(attentive_convert::import(
                files,
                out,
                &ImportOptions::default(),
            )?)
        };
        let pulled = attentive_hub::pull(name, &settings, &store, &observe, convert);
        progress.bar.finish_and_clear();
        let Pulled { model, converted } = pulled?;
        match &converted {
            Some(imported) => imported
                .warnings
                .iter()
                .for_each(|warning| terminal.warn(warning)),
            None => terminal.note(format_args!(
                "{} is here already, in its newest version",
                model.name
            )),
        }
        let languages = model.languages.clone().unwrap_or_default();
        if let Some(built_in) = ALL
            .iter()
            .find(|model| (model.from.code(), model.to.code()) == (&*languages.0, &*languages.1))
        {
            terminal.note(format_args!(
                "--from {} --to {} still means {}, which is part of the program; --model {} chooses this one",
                languages.0, languages.1, built_in.name, model.name
            ));
        }
        let mut output = Output::stdout();
        writeln!(output, "{}", Row::of(&model).line())?;
        output.finish()?;
    }
    Ok(())
}

/// How far it is: a bar where there is a terminal, a few lines elsewhere.
struct Progress<'t> {
    terminal: &'t Terminal,
    bar: ProgressBar,
}

impl<'t> Progress<'t> {
    fn new(terminal: &'t Terminal) -> Self {
        let bar = if terminal.can_draw() {
            ProgressBar::no_length()
        } else {
            ProgressBar::hidden()
        };
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let progress = Self { terminal, bar };
        progress.show("{spinner} {msg}");
        progress
    }

    fn show(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }

    fn say(&self, say: impl FnOnce(&Terminal)) {
        self.bar.suspend(|| say(self.terminal));
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Found(found) => {
                let commit: String = found.commit.chars().take(8).collect();
                self.say(|terminal| {
                    terminal.note(format_args!("found {} at {commit}", found.repository))
                });
            }
            Event::Fetching { total } => {
                self.bar.set_length(*total);
                self.show("{bar:30} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left");
                if self.bar.is_hidden() {
                    self.terminal
                        .note(format_args!("fetching {}", bytes(*total)));
                }
            }
            Event::Progress { done, .. } => self.bar.set_position(*done),
            Event::Retry { reason, wait } => self.say(|terminal| {
                terminal.note(format_args!(
                    "{reason}; trying again in {:.1} s",
                    wait.as_secs_f64()
                ));
            }),
            Event::Waiting => self
                .say(|terminal| terminal.note("waiting for another process that pulls the same")),
            Event::Converting => {
                self.show("{spinner} {msg}");
                self.bar.set_message("converting");
                if self.bar.is_hidden() {
                    self.terminal.note("converting");
                }
            }
            _ => {}
        }
    }
}
