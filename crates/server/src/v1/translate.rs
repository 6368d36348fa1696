//! `POST /v1/translate`: translations with everything they are made of, at once or sentence by sentence.

use std::convert::Infallible;
use std::sync::Arc;

use attentive_runtime::translator::{Alternative, Translation};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use super::answer_json;
use super::question::Question;
use crate::app::App;
use crate::http::answer;
use crate::markup::{self, Format};
use crate::models::Direction;
use crate::refusal::{Refusal, invalid};
use crate::translating::{Sentence, Translated, Translating, Wish};

/// Answers.
pub async fn translate(State(app): State<Arc<App>>, request: Request) -> Response {
    let asked = async {
        let question = Question::read(&app, request).await?;
        let format = Format::named(question.fields.text("format").as_deref())?;
        let stream = question.fields.flag("stream")?;
        let most = app.options.limits.alternatives;
        let details = question.fields.flag("tokens")?;
        let top = question.number("top", 0..=MOST_TOP, 5)?;
        let wish = Wish {
            n_best: 1 + question.number("alternatives", 0..=most, 0)?,
            alignments: question.fields.flag("alignments")?,
            whole_lines: false,
            markup: false,
            details: details.then_some(top),
            prefix: question.fields.text("prefix").unwrap_or_default(),
        };
        if stream && format != Format::Text {
            return Err(invalid("only plain text can be streamed"));
        }
        Ok((question, format, stream, wish))
    };
    match asked.await {
        Err(refusal) => refusal.error(),
        Ok((question, _, true, wish)) => streamed(&app, question, wish).await,
        Ok((question, format, false, wish)) => {
            answer_json(whole(&app, question, format, wish).await)
        }
    }
}

/// The most alternatives for a token.
pub(super) const MOST_TOP: usize = 20;

async fn whole(
    app: &Arc<App>,
    mut question: Question,
    format: Format,
    wish: Wish,
) -> Result<Value, Refusal> {
    let texts = std::mem::take(&mut question.texts);
    let translated = markup::translate(app, &question.direction, format, texts, wish).await?;
    let mut answer = question.head();
    answer["translations"] = translations(&translated, Sentences::Shown);
    Ok(answer)
}

/// Whether an answer lists its sentences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sentences {
    Shown,
    Left,
}

fn translations(translated: &[Translated], sentences: Sentences) -> Value {
    let one = |(number, text): (usize, &Translated)| {
        let mut value = json!({"text": text.translation.text});
        add_scores(&mut value, &text.translation);
        if sentences == Sentences::Shown {
            let shown = text.sentences.iter().enumerate();
            let shown = shown.map(|(place, one)| sentence(one, number, place));
            value["sentences"] = shown.collect();
        }
        value
    };
    translated.iter().enumerate().map(one).collect()
}

fn add_scores(value: &mut Value, translation: &Translation) {
    let alternative = |other: &Alternative| json!({"text": other.text, "score": other.score, "logprob": other.log_prob});
    let alternatives = translation.alternatives.iter().map(alternative);
    value["score"] = json!(translation.score);
    value["logprob"] = json!(translation.log_prob);
    value["alternatives"] = alternatives.collect();
}

fn sentence(sentence: &Sentence, text: usize, place: usize) -> Value {
    let empty = Translation::empty();
    let translation = sentence.translation.as_ref().unwrap_or(&empty);
    let mut value = json!({
        "text": text,
        "sentence": place,
        "source": sentence.source,
        "gap": sentence.gap,
        "translation": translation.text,
    });
    add_scores(&mut value, translation);
    if let Some(links) = &translation.alignment {
        value["alignment"] = json!(links);
    }
    if let Some(details) = &sentence.details {
        value["tokens"] = json!(details.tokens);
    }
    value["truncated"] = json!(translation.truncated.unwrap_or(0));
    value["unknown"] = json!(translation.unknown);
    value["looped"] = json!(translation.repetition_blocked);
    value
}

/// What a stream of events does next.
enum Next {
    Start(Translating, Value),
    Sentence(Translating, Value),
    End,
}

async fn streamed(app: &Arc<App>, mut question: Question, wish: Wish) -> Response {
    let head = question.head();
    let texts = std::mem::take(&mut question.texts);
    let Direction::Model(model) = &question.direction else {
        let unchanged: Vec<Translated> = texts.into_iter().map(Translated::unchanged).collect();
        return events(stream::iter([
            event("start", &head),
            done(head, &unchanged),
        ]));
    };
    match Translating::begin(app, model, texts, wish).await {
        Err(refusal) => refusal.error(),
        Ok(translating) => events(stream::unfold(Next::Start(translating, head), next)),
    }
}

async fn next(state: Next) -> Option<(Result<Bytes, Infallible>, Next)> {
    let (mut translating, head) = match state {
        Next::Start(translating, head) => {
            return Some((event("start", &head), Next::Sentence(translating, head)));
        }
        Next::Sentence(translating, head) => (translating, head),
        Next::End => return None,
    };
    Some(match translating.next().await {
        Ok(Some(place)) => {
            let found = translating.sentence(place);
            let value = sentence(found, found.text, translating.place_in_text(place));
            (event("sentence", &value), Next::Sentence(translating, head))
        }
        Ok(None) => (done(head, &translating.finish()), Next::End),
        Err(refusal) => {
            let status = refusal.status().as_u16();
            let error = json!({"error": refusal.to_string(), "status": status});
            (event("error", &error), Next::End)
        }
    })
}

fn done(mut answer: Value, translated: &[Translated]) -> Result<Bytes, Infallible> {
    answer["translations"] = translations(translated, Sentences::Left);
    event("done", &answer)
}

/// JSON has no line breaks, so that it is one line of data.
fn event(name: &str, value: &Value) -> Result<Bytes, Infallible> {
    Ok(format!("event: {name}\ndata: {value}\n\n").into())
}

fn events<S>(stream: S) -> Response
where
    S: futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
{
    answer::of_type("text/event-stream", Body::from_stream(stream))
}
