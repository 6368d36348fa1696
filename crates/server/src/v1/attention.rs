//! `/v1/attention`: what the model looks at for one sentence, as numbers or as the attention explorer.

use std::sync::Arc;

use attentive_pictures::from_model::Target;
use attentive_pictures::record::{Kind, Record};
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_pictures::{PictureError, json, page};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::question::Question;
use crate::app::App;
use crate::http::answer;
use crate::models::Served;
use crate::refusal::{Refusal, invalid};

/// Answers.
pub async fn attention(State(app): State<Arc<App>>, request: Request) -> Response {
    let answer = async {
        let mut question = Question::read(&app, request).await?;
        let format = question.fields.text("format");
        let format = match format.as_deref() {
            None | Some("json") => Format::Json,
            Some("html") => Format::Html,
            Some(other) => return Err(invalid(format!("{other} format is not supported"))),
        };
        let (model, sentence) = question.one_sentence()?;
        let translation = question.fields.text("translation");
        let drawn = app.inspect(move || draw(&model, &sentence, translation.as_deref(), format));
        Ok((format, drawn.await??))
    };
    match answer.await {
        Err(refusal) => refusal.error(),
        Ok((Format::Json, text)) => answer::of_type("application/json", text),
        Ok((Format::Html, text)) => {
            let mut response = answer::of_type("text/html; charset=utf-8", text);
            let policy = HeaderValue::from_static(POLICY);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
            response
        }
    }
}

/// The page holds its own script and style, and gets no rights of this server's origin.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-downloads";

#[derive(Clone, Copy)]
enum Format {
    Json,
    Html,
}

fn draw(
    model: &Served,
    sentence: &str,
    translation: Option<&str>,
    format: Format,
) -> Result<String, Refusal> {
    let translator = model.translator();
    let target = match translation {
        Some(text) => Target::Given(text),
        None => Target::Translation(&translator.options().search),
    };
    let refused = |error: PictureError| invalid(error.to_string());
    let tokenizers = translator.tokenizers();
    let record = Record::of(translator.model(), tokenizers, sentence, target).map_err(refused)?;
    let selection = Selection {
        kinds: Kind::ALL.to_vec(),
        layer: None,
        heads: Heads::All,
        unit: Unit::Tokens,
    };
    match format {
        Format::Json => {
            let sections = selection.of(&record).map_err(refused)?;
            Ok(json::write(&record, &sections, &model.name))
        }
        Format::Html => {
            let heading = Heading {
                source: record.source_text.clone(),
                target: record.target_text.clone(),
                model: model.name.clone(),
            };
            page::write(&record, &heading, &selection).map_err(refused)
        }
    }
}
