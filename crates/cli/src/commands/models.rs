//! `attentive models`: the models that translate between languages, those of the program and those that were
//! pulled; `attentive models remove` removes one.

use std::io::Write;

use attentive_hub::{ModelName, Store, StoredModel};
use attentive_models::{ALL, BuiltIn};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::bytes;

/// Arguments of `models`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
    /// A JSON array instead of text
    #[arg(long)]
    json: bool,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
enum ModelsCommand {
    /// Remove models that were pulled
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove {
        /// Which models: as `attentive models` lists them, or a pair of languages
        #[arg(value_name = "NAME", required = true)]
        names: Vec<ModelName>,
    },
}

const EXAMPLES: &str = "\
Examples:
  attentive models
  attentive models --json
  attentive models remove fr-en
  attentive pull fr-en";

const REMOVE_EXAMPLES: &str = "\
Examples:
  attentive models remove fr-en
  attentive models remove Helsinki-NLP/opus-mt-fr-en

What the hub's cache holds stays there; other programs may use it.";

/// Lists or removes.
pub fn run(args: ModelsArgs, terminal: &Terminal) -> anyhow::Result<()> {
    match args.command {
        Some(ModelsCommand::Remove { names }) => {
            let store = Store::from_env()?;
            for name in &names {
                let removed = store.remove(name)?;
                terminal.note(format_args!("removed {removed}"));
            }
            Ok(())
        }
        None => list(args.json, terminal),
    }
}

fn list(json: bool, terminal: &Terminal) -> anyhow::Result<()> {
    let store = Store::from_env()?;
    let mut rows: Vec<Row> = ALL.iter().map(Row::of_built_in).collect();
    for (name, model) in store.list()? {
        match model {
            Ok(model) => rows.push(Row::of(&model)),
            Err(error) => terminal.warn(format_args!(
                "{name} is damaged: {error}\n`attentive models remove {name}` removes it, `attentive pull {name}` \
                 fetches it again"
            )),
        }
    }
    let mut output = Output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut output, &rows)?;
        writeln!(output)?;
    } else {
        for row in &rows {
            writeln!(output, "{}", row.line())?;
        }
    }
    output.finish()
}

/// A model in the list.
#[derive(Debug, Serialize)]
pub struct Row {
    name: String,
    from: Option<String>,
    to: Option<String>,
    /// All languages that a model of several targets writes; `--to` chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<String>,
    bytes: u64,
    precision: &'static str,
    license: Option<String>,
    origin: Option<String>,
    folder: Option<std::path::PathBuf>,
}

impl Row {
    /// A model that was pulled.
    pub fn of(model: &StoredModel) -> Self {
        let (from, to) = model.languages.clone().unzip();
        let choices = || model.choices.iter().cloned();
        Self {
            name: model.name.to_string(),
            from: from.or_else(|| Some(choices().next()?.0)),
            to,
            targets: choices().map(|(_, to)| to).collect(),
            bytes: model.bytes,
            precision: model.precision,
            license: model.license.clone(),
            origin: model.origin.clone(),
            folder: Some(model.folder.clone()),
        }
    }

    fn of_built_in(model: &BuiltIn) -> Self {
        Self {
            name: model.name.to_owned(),
            from: Some(model.from.code().to_owned()),
            to: Some(model.to.code().to_owned()),
            targets: Vec::new(),
            bytes: model.bytes() as u64,
            precision: "int8",
            license: None,
            origin: Some("part of the program".to_owned()),
            folder: None,
        }
    }

    /// Name, languages, size, precision, licence, origin; `?` for what is not known.
    pub fn line(&self) -> String {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        let to = match &self.targets[..] {
            [] => or_unknown(&self.to),
            targets => targets.join(", "),
        };
        let languages = format!("{} to {to}", or_unknown(&self.from));
        let (size, license) = (bytes(self.bytes), or_unknown(&self.license));
        let origin = or_unknown(&self.origin);
        format!(
            "{:<34}  {languages:<10}  {size:>9}  {:<4}  {license:<10}  {origin}",
            self.name, self.precision
        )
    }
}
