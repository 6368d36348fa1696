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
        let token = model.translator().tokenizers().tgt.decode(&[id]);
        let word = first_word(rest, &token, &model.target);
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

/// The word that a text begins with, whose first token is `token`. Where no spaces are written, a word is a token.
fn first_word(text: &str, token: &str, language: &str) -> String {
    let text = text.trim_start();
    if has_spaces(language) {
        let word = text.split_whitespace().next();
        return word.unwrap_or_default().to_owned();
    }
    let letters = token.trim().chars().count().max(1);
    text.chars().take(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_at_a_space_or_where_none_are_written_with_its_token() {
        assert_eq!(first_word(" running fast", "run", "en"), "running");
        assert_eq!(first_word("", "run", "en"), "");
        assert_eq!(first_word("我们去公园。", "我们", "zh"), "我们");
        assert_eq!(first_word("公園へ行く", " 公園", "ja"), "公園");
        assert_eq!(first_word("公園", "", "zh-Hans"), "公");
    }
}
