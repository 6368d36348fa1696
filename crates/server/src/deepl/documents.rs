//! `/v2/document`: a file is uploaded, asked for, and fetched once.
//!
//! It is translated before the upload is answered: clients ask again only after five seconds, whatever they are told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::{answer_json, glossaries, language, read};
use crate::app::App;
use crate::documents::Upload;
use crate::files::Stored;
use crate::http::answer;
use crate::http::body::Fields;
use crate::refusal::{Refusal, invalid};
use crate::translating::Wish;

/// Translates a file.
pub async fn upload(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let fields = read(&app, request).await?;
        uploaded(&app, fields).await
    };
    answer_json(answer.await)
}

async fn uploaded(app: &Arc<App>, mut fields: Fields) -> Result<Value, Refusal> {
    let file = fields.files.iter().position(|file| file.field == "file");
    let file = file.map(|place| fields.files.swap_remove(place));
    let file = file.ok_or_else(|| invalid("Parameter 'file' not specified."))?;
    let registry = app.registry().await?;
    let target = fields.text("target_lang");
    let target = target.ok_or_else(|| invalid("Value for 'target_lang' not supported."))?;
    let target = language(&registry, "target_lang", &target)?;
    let file = Upload::read(file).await?;
    let text = file.text();
    let characters = text.chars().count();
    if characters > app.options.limits.characters {
        return Err(Refusal::TooLarge(app.options.limits.characters));
    }
    let source = match fields.text("source_lang") {
        Some(code) => language(&registry, "source_lang", &code)?,
        None => {
            let guess = registry.detect(&text).into_iter().next();
            guess.map(|guess| guess.language).unwrap_or_default()
        }
    };
    let direction = registry.direction(&source, &target)?;
    let asked = fields.text("source_lang").map(|_| source.as_str());
    let wish = Wish {
        client: app.client(&fields),
        glossary: glossaries::asked(app, &fields, asked, &target)?,
        ..Wish::default()
    };
    let name = file.translated_name(&target);
    let result = file.translate(app, &direction, &target, wish).await;
    app.characters
        .fetch_add(characters as u64, Ordering::Relaxed);
    let (id, key) = app.files.add(name, characters, result);
    Ok(json!({"document_id": id, "document_key": key}))
}

/// The file with an id, if the request knows its key.
async fn found(app: &App, id: &str, request: Request) -> Result<Stored, Refusal> {
    let fields = read(app, request).await?;
    let key = fields.text("document_key").unwrap_or_default();
    let file = app.files.get(id);
    let file =
        file.filter(|file| blake3::hash(file.key.as_bytes()) == blake3::hash(key.as_bytes()));
    file.ok_or(Refusal::NotFound("Document not found"))
}

/// Says how far it is.
pub async fn status(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let answer = found(&app, &id, request)
        .await
        .map(|file| match file.result {
            Ok(_) => json!({
                "document_id": id,
                "status": "done",
                "seconds_remaining": 0,
                "billed_characters": file.characters,
            }),
            Err(refusal) => json!({
                "document_id": id,
                "status": "error",
                "error_message": refusal.to_string(),
            }),
        });
    answer_json(answer)
}

/// Gives the file away.
pub async fn result(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let file = found(&app, &id, request).await.and_then(|file| {
        let bytes = file.result?;
        app.files.take(&id);
        Ok((file.name, bytes))
    });
    match file {
        Ok((name, bytes)) => answer::file(&name, bytes),
        Err(refusal) => refusal.message(),
    }
}
