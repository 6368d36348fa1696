//! Translated files that wait to be fetched: a few of them, for a while, under names that nobody guesses.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::refusal::Refusal;

/// Files that wait to be fetched.
#[derive(Debug, Default)]
pub struct Files(Mutex<VecDeque<Stored>>);

/// A file and who may have it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its name in addresses.
    pub id: String,
    /// What must be known besides, for DeepL's clients.
    pub key: String,
    /// What it is called.
    pub name: String,
    /// How many characters were translated.
    pub characters: usize,
    /// What came out, or why nothing did.
    pub result: Result<Vec<u8>, Refusal>,
    since: Instant,
}

const MOST_FILES: usize = 1000;
const MOST_BYTES: usize = 64 << 20;
const KEPT: Duration = Duration::from_secs(20 * 60);

impl Files {
    /// Stores a file; the oldest ones go if there are too many. Returns its id and its key.
    pub fn add(
        &self,
        name: String,
        characters: usize,
        result: Result<Vec<u8>, Refusal>,
    ) -> (String, String) {
        let (id, key) = (random_id(), random_id());
        let mut files = self.lock();
        files.push_back(Stored {
            id: id.clone(),
            key: key.clone(),
            name,
            characters,
            result,
            since: Instant::now(),
        });
        let mut bytes: usize = files.iter().map(Stored::bytes).sum();
        while files.len() > MOST_FILES || bytes > MOST_BYTES {
            bytes -= files.pop_front().map_or(bytes, |oldest| oldest.bytes());
        }
        (id, key)
    }

    /// A file that is still there.
    pub fn get(&self, id: &str) -> Option<Stored> {
        let mut files = self.lock();
        files.retain(|file| file.since.elapsed() < KEPT);
        files.iter().find(|file| file.id == id).cloned()
    }

    /// The same, and it is gone then.
    pub fn take(&self, id: &str) -> Option<Stored> {
        let file = self.get(id)?;
        self.lock().retain(|other| other.id != id);
        Some(file)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, Vec::len)
    }
}

/// 128 random bits in the form of a UUID.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    let bits = u128::from_le_bytes(bytes);
    // Version 4, variant 1.
    let bits = bits & !(0xF << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_ids_and_the_oldest_go_first() {
        let files = Files::default();
        let (first, _) = files.add("a.txt".into(), 1, Ok(vec![1; 1000]));
        assert_eq!(
            files.get(&first).map(|file| file.name).as_deref(),
            Some("a.txt")
        );
        assert!(files.get("00000000-0000-4000-8000-000000000000").is_none());
        for _ in 0..3 {
            files.add("b.txt".into(), 1, Ok(vec![0; MOST_BYTES / 3]));
        }
        assert!(files.get(&first).is_none());
        let (last, _) = files.add("c.txt".into(), 1, Err(Refusal::Failed));
        assert!(files.take(&last).is_some() && files.take(&last).is_none());
    }

    #[test]
    fn ids_are_uuids_of_version_4() {
        let id = random_id();
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "4");
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, random_id());
    }
}
