//! What every request of this API says: texts, languages or a model, and a key.

use std::sync::Arc;

use axum::extract::Request;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::body::Fields;
use crate::models::{Direction, Guess, Served};
use crate::refusal::{Refusal, invalid};

/// Fields that are texts.
const TEXTS: [&str; 7] = [
    "source",
    "target",
    "model",
    "format",
    "prefix",
    "translation",
    "api_key",
];

/// A request that was understood.
pub(super) struct Question {
    pub fields: Fields,
    pub texts: Vec<String>,
    pub source: String,
    pub target: String,
    pub detected: Option<Guess>,
    pub direction: Direction,
}

impl Question {
    /// Reads a request, checks its key and its size, and chooses the model.
    pub async fn read(app: &Arc<App>, request: Request) -> Result<Self, Refusal> {
        let fields = Fields::read(request, &app.options.limits).await?;
        fields.check_texts(&TEXTS)?;
        let field = fields.text("api_key");
        app.check_key(fields.authorization("bearer").or(field.as_deref()))?;
        let texts = fields.all("text").into_iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts: Option<Vec<String>> = texts.map(text).collect();
        let texts = texts.filter(|texts| !texts.is_empty());
        let texts = texts.ok_or_else(|| invalid("text is missing: a text, or a list of texts"))?;
        let limits = &app.options.limits;
        if texts.len() > limits.texts {
            let (found, most) = (texts.len(), limits.texts);
            return Err(invalid(format!(
                "{found} texts, and at most {most} are taken"
            )));
        }
        let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
        if characters > limits.characters {
            let most = limits.characters;
            return Err(invalid(format!(
                "{characters} characters, and at most {most} are taken"
            )));
        }
        Self::choose(app, fields, texts).await
    }

    async fn choose(app: &App, fields: Fields, texts: Vec<String>) -> Result<Self, Refusal> {
        let registry = app.registry().await?;
        if let Some(name) = fields.text("model") {
            let model = registry.named(&name);
            let model = model.ok_or_else(|| invalid(format!("there is no model named {name}")))?;
            for (field, own) in [("source", &model.source), ("target", &model.target)] {
                let asked = fields.text(field).filter(|code| code != "auto");
                if asked.is_some_and(|code| registry.known(&code).as_ref() != Some(own)) {
                    return Err(invalid(format!(
                        "{field}: that of the model {name} is {own}"
                    )));
                }
            }
            return Ok(Self {
                fields,
                texts,
                source: model.source.clone(),
                target: model.target.clone(),
                detected: None,
                direction: Direction::Model(model),
            });
        }
        let known = |field: &str, code: String| {
            let known = registry.known(&code);
            known.ok_or_else(|| invalid(format!("{field}: {code} is not supported")))
        };
        let asked = fields.text("source").filter(|code| code != "auto");
        let (source, detected) = match asked {
            Some(code) => (known("source", code)?, None),
            None => {
                let guess = registry.detect(&texts.join("\n")).into_iter().next();
                let guess = guess.ok_or(Refusal::NotReady("there are no models"))?;
                (guess.language.clone(), Some(guess))
            }
        };
        let target = match fields.text("target") {
            Some(code) => known("target", code)?,
            None => {
                let mut targets = registry.targets(&source).into_iter();
                let other = targets.find(|target| *target != source);
                other.ok_or_else(|| invalid(format!("no model translates from {source}")))?
            }
        };
        let direction = registry.direction(&source, &target)?;
        Ok(Self {
            fields,
            texts,
            source,
            target,
            detected,
            direction,
        })
    }

    /// The model, where there must be one, and the only text.
    pub fn one_sentence(&mut self) -> Result<(Arc<Served>, String), Refusal> {
        let Direction::Model(model) = &self.direction else {
            return Err(invalid("source and target are the same language"));
        };
        match &mut self.texts[..] {
            [text] if !text.trim().is_empty() => Ok((Arc::clone(model), std::mem::take(text))),
            _ => Err(invalid("text must be one sentence")),
        }
    }

    /// How the answer begins.
    pub fn head(&self) -> Value {
        let mut head = json!({});
        if let Direction::Model(model) = &self.direction {
            head["model"] = json!(model.name);
        }
        head["source"] = json!(self.source);
        head["target"] = json!(self.target);
        if let Some(guess) = &self.detected {
            head["detected"] = json!(guess);
        }
        head
    }

    /// A number within bounds.
    pub fn number(
        &self,
        name: &str,
        bounds: std::ops::RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize, Refusal> {
        let number = self.fields.number(name)?.unwrap_or(default);
        if bounds.contains(&number) {
            return Ok(number);
        }
        let (least, most) = bounds.into_inner();
        Err(invalid(format!("{name} must be from {least} to {most}")))
    }
}
