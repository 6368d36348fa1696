//! From which language to which, where no model is named: said by the user, or detected from the text.
//!
//! The models are those that are part of the program and those that were pulled (`attentive-hub`); two are chained
//! through English where there is no direct one. Used by [`crate::commands`] `translate` and `attention`.

use std::path::Path;

use attentive_hub::Store;
use attentive_hub::route::{self, Direction, Route};
use attentive_models::ALL;
use attentive_text::language::{self, Detector, Language};
use clap::Args;

use crate::exit::Ending;
use crate::model::{self, Choice};
use crate::terminal::Terminal;

/// The languages of the models.
#[derive(Debug, Args)]
pub struct DirectionArgs {
    /// The language of the text, as a code: de, en, or that of a model that was pulled [default: found out
    /// from the text]
    #[arg(long, value_name = "LANGUAGE", value_parser = code, conflicts_with = "model")]
    from: Option<String>,
    /// The language to translate into, as a code; with --model one of those that a model of several writes [default:
    /// English, and German for English]
    #[arg(long, value_name = "LANGUAGE", value_parser = code)]
    to: Option<String>,
}

/// A way from a language that a text may be in.
struct Way {
    from: String,
    to: String,
    route: Route<Choice>,
}

impl DirectionArgs {
    /// The way that `--model`, `--from` and `--to` name; nothing if the text must decide.
    pub fn asked(
        &self,
        model: Option<&Path>,
        terminal: &Terminal,
    ) -> anyhow::Result<Option<Route<Choice>>> {
        if model.is_some() || (self.from.is_none() && self.to.is_none()) {
            let choice = model
                .map(|model| model::of_any(model, terminal))
                .transpose()?;
            let into = |choice: Choice| match &self.to {
                Some(to) => Choice::Into(Box::new(choice), to.clone()),
                None => choice,
            };
            return Ok(choice.map(into).map(Route::Direct));
        }
        let models = available(terminal)?;
        let mut ways = self.ways(&models);
        match ways.len() {
            0 => Err(Ending::Usage(self.nothing(&models)).into()),
            1 => Ok(Some(ways.remove(0).take(terminal))),
            _ => Ok(None),
        }
    }

    /// The way from the language of a text. Says which language that is: a warning if that is not sure, and a note
    /// where a person sees it.
    pub fn detect(&self, text: &str, terminal: &Terminal) -> anyhow::Result<Route<Choice>> {
        let mut ways = self.ways(&available(terminal)?);
        let detector = Detector::new(ways.iter().map(|way| way.from.as_str()));
        let detection = detector.detect(text);
        let code = detection.best().map(|best| best.language);
        let best = ways.iter().position(|way| Some(way.from.as_str()) == code);
        let way = ways.swap_remove(best.unwrap_or(0));

        let name = |code| language::name(code).unwrap_or(code).to_owned();
        let (from, to) = (name(&way.from), name(&way.to));
        let in_play: f64 = detection.ranked.iter().map(|guess| guess.confidence).sum();
        match (detection.other, &detection.ranked[..]) {
            (Some(other), _) => terminal.warn(format_args!(
                "this looks like {}, which no model here reads; it is translated as if it were {from} \
                 (--from says what it is, and `attentive pull {other}-{}` may find a model)",
                name(other),
                language::canonical(self.to.as_deref().unwrap_or(ENGLISH))
            )),
            (None, [best, second, ..]) if best.confidence / in_play < SURE => {
                terminal.warn(format_args!(
                    "this may be {from} or {}; it is translated from {from} to {to} (--from {} would \
                     change that)",
                    name(second.language),
                    second.language
                ));
            }
            (None, [_, ..]) if terminal.can_draw() => {
                terminal.note(format_args!("from {from} to {to} (--from and --to choose)"));
            }
            (None, _) => {}
        }
        Ok(way.take(terminal))
    }

