//! LibreTranslate's API, as its code behaves: `/translate`, `/detect`, `/languages`, `/translate_file` and the rest.
//!
//! Fields come as JSON, as a form, as parts or in the query; errors are `{"error": ...}` with its texts. For a list of
//! texts every field of the answer is a list.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::app::App;
use crate::documents::{Upload, extensions};
use crate::http::answer;
use crate::http::body::Fields;
use crate::languages::name;
use crate::markup::{self, Format};
use crate::models::{Guess, Registry};
use crate::refusal::{Refusal, invalid};
use crate::translating::{Translated, Wish};

/// The paths.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/translate", post(translate))
        .route("/detect", post(detect))
        // Some clients ask with POST.
        .route("/languages", get(languages).post(languages))
        .route("/translate_file", post(translate_file))
        .route("/download_file/{id}", get(download_file))
        .route("/suggest", post(suggest))
        .route("/frontend/settings", get(settings))
}

async fn translate(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let fields = Fields::read(request, &app.options.limits).await?;
        app.check_key(fields.text("api_key").as_deref())?;
        translated(&app, &fields).await
    };
    answer_json(answer.await)
}

fn answer_json(answer: Result<Value, Refusal>) -> Response {
    match answer {
        Ok(value) => answer::json(&value),
        Err(refusal) => refusal.error(),
    }
}

async fn translated(app: &Arc<App>, fields: &Fields) -> Result<Value, Refusal> {
    fields.check_texts(&["source", "target", "format", "api_key"])?;
    let (texts, is_list) = texts(fields)?;
    let source = required(fields, "source")?;
    let target = required(fields, "target")?;
    let alternatives = fields.number("alternatives")?.unwrap_or(0);
    let limits = &app.options.limits;
    if alternatives > limits.alternatives {
        let most = limits.alternatives;
        let problem = format!("Invalid request: num_alternatives must be <= {most}");
        return Err(invalid(problem));
    }
    check_size(&texts, app)?;
    let registry = app.registry().await?;
    let detected = (source == "auto").then(|| detect_all(&registry, &texts));
    let source = match &detected {
        Some(guess) => guess.language.clone(),
        None => known(&registry, &source)?,
    };
    let target = known(&registry, &target)?;
    let format = Format::named(fields.text("format").as_deref())?;
    let direction = registry.direction(&source, &target)?;
    let wish = Wish {
        n_best: 1 + alternatives,
        client: app.client(fields),
        ..Wish::default()
    };
    let translated = markup::translate(app, &direction, format, texts, wish).await?;

    let mut answer = json!({});
    let one_or_list = |mut list: Vec<Value>| {
        if is_list {
            Value::Array(list)
        } else {
            list.pop().unwrap_or_default()
        }
    };
    let text = |one: &Translated| Value::from(one.translation.text.clone());
    answer["translatedText"] = one_or_list(translated.iter().map(text).collect());
    if let Some(guess) = detected {
        answer["detectedLanguage"] = one_or_list(vec![json!(guess); translated.len()]);
    }
    if alternatives > 0 {
        let others = |one: &Translated| -> Value {
            let others = one.translation.alternatives.iter();
            others.map(|other| other.text.clone()).collect()
        };
        answer["alternatives"] = one_or_list(translated.iter().map(others).collect());
    }
    Ok(answer)
}

/// The texts of `q`, and whether they came as a list.
fn texts(fields: &Fields) -> Result<(Vec<String>, bool), Refusal> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(invalid("Invalid request: q parameter is not a text")),
    };
    match fields.get("q") {
        None => Err(invalid("Invalid request: missing q parameter")),
        Some(Value::Array(list)) => Ok((list.iter().map(text).collect::<Result<_, _>>()?, true)),
        Some(one) => Ok((vec![text(one)?], false)),
    }
}

fn required(fields: &Fields, field: &str) -> Result<String, Refusal> {
    let missing = || invalid(format!("Invalid request: missing {field} parameter"));
    fields.text(field).ok_or_else(missing)
}

/// The language with this code.
fn known(registry: &Registry, code: &str) -> Result<String, Refusal> {
    let known = registry.known(code);
    known.ok_or_else(|| invalid(format!("{code} is not supported")))
}

