//! Which models lead from one language to another: one, or two through English.
//!
//! Most models of the world translate from or into English, so almost any two languages are connected through it.
//! Before it: the models that are part of the program and those of [`crate::store`]; after it: a translator, or a
//! chain of two.

/// A model by its languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction<M> {
    /// The code of the language that it reads.
    pub from: String,
    /// The code of the language that it writes.
    pub to: String,
    /// Which model.
    pub model: M,
}

/// The way from one language to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<M> {
    /// One model.
    Direct(M),
    /// Two models, with English between them.
    ThroughEnglish(M, M),
}

/// The first direct model, else the first two through English.
pub fn route<M: Clone>(models: &[Direction<M>], from: &str, to: &str) -> Option<Route<M>> {
    let direct = |from: &str, to: &str| {
        let fits = |model: &&Direction<M>| same(&model.from, from) && same(&model.to, to);
        // Where regions or scripts are told apart, the one that was asked for comes first.
        let exact = |model: &&Direction<M>| fits(model) && model.to.eq_ignore_ascii_case(to);
        let model = models
            .iter()
            .find(exact)
            .or_else(|| models.iter().find(fits));
        model.map(|direction| direction.model.clone())
    };
    if let Some(model) = direct(from, to) {
        return Some(Route::Direct(model));
    }
    // From a language to itself there is nothing to translate.
    if same(from, to) {
        return None;
    }
    let (first, second) = (direct(from, ENGLISH)?, direct(ENGLISH, to)?);
    Some(Route::ThroughEnglish(first, second))
}

/// Whether two codes mean the same language: `pt` and `pt_BR`, `DE` and `de-AT`.
pub fn same(one: &str, other: &str) -> bool {
    language(one).eq_ignore_ascii_case(language(other))
}

const ENGLISH: &str = "en";

fn language(code: &str) -> &str {
    code.split(['-', '_']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models() -> Vec<Direction<&'static str>> {
        let pairs = [
            "de-en",
            "en-de",
            "fr-en",
            "en-fr",
            "fr-es",
            "fr-en-big",
            "en-pt_br",
            "en-zh_Hans",
            "en-zh_Hant",
        ];
        let direction = |model: &'static str| {
            let mut codes = model.split('-').map(str::to_owned);
            let (from, to) = (codes.next().expect("two"), codes.next().expect("two"));
            Direction { from, to, model }
        };
        pairs.into_iter().map(direction).collect()
    }

    #[test]
    fn one_model_is_better_than_two_and_two_go_through_english() {
        let route = |from, to| super::route(&models(), from, to);
        assert_eq!(route("fr", "en"), Some(Route::Direct("fr-en")));
        assert_eq!(route("fr", "es"), Some(Route::Direct("fr-es")));
        assert_eq!(
            route("fr", "de"),
            Some(Route::ThroughEnglish("fr-en", "en-de"))
        );
        assert_eq!(
            route("FR-ca", "pt"),
            Some(Route::ThroughEnglish("fr-en", "en-pt_br"))
        );
        assert_eq!(route("en", "zh"), Some(Route::Direct("en-zh_Hans")));
        assert_eq!(route("en", "zh_hant"), Some(Route::Direct("en-zh_Hant")));
    }

    #[test]
    fn where_no_way_leads_there_is_none() {
        let route = |from, to| super::route(&models(), from, to);
        assert_eq!(route("es", "en"), None);
        assert_eq!(route("es", "fr"), None);
        assert_eq!(route("de", "ja"), None);
        // Not there and back.
        assert_eq!(route("de", "de"), None);
        assert_eq!(route("en", "en"), None);
    }
}
