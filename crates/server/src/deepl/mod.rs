//! DeepL's API, version 2, so that its clients work with another address: `/v2/translate`, `/v2/languages`, `/v2/usage`,
//! glossaries and documents.
//!
//! Its clients send JSON or forms, codes in capitals or not, and `Authorization: DeepL-Auth-Key KEY`. Errors are
//! `{"message": ...}`. Fields that are not known here are ignored, as DeepL adds some every few months.

mod documents;
pub mod glossaries;
mod translate;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::app::App;
use crate::http::answer;
use crate::http::body::Fields;
use crate::languages::{base, name};
use crate::models::Registry;
use crate::refusal::{Refusal, invalid};

/// The paths.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v2/translate", post(translate::translate))
        .route("/v2/languages", get(languages))
        .route("/v2/usage", get(usage))
        .route("/v2/glossary-language-pairs", get(glossaries::pairs))
        .route(
            "/v2/glossaries",
            get(glossaries::list).post(glossaries::create),
        )
        .route(
            "/v2/glossaries/{id}",
            get(glossaries::show).delete(glossaries::delete),
        )
        .route("/v2/glossaries/{id}/entries", get(glossaries::entries))
        .route("/v2/document", post(documents::upload))
        .route("/v2/document/{id}", post(documents::status))
        .route("/v2/document/{id}/result", post(documents::result))
}

/// Reads a request and checks its key.
async fn read(app: &App, request: Request) -> Result<Fields, Refusal> {
    let fields = Fields::read(request, &app.options.limits).await?;
    app.check_key(fields.authorization("DeepL-Auth-Key"))?;
    Ok(fields)
}

fn answer_json(answer: Result<Value, Refusal>) -> Response {
    match answer {
        Ok(value) => answer::json(&value),
        Err(refusal) => refusal.message(),
    }
}

/// The language of a field, as the models spell it.
fn language(registry: &Registry, field: &str, code: &str) -> Result<String, Refusal> {
    let known = registry.known(code);
    known.ok_or_else(|| invalid(format!("Value for '{field}' not supported.")))
}

async fn languages(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let fields = read(&app, request).await?;
        let registry = app.registry().await?;
        let target = match fields.text("type").as_deref() {
            None | Some("source") => false,
            Some("target") => true,
            Some(_) => return Err(invalid("Parameter 'type' must be 'source' or 'target'.")),
        };
        let models = registry.models().iter();
        let mut codes: Vec<String> = if target {
            models.flat_map(|model| variants(&model.target)).collect()
        } else {
            models
                .map(|model| base(&model.source).to_uppercase())
                .collect()
        };
        codes.sort();
        codes.dedup();
        let one = |code: String| {
            let mut one = json!({"language": code, "name": variant_name(&code)});
            if target {
                one["supports_formality"] = json!(false);
            }
            one
        };
        Ok(codes.into_iter().map(one).collect())
    };
    answer_json(answer.await)
}

/// The codes that DeepL's clients want for a target: they refuse plain English and Portuguese.
fn variants(code: &str) -> Vec<String> {
    let regions: &[&str] = match code {
        "en" => &["EN-GB", "EN-US"],
        "pt" => &["PT-BR", "PT-PT"],
        "zh" => &["ZH", "ZH-HANS"],
        _ => return vec![code.to_uppercase()],
    };
    regions.iter().map(|&region| region.to_owned()).collect()
}

fn variant_name(code: &str) -> String {
    match code {
        "EN-GB" => "English (British)".to_owned(),
        "EN-US" => "English (American)".to_owned(),
        "PT-BR" => "Portuguese (Brazilian)".to_owned(),
        "PT-PT" => "Portuguese (European)".to_owned(),
        other => name(other),
    }
}

async fn usage(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        read(&app, request).await?;
        Ok(json!({
            "character_count": app.characters.load(Ordering::Relaxed),
            // There is no limit; this is what DeepL says then.
            "character_limit": 1_000_000_000_000_u64,
        }))
    };
    answer_json(answer.await)
}
