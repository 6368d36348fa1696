//! The translations of recent sentences, in bounded memory.
//!
//! Two generations: what is used moves to the young one, and when that has half of the memory, the old one is
//! forgotten and the young one grows old. A translation depends on its sentence alone, so what is remembered is
//! what would be found again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use attentive_runtime::translator::Translation;

use crate::models::Variant;

/// What a translation depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// A number that no other model has, not even the same one when it was loaded again.
    pub model: u64,
    /// How it was asked.
    pub variant: Variant,
    /// The sentence.
    pub sentence: String,
    /// What the translation must start with.
    pub prefix: String,
}

/// Recent sentences.
#[derive(Debug)]
pub struct Cache {
    bytes: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Translation>,
    young_bytes: usize,
    old: HashMap<Key, Translation>,
}

impl Cache {
    /// A cache of about so many bytes; with 0 it remembers nothing.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            generations: Mutex::default(),
        }
    }

    /// What is remembered.
    pub fn get(&self, key: &Key) -> Option<Translation> {
        if self.bytes == 0 {
            return None;
        }
        let mut generations = self.lock();
        if let Some(found) = generations.young.get(key) {
            return Some(found.clone());
        }
        let (key, found) = generations.old.remove_entry(key)?;
        generations.add(key, found.clone(), self.bytes);
        Some(found)
    }

    /// Remembers.
    pub fn put(&self, key: Key, translation: Translation) {
        if self.bytes > 0 {
            self.lock().add(key, translation, self.bytes);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn add(&mut self, key: Key, translation: Translation, most: usize) {
        let bytes = size(&key, &translation);
        if bytes > most / 2 {
            return;
        }
        if self.young_bytes + bytes > most / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(key, translation).is_none() {
            self.young_bytes += bytes;
        }
    }
}

/// About how much memory both take.
fn size(key: &Key, translation: &Translation) -> usize {
    let links = |alignment: &Option<Vec<(usize, usize)>>| alignment.as_ref().map_or(0, Vec::len);
    let others = translation.alternatives.iter();
    let others = others.map(|other| 100 + other.text.len() + 16 * links(&other.alignment));
    300 + key.sentence.len()
        + key.prefix.len()
        + translation.text.len()
        + 16 * links(&translation.alignment)
        + others.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Variant = Variant {
        n_best: 1,
        alignments: false,
        whole_lines: false,
        markup: false,
    };

    fn key(sentence: &str) -> Key {
        Key {
            model: 1,
            variant: PLAIN,
            sentence: sentence.to_owned(),
            prefix: String::new(),
        }
    }

    fn translation(text: &str) -> Translation {
        Translation {
            text: text.to_owned(),
            ..Translation::empty()
        }
    }

    #[test]
    fn what_is_used_stays_and_memory_is_bounded() {
        let cache = Cache::new(20_000);
        cache.put(key("often"), translation("oft"));
        for number in 0..500 {
            let sentence = format!("sentence {number}");
            cache.put(key(&sentence), translation(&sentence));
            let found = cache.get(&key("often")).map(|found| found.text);
            assert_eq!(found.as_deref(), Some("oft"), "after {number}");
        }
        let kept = (0..500).filter(|n| cache.get(&key(&format!("sentence {n}"))).is_some());
        assert!((10..=70).contains(&kept.count()));
        assert!(cache.get(&key("sentence 0")).is_none());
    }

    #[test]
    fn another_model_or_another_wish_is_another_key_and_an_empty_cache_remembers_nothing() {
        let cache = Cache::new(10_000);
        cache.put(key("a"), translation("b"));
        for other in [
            Key {
                model: 2,
                ..key("a")
            },
            Key {
                variant: Variant { n_best: 2, ..PLAIN },
                ..key("a")
            },
            Key {
                prefix: "b".into(),
                ..key("a")
            },
        ] {
            assert!(cache.get(&other).is_none(), "{other:?}");
        }
        let off = Cache::new(0);
        off.put(key("a"), translation("b"));
        assert!(off.get(&key("a")).is_none());
    }
}
