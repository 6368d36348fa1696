//! Glossaries: created, listed, shown and deleted, and applied to translations. They are in memory, and gone when the
//! server ends. Terms are matched and required as `attentive_text::glossary` and the search do it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use attentive_text::glossary::csv_columns;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::{answer_json, language, read};
use crate::app::App;
use crate::files::random_id;
use crate::http::answer;
use crate::http::body::Fields;
use crate::languages::base;
use crate::refusal::{Refusal, invalid};

/// A glossary as clients see it.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Glossary {
    pub glossary_id: String,
    pub name: String,
    pub ready: bool,
    pub source_lang: String,
    pub target_lang: String,
    pub creation_time: String,
    pub entry_count: usize,
    /// Pairs of terms, in the order of the sources.
    #[serde(skip)]
    pub entries: Arc<BTreeMap<String, String>>,
}

/// All glossaries.
#[derive(Debug, Default)]
pub struct Glossaries(Mutex<Vec<Glossary>>);

const MOST_GLOSSARIES: usize = 1000;
const MOST_BYTES: usize = 64 << 20;

impl Glossaries {
    /// The glossary with an id.
    pub fn get(&self, id: &str) -> Option<Glossary> {
        let glossaries = self.lock();
        let found = glossaries.iter().find(|one| one.glossary_id == id);
        found.cloned()
    }

    fn add(&self, glossary: Glossary) -> Result<(), Refusal> {
        let bytes = |one: &Glossary| -> usize {
            let entries = one.entries.iter();
            entries
                .map(|(source, target)| 100 + source.len() + target.len())
                .sum()
        };
        let mut glossaries = self.lock();
        let all: usize = glossaries.iter().map(bytes).sum();
        if glossaries.len() >= MOST_GLOSSARIES || all + bytes(&glossary) > MOST_BYTES {
            return Err(invalid("Too many glossaries: delete some of them."));
        }
        glossaries.push(glossary);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Glossary>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The glossary that a translation asks for, if it does; `source` is the language that was given.
pub(super) fn asked(
    app: &App,
    fields: &Fields,
    source: Option<&str>,
    target: &str,
) -> Result<Option<Arc<attentive_text::Glossary>>, Refusal> {
    let Some(id) = fields.text("glossary_id") else {
        return Ok(None);
    };
    let source = source.ok_or_else(|| invalid("A glossary needs 'source_lang'."))?;
    let glossary = app.glossaries.get(&id).ok_or(NOT_FOUND)?;
    if base(&glossary.source_lang) != base(source) || base(&glossary.target_lang) != base(target) {
        return Err(invalid("The glossary is for other languages."));
    }
    let pairs = glossary.entries.iter();
    let pairs = pairs.map(|(source, target)| (source.as_str(), target.as_str()));
    Ok(Some(Arc::new(attentive_text::Glossary::of_pairs(pairs))))
}

const NOT_FOUND: Refusal = Refusal::NotFound("There is no such glossary.");

/// Pairs of languages that a glossary may have.
pub async fn pairs(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        read(&app, request).await?;
        let registry = app.registry().await?;
        let models = registry.models().iter();
        let mut pairs: Vec<_> = models
            .map(|model| {
                (
                    base(&model.source).to_owned(),
                    base(&model.target).to_owned(),
                )
            })
            .collect();
        pairs.sort();
        pairs.dedup();
        let pair = |(source, target)| json!({"source_lang": source, "target_lang": target});
        let pairs: Vec<Value> = pairs.into_iter().map(pair).collect();
        Ok(json!({"supported_languages": pairs}))
    };
    answer_json(answer.await)
}

/// Creates one.
pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    let created = async {
        let fields = read(&app, request).await?;
        let registry = app.registry().await?;
        let field = |name: &str| {
            let missing = || invalid(format!("Parameter '{name}' not specified."));
            fields.text(name).ok_or_else(missing)
        };
        let code = |name: &str| -> Result<String, Refusal> {
            Ok(base(&language(&registry, name, &field(name)?)?).to_owned())
        };
        let entries = parse(&field("entries")?, &fields)?;
        let glossary = Glossary {
            glossary_id: random_id(),
            name: field("name")?,
            ready: true,
            source_lang: code("source_lang")?,
            target_lang: code("target_lang")?,
            creation_time: now(),
            entry_count: entries.len(),
            entries: Arc::new(entries),
        };
        app.glossaries.add(glossary.clone())?;
        Ok(glossary)
    };
    match created.await {
        Ok(glossary) => {
            let mut response = answer::json(&glossary);
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        Err(refusal) => Refusal::message(&refusal),
    }
}

/// All of them.
pub async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = read(&app, request).await;
    answer_json(answer.map(|_| json!({"glossaries": *app.glossaries.lock()})))
}

