//! Models that are part of the program, so that it translates without a file or a network.
//!
//! Each folder beside `src` is a model directory (int8) and its card: what it was trained on, how good it
//! is, what it cannot do. The files become part of the binary, which maps them like any other part of
//! itself when they are used: nothing is unpacked or copied. `attentive-runtime` opens them.
//!
//! ```
//! use attentive_text::language::Language;
//!
//! let model = attentive_models::find(Language::German, Language::English).expect("built in");
//! let translator = model.translator(model.options()?)?;
//! println!("{}", translator.translate(&["Guten Morgen! Wie geht es dir?"])[0].text);
//! # Ok::<(), attentive_runtime::RuntimeError>(())
//! ```

use attentive_model::{EmbeddedModel, ModelDir};
use attentive_runtime::Result;
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Lines, Translator, TranslatorOptions};
use attentive_text::language::Language;

/// A model that is part of the program.
#[derive(Debug)]
pub struct BuiltIn {
    /// Its name: `de-en`.
    pub name: &'static str,
    /// The language it reads.
    pub from: Language,
    /// The language it writes.
    pub to: Language,
    files: EmbeddedModel,
    card: &'static str,
}

/// The model in the folder of its name.
macro_rules! built_in {
    ($name:literal, $from:expr, $to:expr) => {
        BuiltIn {
            name: $name,
            from: $from,
            to: $to,
            files: EmbeddedModel {
                name: concat!("the built-in model ", $name),
                config: include_bytes!(concat!("../", $name, "/config.json")),
                weights: {
                    static WEIGHTS: &OnCacheLine<[u8]> = &OnCacheLine {
                        bytes: *include_bytes!(concat!("../", $name, "/model.safetensors")),
                    };
                    &WEIGHTS.bytes
                },
                tokenizer: include_bytes!(concat!("../", $name, "/tokenizer.json")),
                generation: Some(include_bytes!(concat!("../", $name, "/generation.json"))),
                shortlist: Some(include_bytes!(concat!("../", $name, "/shortlist.bin"))),
            },
            card: include_str!(concat!("../", $name, "/README.md")),
        }
    };
}

/// All of them.
pub static ALL: [BuiltIn; 2] = [
    built_in!("de-en", Language::German, Language::English),
    built_in!("en-de", Language::English, Language::German),
];

/// The model for a pair of languages.
pub fn find(from: Language, to: Language) -> Option<&'static BuiltIn> {
    ALL.iter()
        .find(|model| model.from == from && model.to == to)
}

/// The model with a name.
pub fn named(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|model| model.name == name)
}

impl BuiltIn {
    /// Reads its architecture and its tokenizer.
    pub fn open(&self) -> attentive_model::Result<ModelDir> {
        ModelDir::embedded(&self.files)
    }

    /// A translator with these options; [`BuiltIn::options`] are those it is made for.
    pub fn translator(&self, options: TranslatorOptions) -> Result<Translator> {
        Translator::of_model(self.open()?, Compute::Auto, options)
    }

    /// The options it is made for: what people type, sentence by sentence.
    pub fn options(&self) -> Result<TranslatorOptions> {
        Ok(TranslatorOptions {
            lines: Lines::RawText,
            source_language: Some(self.from.code().to_owned()),
            ..TranslatorOptions::of(&self.open()?)?
        })
    }

    /// Its card in Markdown: what it was trained on, how good it is, what it cannot do.
    pub fn card(&self) -> &'static str {
        self.card
    }

    /// How many bytes of the program it is.
    pub fn bytes(&self) -> usize {
        let EmbeddedModel {
            config,
            weights,
            tokenizer,
            shortlist,
            ..
        } = self.files;
        config.len() + weights.len() + tokenizer.len() + shortlist.map_or(0, <[u8]>::len)
    }
}

/// Bytes that begin on a cache line, as the weights in a file do that is mapped.
#[repr(C, align(64))]
struct OnCacheLine<B: ?Sized> {
    bytes: B,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_named_by_its_languages_and_found_by_both() {
        for model in &ALL {
            let languages = format!("{}-{}", model.from.code(), model.to.code());
            assert_eq!(model.name, languages);
            let found = find(model.from, model.to).expect("it is one of all");
            assert_eq!(found.name, model.name);
            let named = named(model.name).expect("it is one of all");
            assert_eq!((named.from, named.to), (model.from, model.to));
        }
        assert!(find(Language::German, Language::German).is_none());
        assert!(named("de").is_none());
    }

    #[test]
    fn every_model_opens_and_gives_one_line_for_each() {
        for model in &ALL {
            let options = model.options().expect("a sound model");
            assert!(options.shortlist.is_some(), "{}", model.name);
            let translator = model.translator(options).expect("a sound model");
            let lines = ["Hallo. Hello. 42.", "", "Berlin"];
            let texts = translator.translate(&lines).into_iter().map(|t| t.text);
            let texts: Vec<String> = texts.collect();
            assert_eq!(texts.len(), 3, "{}", model.name);
            assert!(
                texts[0].contains("42.") && !texts[2].is_empty(),
                "{texts:?}"
            );
            assert_eq!(texts[1], "");
            assert!(
                !model.card().trim().is_empty(),
                "{} has no card",
                model.name
            );
        }
    }

    #[test]
    fn weights_are_int8_and_begin_on_a_cache_line() {
        for model in &ALL {
            let weights = model.open().and_then(|dir| dir.weights());
            assert!(weights.expect("sound weights").is_int8(), "{}", model.name);
            assert_eq!(model.files.weights.as_ptr().addr() % 64, 0);
        }
    }
}
