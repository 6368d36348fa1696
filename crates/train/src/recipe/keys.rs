//! Every key that a recipe may have, and which one was probably meant by one that it may not.
//!
//! The list is not written down a second time: it is what a complete recipe has when it is written
//! out. [`super::parse`] asks here for every key of a file and of the command line.

use attentive_model::config::{Family, Preset};
use toml::{Table, Value};

use super::{Model, Recipe, Synthetic};

/// Families that learn from sentence pairs.
pub(super) const TRANSLATION: &[Family] = &[Family::Transformer, Family::Recurrent];

/// Families that learn from running text.
pub(super) const LANGUAGE_MODELS: &[Family] = &[Family::Gpt, Family::Bert];

/// The one that learns classes of texts, too.
const BERT: &[Family] = &[Family::Bert];

/// Families that learn from images.
pub(super) const IMAGES: &[Family] = &[Family::Vit, Family::Diffusion];

/// Families that learn from text.
const TEXT: &[Family] = &[
    Family::Transformer,
    Family::Recurrent,
    Family::Gpt,
    Family::Bert,
];

/// Families whose batches have so many examples, and not so many tokens.
const BATCHES: &[Family] = &[Family::Gpt, Family::Bert, Family::Vit, Family::Diffusion];

/// Families whose examples are changed by chance.
const AUGMENTED: &[Family] = &[
    Family::Transformer,
    Family::Recurrent,
    Family::Vit,
    Family::Diffusion,
];

/// Families that learn to choose among words or classes, with label smoothing if that is asked for.
const SMOOTHED: &[Family] = &[Family::Transformer, Family::Recurrent, Family::Vit];

/// Keys and sections that mean something for some families alone.
const ONLY: &[(&str, &[Family])] = &[
    ("data.src", TRANSLATION),
    ("data.tgt", TRANSLATION),
    ("data.weights", TRANSLATION),
    ("data.held_out", TRANSLATION),
    ("data.val_src", TRANSLATION),
    ("data.val_tgt", TRANSLATION),
    ("data.vocab_src", TRANSLATION),
    ("data.vocab_tgt", TRANSLATION),
    ("data.max_length", TRANSLATION),
    ("data.prepared", TRANSLATION),
    ("data.synthetic", TRANSLATION),
    ("data.text", LANGUAGE_MODELS),
    ("data.val_text", LANGUAGE_MODELS),
    ("data.val_share", LANGUAGE_MODELS),
    ("data.examples", BERT),
    ("data.val_examples", BERT),
    ("data.text_columns", BERT),
    ("data.label_column", BERT),
    ("data.images", IMAGES),
    ("data.labels", IMAGES),
    ("data.val_images", IMAGES),
    ("data.val_labels", IMAGES),
    ("tokenizer.shared", TRANSLATION),
    ("tokenizer.vocabulary", BERT),
    ("tokenizer.from_model", TRANSLATION),
    ("tokenizer", TEXT),
    ("augmentation.shift", IMAGES),
    ("augmentation.subword_dropout", TRANSLATION),
    ("augmentation.lowercase", TRANSLATION),
    ("augmentation.no_punctuation", TRANSLATION),
    ("augmentation.plain_umlauts", TRANSLATION),
    ("augmentation.marks", TRANSLATION),
    ("augmentation", AUGMENTED),
    ("pruning", BERT),
    ("training.start_vocabulary", TRANSLATION),
    ("training.batch_tokens", TRANSLATION),
    ("training.batch_sentences", TRANSLATION),
    ("training.similar_lengths", TRANSLATION),
    ("training.batch_size", BATCHES),
    ("training.loss", SMOOTHED),
    ("training.label_smoothing", SMOOTHED),
    ("training.class_dropout", &[Family::Diffusion]),
    ("training.r_drop", TRANSLATION),
    ("training.r_drop_after", TRANSLATION),
    ("validation.bleu", TRANSLATION),
    ("validation.beam", TRANSLATION),
    ("validation.bleu_sentences", TRANSLATION),
    ("validation.best_by", TRANSLATION),
];

