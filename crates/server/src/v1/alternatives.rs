//! `POST /v1/alternatives`: other words at one place of a translation, each with what follows from it.
//!
//! The model says which tokens may come after the prefix; each of them is then a prefix of its own, and all are
//! searched for together.

use std::sync::Arc;

use attentive_runtime::inspection::Inspect;
use attentive_runtime::translator::{SplitLine, Translation, WithPrefix};
use attentive_text::special::SPECIALS;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer_json;
use super::question::Question;
use super::translate::MOST_TOP;
use crate::app::App;
use crate::http::client::Client;
use crate::languages::has_spaces;
use crate::models::Served;
use crate::refusal::{Refusal, invalid};
use crate::scheduler::Task;

/// Answers.
pub async fn alternatives(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let mut question = Question::read(&app, request).await?;
        let top = question.number("top", 1..=MOST_TOP, 8)?;
        let (model, text) = question.one_sentence()?;
        let prefix = question.fields.text("prefix").unwrap_or_default();
        let line = WithPrefix {
            text,
            prefix: prefix.trim().to_owned(),
        };
        let mut answer = question.head();
        let client = app.client(&question.fields);
        answer["alternatives"] = words(&app, client, model, line, top).await?;
        Ok(answer)
    };
    answer_json(answer.await)
}

async fn words(
    app: &Arc<App>,
    client: Client,
    model: Arc<Served>,
    line: WithPrefix,
    top: usize,
) -> Result<Value, Refusal> {
    let translator = Arc::clone(model.translator());
    let prefix = line.prefix.clone();
    let asked = app.inspect(move || {
        let split = translator.split(&line);
        let next = next_tokens(&split, &translator, top);
        (split, next)
    });
    let (split, next) = asked.await?;
    let split = Arc::new(split);
    if split.len() != 1 || next.is_empty() {
        return Err(invalid("text must be one sentence with words in it"));
    }
    let task = |(place, (id, _)): (usize, &(u32, f32))| Task {
        place,
        line: Arc::clone(&split),
        sentence: 0,
        prefix: vec![*id],
        details: None,
    };
    let tasks: Vec<Task> = next.iter().enumerate().map(task).collect();
    let mut found = app.search(client, model.translator(), tasks).await?;
    found.sort_by_key(|answer| answer.place);

    let mut words: Vec<String> = Vec::new();
    let mut list = Vec::new();
    for answer in found {
        let (id, logprob) = next[answer.place];
        let Translation {
            text,
            score,
            log_prob,
            ..
        } = answer.translation;
        let rest = text.strip_prefix(&prefix).unwrap_or(&text);
        let rest = rest.trim_start();
        let word = if has_spaces(&model.target) {
            rest.split_whitespace().next().unwrap_or_default()
        } else {
            // Where no spaces are written, a word is a token of the model.
            let token = model.translator().tokenizers().tgt.decode(&[id]);
            let letters = token.trim().chars().count().max(1);
            let end = rest.char_indices().nth(letters);
            &rest[..end.map_or(rest.len(), |(end, _)| end)]
        };
        let word = word.to_owned();
        if words.contains(&word) {
            continue;
        }
        list.push(json!({
            "word": word,
            "probability": logprob.exp(),
            "text": text,
            "score": score,
            "logprob": log_prob,
        }));
        words.push(word);
    }
    Ok(list.into())
}

/// The most probable tokens after the prefix of a sentence, without special ones.
fn next_tokens(
    split: &SplitLine,
    translator: &attentive_runtime::Translator,
    top: usize,
) -> Vec<(u32, f32)> {
    let request = (split.len() == 1).then(|| split.request(0)).flatten();
    let Some((request, (_end, source))) =
        request.and_then(|request| Some((request, request.source.split_last()?)))
    else {
        return Vec::new();
    };
    let asked = top + SPECIALS.len();
    let inspection = translator.model().inspect(source, &request.prefix, asked);
    let last = inspection.predictions.into_iter().next_back();
    let candidates = last.map(|prediction| prediction.candidates);
    let written = |&(id, _): &(u32, f32)| id as usize >= SPECIALS.len();
    let candidates = candidates.unwrap_or_default().into_iter().filter(written);
    candidates.take(top).collect()
}
