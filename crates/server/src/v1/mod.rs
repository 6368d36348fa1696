//! Our own API: everything that a translation is made of, and why each word came out.
//!
//! All requests take fields as JSON (or as a form, or in the query). Errors are `{"error": "..."}` with a status. If
//! the server has keys: `Authorization: Bearer KEY`, or a field `api_key`. Characters are counted as Unicode code
//! points (in JavaScript: `Array.from(text)`), everything from 0.
//!
//! # `POST /v1/translate`
//!
//! ```text
//! {"text": "Guten Tag. Wie geht's?",  or a list of texts
//!  "source": "de",                    or "auto" or nothing: detected, once for all texts
//!  "target": "en",                    nothing: the first language that the source can be translated into
//!  "model": "de-en",                  instead of source and target
//!  "format": "text",                  or "html"
//!  "alternatives": 0,                 how many further translations
//!  "alignments": false,               pairs of source word and target word
//!  "tokens": false,                   log-probability and place of each target token
//!  "top": 5,                          with "tokens": so many alternatives for each token, 0 to 20
//!  "prefix": "",                      what the translation of each text must start with (whole words)
//!  "glossary": {"Haus": "mansion"},   terms of the source, and what their translations must contain
//!  "stream": false}                   server-sent events: each sentence as soon as it is found
//!
//! {"model": "de-en", "source": "de", "target": "en",
//!  "detected": {"language": "de", "confidence": 99.1},      only if it was detected
//!  "translations": [{                                       one for each text
//!    "text": "Good day. How are you?",
//!    "score": -0.31, "logprob": -4.2,
//!    "alternatives": [{"text": "Hello. How is it?", "score": -0.5, "logprob": -5.1}],
//!    "sentences": [{
//!      "text": 0,                       the number of the text
//!      "sentence": 0,                   its number in that text
//!      "source": "Guten Tag.", "gap": " ",     all "source" + "gap" are the text, all "translation" + "gap"
//!      "translation": "Good day.",             its translation; a blank line is a sentence too
//!      "score": -0.2, "logprob": -1.1,
//!      "alternatives": [{"text", "score", "logprob"}],
//!      "alignment": [[0, 0], [1, 1]],   with "alignments": source word, target word; words are what white space
//!                                       separates in "source" and in "translation"
//!      "tokens": [{"text": "▁Good", "id": 512, "start": 0, "end": 4, "logprob": -0.1, "rank": 1,
//!                  "top": [{"text": "▁Good", "id": 512, "logprob": -0.1}]}],
//!                                       with "tokens": start and end are characters of "translation"; the last
//!                                       token is </s>, unless the translation was cut; none for a sentence that was copied
//!      "truncated": 0,                  source tokens that were cut off: where not even a character fits into the model
//!      "unknown": 0,                    source tokens that the vocabulary lacks
//!      "missing_terms": ["mansion"],    terms of the glossary that it lacks all the same; left out if there are none
//!      "looped": false}]}]}             whether the first search repeated itself
//! ```
//!
//! With `"stream": true` the answer is `text/event-stream`: `event: start` with the answer's first part (`model`,
//! `source`, `target`, `detected`), `event: sentence` with an element of `sentences` for each sentence, in the order in
//! which they are found, and at the end `event: done` with the whole answer but for `sentences`, or `event: error`
//! with `{"error", "status"}`.
//!
//! # `POST /v1/alternatives`
//!
//! Other words at one place of a translation, each with the translation that follows from it.
//!
//! ```text
//! {"text": "Wie geht es dir?",          one sentence
//!  "source", "target", "model",         as above
//!  "prefix": "How",                     the translation before the word in question; empty for the first word
//!  "top": 8}                            how many, 1 to 20
//!
//! {"model", "source", "target",
//!  "alternatives": [{"word": "are", "probability": 0.93, "text": "How are you?", "score": -0.2, "logprob": -1.0}]}
//! ```
//! `probability` is that of the word's first token after the prefix. Words that occur twice are listed once; there may
//! be fewer than asked for.
//!
//! # `POST /v1/attention` (and `GET`)
//!
//! ```text
//! {"text": "Ein Hund rennt.",           one sentence of at most 255 tokens
//!  "source", "target", "model",
//!  "translation": "A dog runs.",        a given translation; nothing: the model's own
//!  "format": "json"}                    or "html": the attention explorer, a page for an iframe
//! ```
//! The JSON is that of `attentive attention --format json` (`attentive_pictures::json`).
//!
//! # `GET /v1/models`
//!
//! ```text
//! {"models": [{"name": "de-en", "source": "de", "target": "en", "source_name": "German", "target_name": "English"}],
//!  "run": null}                        the path of the page that watches a training run, if there is one
//! ```
//!
//! # The rest
//!
//! `GET /v1/openapi.json` describes all of it for programs, `/docs` for people. Languages with names are at
//! `/languages`, detection at `/detect`, limits at `/frontend/settings` ([`crate::libretranslate`]).

mod alternatives;
pub(crate) mod attention;
mod question;
mod translate;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::app::App;
use crate::http::answer;
use crate::languages::name;
use crate::refusal::Refusal;

/// The paths.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/translate", post(translate::translate))
        .route("/v1/alternatives", post(alternatives::alternatives))
        .route(
            "/v1/attention",
            post(attention::attention).get(attention::attention),
        )
        .route("/v1/models", get(models))
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let models = app.registry().await.map(|registry| -> Value {
        let models = registry.models().iter();
        let models = models.map(|model| {
            json!({
                "name": model.name,
                "source": model.source,
                "target": model.target,
                "source_name": name(&model.source),
                "target_name": name(&model.target),
            })
        });
        let run = app.run.as_ref().map(|_| "/run");
        json!({"models": models.collect::<Vec<_>>(), "run": run})
    });
    answer_json(models)
}

fn answer_json(answer: Result<Value, Refusal>) -> Response {
    match answer {
        Ok(value) => answer::json(&value),
        Err(refusal) => refusal.error(),
    }
}
