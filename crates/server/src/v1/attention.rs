//! `/v1/attention`: what the model looks at for one sentence, as numbers or as the attention explorer.

use std::sync::Arc;

use attentive_pictures::from_model::Target;
use attentive_pictures::record::{Kind, Record};
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_pictures::svg::escaped;
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
        Ok(match (drawn.await?, format) {
            (Ok(text), Format::Json) => Drawn::Json(text),
            (Ok(text), Format::Html) => Drawn::Page(text),
            // Whoever sees it in a frame should read a sentence and not JSON.
            (Err(refusal), Format::Html) => Drawn::Refused(refusal),
            (Err(refusal), Format::Json) => return Err(refusal),
        })
    };
    match answer.await {
        Err(refusal) => refusal.error(),
        Ok(drawn) => drawn.answer(),
    }
}

/// What is shown of a model's attention.
pub(crate) enum Drawn {
    /// Numbers.
    Json(String),
    /// The attention explorer.
    Page(String),
    /// A page that says why there is none.
    Refused(Refusal),
}

impl Drawn {
    /// The answer to the request.
    pub fn answer(self) -> Response {
        let page = |html: String| {
            let mut response = answer::of_type("text/html; charset=utf-8", html);
            let policy = HeaderValue::from_static(POLICY);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
            response
        };
        match self {
            Self::Json(text) => answer::of_type("application/json", text),
            Self::Page(html) => page(html),
            Self::Refused(refusal) => {
                let message = escaped(&refusal.to_string());
                let mut response = page(format!(
                    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" \
                     content=\"light dark\">\n<title>attentive</title>\n<p>{message}</p>\n"
                ));
                *response.status_mut() = refusal.status();
                response
            }
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
        None => {
            let options = translator.options();
            Target::Translation(&options.search, options.shortlist.as_deref())
        }
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
        Format::Html => explorer(&record, &model.name, &selection),
    }
}

/// The attention explorer for a record.
pub(crate) fn explorer(
    record: &Record,
    model: &str,
    selection: &Selection,
) -> Result<String, Refusal> {
    let heading = Heading {
        source: record.source_text.clone(),
        target: record.target_text.clone(),
        model: model.to_owned(),
    };
    let page = page::write(record, &heading, selection);
    page.map_err(|error| invalid(error.to_string()))
}