/// Refuses more text than the server takes.
fn check_size(texts: &[String], app: &App) -> Result<(), Refusal> {
    let limits = &app.options.limits;
    let exceeds = |size: usize, limit: usize| {
        invalid(format!(
            "Invalid request: request ({size}) exceeds text limit ({limit})"
        ))
    };
    if texts.len() > limits.texts {
        return Err(exceeds(texts.len(), limits.texts));
    }
    let characters = texts.iter().map(|text| text.chars().count()).sum();
    if characters > limits.characters {
        return Err(exceeds(characters, limits.characters));
    }
    Ok(())
}

/// The language of all texts together.
fn detect_all(registry: &Registry, texts: &[String]) -> Guess {
    let guesses = registry.detect(&texts.join("\n"));
    guesses.into_iter().next().unwrap_or(Guess {
        confidence: 0.0,
        language: "en".to_owned(),
    })
}

async fn detect(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let fields = Fields::read(request, &app.options.limits).await?;
        fields.check_texts(&["api_key"])?;
        app.check_key(fields.text("api_key").as_deref())?;
        let (texts, _) = texts(&fields)?;
        check_size(&texts, &app)?;
        let registry = app.registry().await?;
        Ok(json!(registry.detect(&texts.join("\n"))))
    };
    answer_json(answer.await)
}

async fn languages(State(app): State<Arc<App>>) -> Response {
    let answer = app.registry().await.map(|registry| {
        let language = |code: String| {
            let targets = registry.targets(&code);
            json!({"code": code, "name": name(&code), "targets": targets})
        };
        registry.languages().into_iter().map(language).collect()
    });
    answer_json(answer)
}

async fn translate_file(State(app): State<Arc<App>>, request: Request) -> Response {
    let origin = origin(request.headers());
    let answer = async {
        let mut fields = Fields::read(request, &app.options.limits).await?;
        app.check_key(fields.text("api_key").as_deref())?;
        let file = fields.files.iter().position(|file| file.field == "file");
        let file = file.map(|place| fields.files.swap_remove(place));
        let file = file.ok_or_else(|| invalid("Invalid request: missing file parameter"))?;
        let source = required(&fields, "source")?;
        let target = required(&fields, "target")?;
        let registry = app.registry().await?;
        let file = Upload::read(file).await?;
        let text = file.text();
        check_size(std::slice::from_ref(&text), &app)?;
        let source = if source == "auto" {
            detect_all(&registry, std::slice::from_ref(&text)).language
        } else {
            known(&registry, &source)?
        };
        let target = known(&registry, &target)?;
        let direction = registry.direction(&source, &target)?;
        let wish = Wish {
            client: app.client(&fields),
            ..Wish::default()
        };
        let characters = text.chars().count();
        let name = file.translated_name(&target);
        let bytes = file.translate(&app, &direction, &target, wish).await?;
        let (id, _) = app.files.add(name, characters, Ok(bytes));
        Ok(json!({"translatedFileUrl": format!("{origin}/download_file/{id}")}))
    };
    answer_json(answer.await)
}

/// Where a client reaches this server, by what it or a proxy says.
fn origin(headers: &HeaderMap) -> String {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let secure = header("x-forwarded-proto") == Some("https");
    let scheme = if secure { "https" } else { "http" };
    format!("{scheme}://{}", header("host").unwrap_or("localhost"))
}

async fn download_file(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let file = app.files.get(&id);
    match file.and_then(|file| Some((file.name, file.result.ok()?))) {
        Some((name, bytes)) => answer::file(&name, bytes),
        None => Refusal::NotFound("there is no such file, or no longer").error(),
    }
}

async fn suggest() -> Response {
    Refusal::Disabled("Suggestions are disabled on this server.").error()
}

async fn settings(State(app): State<Arc<App>>) -> Response {
    let limits = &app.options.limits;
    let settings = app.registry().await.map(|registry| {
        let code = |code: Option<String>| match code {
            Some(code) => json!({"code": code, "name": name(&code)}),
            None => Value::Null,
        };
        let first = registry.models().first();
        json!({
            "apiKeys": app.needs_key(),
            "charLimit": limits.characters,
            "filesTranslation": true,
            "frontendTimeout": 500,
            "keyRequired": app.needs_key(),
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": code(first.map(|model| model.target.clone())),
            },
            "suggestions": false,
            "supportedFilesFormat": extensions(),
        })
    });
    answer_json(settings)
}
