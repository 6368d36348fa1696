//! `POST /v2/translate`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use attentive_text::markup::{Outline, XmlTags};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::{answer_json, glossaries, language, read};
use crate::app::App;
use crate::http::body::Fields;
use crate::languages::base;
use crate::markup::{self, Format};
use crate::models::Registry;
use crate::refusal::{Refusal, invalid};
use crate::translating::Wish;

/// Fields that are texts.
const TEXTS: [&str; 7] = [
    "target_lang",
    "source_lang",
    "split_sentences",
    "formality",
    "model_type",
    "tag_handling",
    "glossary_id",
];

/// Answers.
pub async fn translate(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let fields = read(&app, request).await?;
        translated(&app, &fields).await
    };
    answer_json(answer.await)
}

async fn translated(app: &Arc<App>, fields: &Fields) -> Result<Value, Refusal> {
    fields.check_texts(&TEXTS)?;
    let texts = texts(app, fields)?;
    let registry = app.registry().await?;
    let target = fields.text("target_lang");
    let target = target.ok_or_else(|| invalid("Value for 'target_lang' not supported."))?;
    let target = language(&registry, "target_lang", &target)?;
    let source = fields.text("source_lang");
    let source = source.map(|code| language(&registry, "source_lang", &code));
    let source = source.transpose()?;
    let style = Style::read(fields)?;
    let glossary = glossaries::asked(app, fields, source.as_deref(), &target)?;

    // Each text has its own language, if none is given; those of one language are translated together.
    let mut by_source: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, text) in texts.iter().enumerate() {
        let source = source.clone().unwrap_or_else(|| detected(&registry, text));
        by_source.entry(source).or_default().push(place);
    }
    let mut answers = vec![Value::Null; texts.len()];
    for (source, places) in by_source {
        let direction = registry.direction(&source, &target)?;
        let own = places.iter().map(|&place| style.prepared(&texts[place]));
        let wish = Wish {
            whole_lines: style.split == Split::Never,
            client: app.client(fields),
            glossary: glossary.clone(),
            ..Wish::default()
        };
        let found =
            markup::translate(app, &direction, style.format.clone(), own.collect(), wish).await?;
        for (place, one) in places.into_iter().zip(found) {
            let mut answer = json!({
                "detected_source_language": base(&source).to_uppercase(),
                "text": one.translation.text,
                "billed_characters": texts[place].chars().count(),
            });
            if let Some(model_type) = &style.model_type {
                answer["model_type_used"] = json!(model_type);
            }
            if style.format != Format::Text {
                answer["tag_handling_version"] = json!("v1");
            }
            answers[place] = answer;
        }
    }
    let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
    app.characters
        .fetch_add(characters as u64, Ordering::Relaxed);
    Ok(json!({"translations": answers}))
}

fn texts(app: &App, fields: &Fields) -> Result<Vec<String>, Refusal> {
    let texts = fields.all("text").into_iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = texts.map(text).collect();
    let texts = texts.filter(|texts| !texts.is_empty());
    let texts = texts.ok_or_else(|| invalid("Parameter 'text' not specified."))?;
    let limits = &app.options.limits;
    let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
    if texts.len() > limits.texts || characters > limits.characters {
        return Err(Refusal::TooLarge(limits.characters));
    }
    Ok(texts)
}

fn detected(registry: &Registry, text: &str) -> String {
    let guess = registry.detect(text).into_iter().next();
    guess.map(|guess| guess.language).unwrap_or_default()
}

/// How texts are to be translated.
struct Style {
    split: Split,
    format: Format,
    model_type: Option<String>,
}

/// What the tags of an XML document do. Lists come as lists, or as names with commas between them.
fn xml_tags(fields: &Fields) -> Result<XmlTags, Refusal> {
    let list = |name: &str| -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        for value in fields.all(name) {
            let text = value
                .as_str()
                .ok_or_else(|| invalid(format!("Value for '{name}' not supported.")))?;
            let own = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            names.extend(own.map(str::to_owned));
        }
        Ok(names)
    };
    let is_listed =
        fields.get("outline_detection").is_some() && !fields.flag("outline_detection")?;
    Ok(XmlTags {
        splitting: list("splitting_tags")?,
        non_splitting: list("non_splitting_tags")?,
        ignored: list("ignore_tags")?,
        outline: if is_listed {
            Outline::Listed
        } else {
            Outline::Detected
        },
    })
}

/// Where a text is split into sentences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    /// Nowhere.
    Never,
    /// At punctuation and at line breaks.
    Sentences,
    /// At punctuation alone.
    WithoutLines,
}

impl Style {
    fn read(fields: &Fields) -> Result<Self, Refusal> {
        let format = match fields.text("tag_handling").as_deref() {
            None => Format::Text,
            Some("html") => Format::Html,
            Some("xml") => Format::Xml(xml_tags(fields)?),
            Some(_) => return Err(invalid("Value for 'tag_handling' not supported.")),
        };
        let split = match (fields.text("split_sentences").as_deref(), &format) {
            (Some("0"), _) => Split::Never,
            (Some("nonewlines"), _) | (None, Format::Html) => Split::WithoutLines,
            (None | Some("1"), _) => Split::Sentences,
            _ => return Err(invalid("Value for 'split_sentences' not supported.")),
        };
        match fields.text("formality").as_deref() {
            None | Some("default" | "prefer_more" | "prefer_less") => {}
            Some("more" | "less") => {
                return Err(invalid(
                    "'formality' is not supported for given 'target_lang'.",
                ));
            }
            Some(_) => return Err(invalid("Value for 'formality' not supported.")),
        }
        let model_type = match fields.text("model_type").as_deref() {
            None => None,
            Some("quality_optimized" | "prefer_quality_optimized") => Some("quality_optimized"),
            Some("latency_optimized") => Some("latency_optimized"),
            Some(_) => return Err(invalid("Value for 'model_type' not supported.")),
        };
        Ok(Self {
            split,
            format,
            model_type: model_type.map(str::to_owned),
        })
    }

    fn prepared(&self, text: &str) -> String {
        match self.split {
            // White space between tags stays, and within a text a line break is a space.
            _ if self.format != Format::Text => text.to_owned(),
            Split::Sentences => text.to_owned(),
            Split::Never | Split::WithoutLines => {
                text.replace("\r\n", " ").replace(['\n', '\r'], " ")
            }
        }
    }
}
