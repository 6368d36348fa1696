//! From which language to which, where no model is named: said by the user, or detected from the text.
//!
//! Used by [`crate::commands`] `translate` and `attention`.

use std::path::Path;

use attentive_models::{ALL, BuiltIn, find};
use attentive_text::language::{self, Detected, Language};
use clap::Args;

use crate::exit::Ending;
use crate::model::{Choice, built_in_names};
use crate::terminal::Terminal;

/// The languages of the built-in models.
#[derive(Debug, Args)]
pub struct DirectionArgs {
    /// The language of the text: de or en [default: found out from the text]
    #[arg(long, value_name = "LANGUAGE", value_parser = language, conflicts_with = "model")]
    from: Option<Language>,
    /// The language to translate into: en or de [default: the other one]
    #[arg(long, value_name = "LANGUAGE", value_parser = language, conflicts_with = "model")]
    to: Option<Language>,
}

impl DirectionArgs {
    /// The model that `--model`, `--from` and `--to` name; nothing if the text must decide.
    pub fn asked(&self, model: Option<&Path>) -> Result<Option<Choice>, Ending> {
        let Self { from, to } = *self;
        if model.is_some() || (from.is_none() && to.is_none()) {
            return Ok(model.map(Choice::of));
        }
        let fits = |model: &&BuiltIn| {
            from.is_none_or(|from| from == model.from) && to.is_none_or(|to| to == model.to)
        };
        match ALL.iter().find(fits) {
            Some(model) => Ok(Some(Choice::BuiltIn(model))),
            None => Err(Ending::Usage(format!(
                "no built-in model translates like this; there are {}",
                built_in_names()
            ))),
        }
    }
}

/// The built-in model for the language of a text, and how sure that language is.
pub fn detect(text: &str) -> (&'static BuiltIn, Detected) {
    let detected = language::detect(text);
    let from = detected.language().unwrap_or(ALL[0].from);
    let model = find(from, from.other()).unwrap_or(&ALL[0]);
    (model, detected)
}

/// Says which language was detected: a warning if that is not sure, and a note where a person sees it.
pub fn tell(model: &BuiltIn, detected: Detected, terminal: &Terminal) {
    let (from, to) = (model.from, model.to);
    match detected {
        Detected::NoWords => {}
        Detected::Neither { .. } => terminal.warn(format_args!(
            "this looks neither like German nor like English; it is translated as if it were {from} \
             (--from says what it is)"
        )),
        Detected::Likely { sure, .. } if sure < SURE => terminal.warn(format_args!(
            "this may be German or English; it is translated from {from} to {to} (--from {} would \
             turn that round)",
            to.code()
        )),
        Detected::Likely { .. } if terminal.can_draw() => {
            terminal.note(format_args!("from {from} to {to} (--from and --to choose)"));
        }
        Detected::Likely { .. } => {}
    }
}

/// Below this probability the user should have a look.
const SURE: f64 = 0.75;

fn language(name: &str) -> Result<Language, String> {
    let unknown = |error| format!("{error}; the built-in models are {}", built_in_names());
    name.parse().map_err(unknown)
}
