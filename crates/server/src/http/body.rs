//! The body of a request, within its limits, and the fields in it, whatever their encoding.
//!
//! Clients send a JSON object, a form, parts with files, a query, or several of these; DeepL's Python client sends a
//! body even with GET. Fields of the query come after those of the body.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{Client, Peer};
use crate::options::Limits;
use crate::refusal::{Refusal, invalid};

/// The fields of a request.
#[derive(Debug, Default)]
pub struct Fields {
    values: Vec<(String, Value)>,
    /// Files, each with the name of its field.
    pub files: Vec<File>,
    /// The headers.
    pub headers: HeaderMap,
    peer: Option<Peer>,
}

/// A file of a form.
#[derive(Debug)]
pub struct File {
    /// The name of the field.
    pub field: String,
    /// The name of the file, if it has one.
    pub name: Option<String>,
    /// What is in it.
    pub bytes: Bytes,
}

impl Fields {
    /// Reads the fields of a request.
    pub async fn read(request: Request, limits: &Limits) -> Result<Self, Refusal> {
        let (parts, body) = request.into_parts();
        let declared = parts.headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse().ok());
        let body = read(body, declared, limits).await?;
        let kind = parts.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let essence = kind.split(';').next().unwrap_or("").trim().to_lowercase();
        let mut fields = Self::default();
        if parts.method == Method::GET && body.is_empty() {
            // Some clients name a type for nothing.
        } else if essence == "application/json" || essence.ends_with("+json") {
            fields.add_json(&body)?;
        } else if essence == "multipart/form-data" {
            fields.add_parts(kind, body).await?;
        } else {
            fields.add_form(&body)?;
        }
        fields.add_form(parts.uri.query().unwrap_or("").as_bytes())?;
        fields.peer = parts.extensions.get::<Peer>().copied();
        fields.headers = parts.headers;
        Ok(fields)
    }

    fn add_json(&mut self, body: &[u8]) -> Result<(), Refusal> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => {
                self.values.extend(object);
                Ok(())
            }
            Ok(_) => Err(invalid("Invalid JSON format: expected an object")),
            Err(error) => Err(invalid(format!("Invalid JSON format: {error}"))),
        }
    }

    fn add_form(&mut self, form: &[u8]) -> Result<(), Refusal> {
        for (name, value) in form_urlencoded::parse(form) {
            self.add_text(name.into_owned(), value.into_owned())?;
        }
        // The parser puts this sign in the place of what is no UTF-8.
        let lossy = |text: &str| text.contains('\u{FFFD}');
        let replaced = self
            .values
            .iter()
            .any(|(name, value)| lossy(name) || value.as_str().is_some_and(lossy));
        let own = form
            .windows(9)
            .any(|part| part.eq_ignore_ascii_case(b"%EF%BF%BD"));
        if replaced && !own && !String::from_utf8_lossy(form).contains('\u{FFFD}') {
            return Err(invalid("Invalid request: a field is not valid UTF-8"));
        }
        if std::str::from_utf8(form).is_err() {
            return Err(invalid("Invalid request: the body is not valid UTF-8"));
        }
        Ok(())
    }

    async fn add_parts(&mut self, kind: &str, body: Bytes) -> Result<(), Refusal> {
        let unreadable = |error: multer::Error| invalid(format!("Invalid request: {error}"));
        let boundary = multer::parse_boundary(kind).map_err(unreadable)?;
        let body = stream::iter([Ok::<_, std::convert::Infallible>(body)]);
        let mut parts = multer::Multipart::new(body, boundary);
        while let Some(part) = parts.next_field().await.map_err(unreadable)? {
            let field = part.name().unwrap_or("").to_owned();
            let name = part.file_name().map(str::to_owned);
            let bytes = part.bytes().await.map_err(unreadable)?;
            if name.is_some() || field == "file" {
                self.files.push(File { field, name, bytes });
            } else {
                let text = std::str::from_utf8(&bytes);
                let text =
                    text.map_err(|_| invalid("Invalid request: a field is not valid UTF-8"))?;
                self.add_text(field, text.to_owned())?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, name: String, value: String) -> Result<(), Refusal> {
        if self.values.len() >= MOST_FIELDS {
            return Err(invalid(format!(
                "Invalid request: more than {MOST_FIELDS} fields"
            )));
        }
        self.values.push((name, Value::String(value)));
        Ok(())
    }

    /// The first field of this name that is not empty.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let named = |(other, value): &&(String, Value)| other == name && !is_empty(value);
        self.values.iter().find(named).map(|(_, value)| value)
    }

    /// All fields of this name, and the elements of those that are lists.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        let named = self.values.iter().filter(|(other, _)| other == name);
        named.flat_map(|(_, value)| elements(value)).collect()
    }

    /// Refuses fields of these names that are something else than a text.
    pub fn check_texts(&self, names: &[&str]) -> Result<(), Refusal> {
        let wrong = |(name, value): &&(String, Value)| {
            names.contains(&name.as_str()) && !(value.is_string() || value.is_null())
        };
        match self.values.iter().find(wrong) {
            Some((name, _)) => Err(invalid(format!(
                "Invalid request: {name} parameter is not a text"
            ))),
            None => Ok(()),
        }
    }

    /// A field as text; numbers are text too.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(yes) => Some(yes.to_string()),
            _ => None,
        }
    }

    /// A field as a whole number from 0.
    pub fn number(&self, name: &str) -> Result<Option<usize>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = match value {
            Value::Number(number) => whole(number),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let problem = || invalid(format!("Invalid request: {name} parameter is not a number"));
        number.map(Some).ok_or_else(problem)
    }

    /// A field as yes or no: a boolean, or `1` and `true` in a form.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(yes)) => Ok(*yes),
            Some(Value::String(text)) if ["1", "true"].contains(&text.as_str()) => Ok(true),
            Some(Value::String(text)) if ["0", "false"].contains(&text.as_str()) => Ok(false),
            Some(_) => Err(invalid(format!(
                "Invalid request: {name} parameter is neither true nor false"
            ))),
        }
    }

    /// Who asks: by its key, which was checked, or by its address.
    pub fn client(&self, by_key: bool) -> Client {
        let value = self.headers.get(header::AUTHORIZATION);
        let header = value.and_then(|value| value.to_str().ok()?.split_once(' '));
        let field = by_key.then(|| self.text("api_key")).flatten();
        match header.map(|(_, key)| key.trim()).or(field.as_deref()) {
            Some(key) if by_key => Client::of_key(key),
            _ => Client::of_address(self.peer, &self.headers),
        }
    }

    /// The key of an `Authorization` header with this scheme.
    pub fn authorization(&self, scheme: &str) -> Option<&str> {
        let value = self.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (found, key) = value.split_once(' ')?;
        found.eq_ignore_ascii_case(scheme).then(|| key.trim())
    }
}