/// One of them.
pub async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let answer = read(&app, request).await;
    let answer = answer.and_then(|_| app.glossaries.get(&id).ok_or(NOT_FOUND));
    answer_json(answer.map(|glossary| json!(glossary)))
}

/// Its entries.
pub async fn entries(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let answer = read(&app, request).await;
    match answer.and_then(|_| app.glossaries.get(&id).ok_or(NOT_FOUND)) {
        Ok(glossary) => {
            let entries = glossary.entries.iter();
            let lines: Vec<_> = entries
                .map(|(source, target)| format!("{source}\t{target}"))
                .collect();
            answer::of_type("text/tab-separated-values", lines.join("\n"))
        }
        Err(refusal) => refusal.message(),
    }
}

/// Deletes it.
pub async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    if let Err(refusal) = read(&app, request).await {
        return refusal.message();
    }
    let mut glossaries = app.glossaries.lock();
    let before = glossaries.len();
    glossaries.retain(|one| one.glossary_id != id);
    if glossaries.len() == before {
        return NOT_FOUND.message();
    }
    answer::status(StatusCode::NO_CONTENT)
}

/// The entries of a new glossary.
fn parse(text: &str, fields: &Fields) -> Result<BTreeMap<String, String>, Refusal> {
    let rows: Vec<Vec<String>> = match fields.text("entries_format").as_deref() {
        None | Some("tsv") => {
            let rows = text.lines().filter(|line| !line.trim().is_empty());
            rows.map(|line| line.split('\t').map(str::to_owned).collect())
                .collect()
        }
        Some("csv") => text
            .lines()
            .filter(|l| !l.trim().is_empty())
            .map(csv_columns)
            .collect(),
        Some(_) => return Err(invalid("Value for 'entries_format' not supported.")),
    };
    let mut entries = BTreeMap::new();
    for (number, row) in (1..).zip(rows) {
        let problem = |what: &str| invalid(format!("Entry {number} of the glossary {what}."));
        // The third and fourth columns of CSV are the languages.
        let [source, target, ..] = &row[..] else {
            return Err(problem("has no target"));
        };
        let (source, target) = (source.trim(), target.trim());
        if source.is_empty() || target.is_empty() {
            return Err(problem("is empty"));
        }
        if row.len() > 4 || row.len() == 3 {
            return Err(problem("has too many columns"));
        }
        if entries
            .insert(source.to_owned(), target.to_owned())
            .is_some()
        {
            return Err(problem("has a source that occurs twice"));
        }
    }
    if entries.is_empty() {
        return Err(invalid("Parameter 'entries' not specified."));
    }
    Ok(entries)
}

/// The time as clients read it: `2021-08-03T14:16:18.329Z`.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    timestamp(since.as_secs(), since.subsec_millis())
}

fn timestamp(seconds: u64, millis: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days of a calendar whose years begin in March, so that the leap day comes last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 400 * era + year + u64::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(timestamp(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(timestamp(1_628_000_178, 329), "2021-08-03T14:16:18.329Z");
        assert_eq!(timestamp(1_798_761_599, 0), "2026-12-31T23:59:59.000Z");
    }
}
