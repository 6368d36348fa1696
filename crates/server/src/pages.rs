//! What the server says about itself: `/health`, `/ready`, `/metrics`, the description of the APIs and the page that
//! shows it.

use std::fmt::Write;
use std::sync::Arc;

use attentive_pictures::svg::escaped;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::answer;
use crate::refusal::Refusal;

/// The paths.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(crate::page::translation))
        .route("/docs", get(docs))
        .route("/docs.css", get(style))
        .route("/v1/openapi.json", get(openapi))
        .route("/spec", get(openapi))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
}

/// The process lives.
async fn health() -> Response {
    answer::json(&json!({"status": "ok"}))
}

/// Requests can be answered: models are loaded, and the server is not about to end.
async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.is_draining() {
        return Refusal::Draining.error();
    }
    match app.loaded() {
        Some(_) => answer::json(&json!({"status": "ready"})),
        None => Refusal::NotReady("the models are not loaded yet").error(),
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let models = app.loaded().map(|registry| {
        let models = registry.models().iter();
        let labels = models.map(|m| (m.name.clone(), m.source.clone(), m.target.clone()));
        labels.collect::<Vec<_>>()
    });
    let text = app
        .metrics
        .write(app.scheduler.waiting(), &models.unwrap_or_default());
    answer::of_type("text/plain; version=0.0.4; charset=utf-8", text)
}

/// The description of all APIs, for programs.
const OPENAPI: &str = include_str!("../assets/openapi.json");

async fn openapi(State(app): State<Arc<App>>) -> Response {
    let mut openapi: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    if let Some(registry) = app.loaded() {
        let names = registry.models().iter().map(|model| model.name.clone());
        name_values(
            &mut openapi,
            &registry.languages(),
            &names.collect::<Vec<_>>(),
        );
    }
    answer::json(&openapi)
}

/// Where the description says `x-values`, the languages or the models of this server are listed; a field that may be
/// left out may also be empty.
fn name_values(value: &mut Value, languages: &[String], models: &[String]) {
    if let Value::Object(object) = value {
        if let Some(kind) = object.remove("x-values") {
            let names = if kind == "models" { models } else { languages };
            let mut values: Vec<Value> = names.iter().map(|name| json!(name)).collect();
            match kind.as_str() {
                Some("source") => values.extend([json!("auto"), json!(""), Value::Null]),
                Some("required source") => values.push(json!("auto")),
                Some("target" | "models") => values.extend([json!(""), Value::Null]),
                _ => {}
            }
            object.insert("enum".to_owned(), values.into());
        }
        for inner in object.values_mut() {
            name_values(inner, languages, models);
        }
    } else if let Value::Array(list) = value {
        for inner in list {
            name_values(inner, languages, models);
        }
    }
}

async fn style() -> Response {
    answer::of_type("text/css", include_str!("../assets/docs.css"))
}

/// The same for people: no script, so that nothing must be allowed.
async fn docs() -> Response {
    answer::page(document(), "'none'", "'self'")
}

fn document() -> String {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>attentive: translation over HTTP</title>\n<link rel=\"stylesheet\" href=\"/docs.css\">\n</head>\n<body>\n<main>\n",
    );
    let info = &openapi["info"];
    let _ = writeln!(
        page,
        "<h1>{}</h1>\n<p>{}</p>",
        text(&info["title"]),
        text(&info["description"])
    );
    let _ = writeln!(
        page,
        "<p>For programs: <a href=\"/v1/openapi.json\">/v1/openapi.json</a></p>"
    );
    for (path, methods) in openapi["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let method = method.to_uppercase();
            let _ = writeln!(
                page,
                "<section>\n<h2><code>{method} {}</code></h2>\n<p>{}</p>",
                escaped(path),
                text(&operation["summary"])
            );
            add_fields(&mut page, &openapi, operation);
            page.push_str("</section>\n");
        }
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// A table of what a request may say.
fn add_fields(page: &mut String, openapi: &Value, operation: &Value) {
    let content = &operation["requestBody"]["content"];
    let schema = content.as_object().and_then(|kinds| kinds.values().next());
    let schema = schema.map(|kind| &kind["schema"]);
    let reference = schema.and_then(|schema| schema["$ref"].as_str());
    let referred = reference.and_then(|path| openapi.pointer(path.trim_start_matches('#')));
    let Some(fields) = referred.or(schema).map(|schema| &schema["properties"]) else {
        return;
    };
    page.push_str("<table>\n<tr><th>field</th><th>meaning</th></tr>\n");
    for (name, field) in fields.as_object().into_iter().flatten() {
        let meaning = field["description"].as_str().unwrap_or_default();
        let (name, meaning) = (escaped(name), escaped(meaning));
        let _ = writeln!(
            page,
            "<tr><td><code>{name}</code></td><td>{meaning}</td></tr>"
        );
    }
    page.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_path_of_the_description() {
        let openapi: Value = serde_json::from_str(OPENAPI).expect("valid JSON");
        let page = document();
        let paths = openapi["paths"].as_object().expect("some paths");
        assert!(paths.len() > 10);
        for path in paths.keys() {
            assert!(page.contains(path.as_str()), "{path}");
        }
        assert!(!page.contains("<script"));
    }
}