    /// One way from each language that the text may be in.
    fn ways(&self, models: &[Direction<Choice>]) -> Vec<Way> {
        let mut sources: Vec<&str> = Vec::new();
        for model in models {
            let wanted = self
                .from
                .as_ref()
                .is_none_or(|from| route::same(from, &model.from));
            if wanted
                && !sources
                    .iter()
                    .any(|source| route::same(source, &model.from))
            {
                sources.push(&model.from);
            }
        }
        let way = |from: &str| {
            let to = self.to.clone().or_else(|| usual_target(models, from))?;
            let route = route::route(models, from, &to)?;
            let from = from.to_owned();
            Some(Way { from, to, route })
        };
        sources.into_iter().filter_map(way).collect()
    }

    /// Says that there is no such model, which there are, and which may be fetched.
    fn nothing(&self, models: &[Direction<Choice>]) -> String {
        let side =
            |word, code: &Option<String>| code.as_ref().map(|code| format!(" {word} {code}"));
        let (from, to) = (side("from", &self.from), side("to", &self.to));
        let mut names: Vec<String> = models.iter().map(|model| model.model.name()).collect();
        names.dedup(); // A model of several targets is several directions.
        let mut message = format!(
            "no model translates{}{}; there are {}",
            from.unwrap_or_default(),
            to.unwrap_or_default(),
            names.join(", ")
        );
        let from = self.from.as_deref().unwrap_or(ENGLISH);
        let to = language::canonical(self.to.as_deref().unwrap_or(ENGLISH));
        if !route::same(from, &to) {
            message.push_str(&format!("; `attentive pull {from}-{to}` may find one"));
        }
        message
    }
}

impl Way {
    /// The models, after the user was told that they are two.
    fn take(self, terminal: &Terminal) -> Route<Choice> {
        if let Route::ThroughEnglish(first, second) = &self.route {
            terminal.note(format_args!(
                "no model translates from {} to {} directly: {} is followed by {}, through English",
                self.from,
                self.to,
                first.name(),
                second.name()
            ));
        }
        self.route
    }
}

/// All models whose languages are known, those of the program first.
fn available(terminal: &Terminal) -> anyhow::Result<Vec<Direction<Choice>>> {
    let built_in = ALL.iter().map(|model| Direction {
        from: model.from.code().to_owned(),
        to: model.to.code().to_owned(),
        model: Choice::BuiltIn(model),
    });
    let mut models: Vec<_> = built_in.collect();
    // Where there is no folder for models, none were pulled.
    let Ok(store) = Store::from_env() else {
        return Ok(models);
    };
    for (name, model) in store.list()? {
        match model {
            Ok(model) => {
                let several = model.choices.iter().map(|(from, to)| {
                    let chosen = Choice::Into(Box::new(Choice::Pulled(model.clone())), to.clone());
                    (from, to, chosen)
                });
                let one = model.languages.iter();
                let one = one.map(|(from, to)| (from, to, Choice::Pulled(model.clone())));
                models.extend(one.chain(several).map(|(from, to, model)| Direction {
                    from: language::canonical(from),
                    to: language::normalized(to),
                    model,
                }));
            }
            Err(error) => terminal.warn(format_args!("{name} is left out: {error}")),
        }
    }
    Ok(models)
}

/// English if a model writes it, else what the first model writes.
fn usual_target(models: &[Direction<Choice>], from: &str) -> Option<String> {
    let targets = || {
        models
            .iter()
            .filter(|model| route::same(&model.from, from))
            .map(|model| &model.to)
    };
    let english = targets().find(|to| route::same(to, ENGLISH));
    english.or_else(|| targets().next()).cloned()
}

const ENGLISH: &str = "en";

/// Below this probability the user should have a look.
const SURE: f64 = 0.75;

/// The code of a language that has a name here, else what may be a code.
fn code(name: &str) -> Result<String, String> {
    if let Ok(known) = name.parse::<Language>() {
        return Ok(known.code().to_owned());
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let code = language::normalized(name);
    if name.chars().all(letters) && code.len() >= 2 {
        Ok(code)
    } else {
        Err("a language is a code such as `fr` or `pt_BR`".to_owned())
    }
}
