//! From which language to which, where no model is named: said by the user, or found out from the text.
//!
//! It is decided once, before the first line is translated; [`super::input`] looks ahead for it.

use attentive_models::{ALL, BuiltIn, find};
use attentive_runtime::translator::Translation;
use attentive_text::language::{Detected, Language, detect};
use attentive_text::lines::is_blank;
use clap::Args;

use super::Answers;
use super::input::{Input, Pace};
use crate::exit::Ending;
use crate::model::built_in_names;
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
    /// The model that was asked for; nothing if the text must decide.
    pub fn asked(&self) -> Result<Option<&'static BuiltIn>, Ending> {
        let Self { from, to } = *self;
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        let fits = |model: &&BuiltIn| {
            from.is_none_or(|from| from == model.from) && to.is_none_or(|to| to == model.to)
        };
        match ALL.iter().find(fits) {
            Some(model) => Ok(Some(model)),
            None => Err(Ending::Usage(format!(
                "no built-in model translates like this; there are {}",
                built_in_names()
            ))),
        }
    }
}

/// The model for the language of the first lines, which stay to be read, and says which it is where
/// that helps. Blank lines before them are answered, as someone may wait for that.
pub fn found_out(input: &mut Input, answers: &mut Answers<'_>) -> anyhow::Result<&'static BuiltIn> {
    let mut text = input.look_ahead();
    while input.pace == Pace::Line && !text.is_empty() && is_blank(&text) {
        if let Some(line) = input.next() {
            answers.add(&line?.text, &Translation::empty())?;
        }
        text = input.look_ahead();
    }
    let detected = detect(&text);
    let from = detected.language().unwrap_or(ALL[0].from);
    let model = find(from, from.other()).unwrap_or(&ALL[0]);
    answers.say(|terminal| tell(detected, model, terminal));
    Ok(model)
}

/// Says what was found out: a warning if that is not sure, and a note where a person sees it.
fn tell(detected: Detected, model: &BuiltIn, terminal: &Terminal) {
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