/// A whole number, of which JSON knows two spellings: 10 and 10.0.
fn whole(number: &serde_json::Number) -> Option<usize> {
    let float = || {
        let float = number.as_f64()?;
        let whole = float.fract() == 0.0 && (0.0..1e15).contains(&float);
        whole.then_some(float as usize)
    };
    let exact = number.as_u64().and_then(|exact| exact.try_into().ok());
    exact.or_else(float)
}

/// Nobody needs more, and each costs memory.
const MOST_FIELDS: usize = 10_000;

/// The elements of a list, or what is none.
fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        one => std::slice::from_ref(one),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Lets a body come and forgets it, for a while: whoever is refused before the end of a request gets to read why.
pub async fn forget(mut body: axum::body::Body) {
    let all = async {
        let mut forgotten = 0;
        while let Some(Ok(frame)) = body.frame().await {
            forgotten += frame.data_ref().map_or(0, Bytes::len);
            if forgotten > MOST_FORGOTTEN {
                return;
            }
        }
    };
    let _ = timeout(FORGET_TIME, all).await;
}

/// Reads a body within its limits. Of one that is too long the rest is read and forgotten for a while, so that the
/// client gets to read the answer.
async fn read(
    mut body: axum::body::Body,
    declared: Option<u64>,
    limits: &Limits,
) -> Result<Bytes, Refusal> {
    let most = limits.body;
    let mut too_long = declared.is_some_and(|length| length > most as u64);
    let mut bytes = BytesMut::new();
    let mut forgotten = 0;
    let last = Instant::now() + 4 * limits.body_time;
    loop {
        let patience = if too_long {
            FORGET_TIME
        } else {
            limits.body_time
        };
        let frame = timeout_at(last.min(Instant::now() + patience), body.frame());
        let frame = match frame.await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) if too_long => return Err(Refusal::TooLarge(most)),
            Ok(None) => return Ok(bytes.freeze()),
            _ if too_long => return Err(Refusal::TooLarge(most)),
            Ok(Some(Err(_))) => return Err(invalid("Invalid request: the body is incomplete")),
            Err(_late) => return Err(Refusal::Slow),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if too_long || bytes.len() + data.len() > most {
            too_long = true;
            bytes = BytesMut::new();
            forgotten += data.len();
            if forgotten > MOST_FORGOTTEN {
                return Err(Refusal::TooLarge(most));
            }
        } else {
            bytes.extend_from_slice(&data);
        }
    }
}

/// Bytes of a body that is too long which are read nevertheless.
const MOST_FORGOTTEN: usize = 256 << 20;

/// How long the next piece of them may take.
const FORGET_TIME: Duration = Duration::from_secs(1);
