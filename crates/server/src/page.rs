//! The pages for people: the translation page at `/`, and `/run`, where one watches a training run.
//!
//! Each is one file that holds its style and its script (`assets/page.html`, `assets/run.html`). The policy that it is
//! served with names both by their hashes, so that nothing else can run, whatever a text or a model says.

use std::sync::LazyLock;

use axum::response::Response;
use ring::digest::{SHA256, digest};

use crate::http::answer;

/// A page and what its policy must allow.
struct Page {
    html: &'static str,
    script: String,
    style: String,
}

static TRANSLATION: LazyLock<Page> =
    LazyLock::new(|| Page::new(include_str!("../assets/page.html")));
static RUN: LazyLock<Page> = LazyLock::new(|| Page::new(include_str!("../assets/run.html")));

/// The translation page.
pub async fn translation() -> Response {
    TRANSLATION.answer()
}

/// The page of a training run.
pub async fn run() -> Response {
    RUN.answer()
}

impl Page {
    fn new(html: &'static str) -> Self {
        Self {
            script: hash(html, "script"),
            style: hash(html, "style"),
            html,
        }
    }

    fn answer(&self) -> Response {
        answer::page(self.html, &self.script, &self.style)
    }
}

/// `'sha256-...'` of what is in the only element of this name.
fn hash(html: &str, element: &str) -> String {
    let after = html.split_once(&format!("<{element}>"));
    let inside = after.and_then(|(_, rest)| rest.split_once(&format!("</{element}>")));
    let inside = inside.map_or("", |(inside, _)| inside);
    let hash = base64::encode(digest(&SHA256, inside.as_bytes()));
    format!("'sha256-{hash}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_ask_for_nothing_from_outside_and_hold_one_script_and_one_style() {
        for page in [&TRANSLATION, &RUN] {
            let html = page.html;
            for element in ["<script", "<style", "</script", "</style"] {
                assert_eq!(html.matches(element).count(), 1, "{element}");
            }
            for unsafe_way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "javascript:",
                " style=\"",
                " onclick=",
                "@import",
                "url(",
            ] {
                assert!(!html.contains(unsafe_way), "{unsafe_way}");
            }
            let namespaces = html.matches("http://www.w3.org/").count();
            assert_eq!(html.matches("://").count(), namespaces, "an address");
            assert!(page.script.starts_with("'sha256-") && page.script != page.style);
        }
    }

    #[test]
    fn all_interface_languages_have_the_same_texts() {
        for page in [&TRANSLATION, &RUN] {
            let texts = page.html.split_once("const TEXTS = {").expect("texts").1;
            let texts = texts.split_once("\n};").expect("an end").0;
            let keys = |language: &str| {
                let own = texts
                    .split_once(&format!("\n  {language}: {{"))
                    .expect("it");
                let own = own.1.split_once("\n  },").expect("an end").0;
                let mut keys: Vec<String> = Vec::new();
                for (place, _) in own.match_indices(": \"") {
                    let key = own[..place].rsplit([' ', '\n']).next().unwrap_or_default();
                    keys.push(key.to_owned());
                }
                keys
            };
            assert!(keys("en").len() > 10);
            assert_eq!(keys("en"), keys("de"));
            assert_eq!(keys("en"), keys("zh"));
        }
    }
}