/// Whether a key or a section, or the section that it stands in, means something for a family.
pub(super) fn applies(key: &str, family: Family) -> bool {
    let meant = |(name, _): &&(&str, &[Family])| {
        let rest = key.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    ONLY.iter()
        .find(meant)
        .is_none_or(|(_, families)| families.contains(&family))
}

/// Keys that had another name in earlier versions, and their name now.
pub(super) const RENAMED: [(&str, &str); 2] = [
    ("training.agreement", "training.r_drop"),
    ("training.agreement_after", "training.r_drop_after"),
];

/// The keys, `section.key`, and the sections.
pub(super) struct Known {
    family: Family,
    keys: Vec<String>,
    sections: Vec<String>,
}

impl Known {
    /// The keys of this version of the program for a family.
    pub(super) fn new(family: Family) -> Self {
        let mut complete = Recipe {
            model: Model::from_preset(family, Preset::Small),
            ..Recipe::default()
        };
        complete.data.synthetic = Some(Synthetic::default());
        complete.model.config = complete.model.config.with_every_key();
        let mut known = Known {
            family,
            keys: vec!["model.family".to_owned()],
            sections: Vec::new(),
        };
        known.collect(&complete.table(), "");
        known
    }

    /// Whether this is a section, such as `data.synthetic`.
    pub(super) fn is_section(&self, key: &str) -> bool {
        self.sections.iter().any(|section| section == key)
    }

    /// One key of the section.
    pub(super) fn example(&self, section: &str) -> &str {
        self.keys_of(section).next().unwrap_or_default()
    }

    /// Nothing if the key is known; else a message with the key that was probably meant.
    pub(super) fn refuse(&self, key: &str) -> Option<String> {
        if self.keys.iter().any(|known| known == key) {
            return None;
        }
        if !applies(key, self.family) {
            let family = self.family.name();
            return Some(format!(
                "`{key}` means nothing for a model of the family \"{family}\": remove it"
            ));
        }
        let unknown = format!("unknown key `{key}`");
        if let Some(closest) = self.closest(key) {
            return Some(format!("{unknown}; did you mean `{closest}`?"));
        }
        let section = key.rsplit_once('.').map_or("", |(section, _)| section);
        if self.is_section(section) {
            let names: Vec<&str> = self.keys_of(section).map(last).collect();
            return Some(format!(
                "{unknown}; the keys of [{section}] are {}",
                names.join(", ")
            ));
        }
        let top = self
            .sections
            .iter()
            .filter(|section| !section.contains('.'));
        let names: Vec<String> = top.map(|section| format!("[{section}]")).collect();
        Some(format!("{unknown}; the sections are {}", names.join(" ")))
    }

    fn collect(&mut self, table: &Table, prefix: &str) {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match value {
                Value::Table(inner) => {
                    self.collect(inner, &format!("{key}."));
                    self.sections.push(key);
                }
                _ => self.keys.push(key),
            }
        }
    }

    fn keys_of(&self, section: &str) -> impl Iterator<Item = &str> {
        let inside = format!("{section}.");
        self.keys
            .iter()
            .map(String::as_str)
            .filter(move |key| key.starts_with(&inside))
    }

    fn closest(&self, key: &str) -> Option<&str> {
        if let Some((_, new)) = RENAMED.iter().find(|(old, _)| last(old) == last(key)) {
            return Some(new);
        }
        // The right key in the wrong section, or in none.
        if let Some(same) = self.keys.iter().find(|known| last(known) == last(key)) {
            return Some(same);
        }
        let distance = |known: &str| {
            let edits = strsim::damerau_levenshtein(last(known), last(key));
            let likeness = strsim::jaro_winkler(last(known), last(key));
            // Among equally good names, the one in the most similar section.
            (edits, likeness, strsim::jaro_winkler(known, key))
        };
        let (best, (edits, likeness, _)) = self
            .keys
            .iter()
            .chain(&self.sections)
            .map(|known| (known.as_str(), distance(known)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(b.2.total_cmp(&a.2)))?;
        let near = edits <= 1 + last(key).chars().count() / 4;
        (near || likeness > 0.85).then_some(best)
    }
}

/// The part of a dotted key after the last dot.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}
