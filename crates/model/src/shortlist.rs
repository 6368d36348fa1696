//! A lexical shortlist: for each source token the few target tokens that may translate it, so that a sentence's
//! output layer computes some hundred tokens and not the whole vocabulary.
//!
//! `attentive-text` learns the [`Lexicon`] that it is made of, `attentive shortlist` writes it, and the
//! translator of `attentive-runtime` asks it for the candidates of each sentence: they depend on the tokens of
//! that sentence alone. The file:
//!
//! ```text
//! "ATTNSHRT"  magic
//! u32         format, 1
//! u32         S, size of the source vocabulary
//! u32         T, size of the target vocabulary
//! u32         A, number of tokens that are always candidates
//! u32         N, number of tokens in all lists
//! 32 bytes    BLAKE3 of the spellings of both vocabularies
//! u32 [A]     the tokens that are always candidates, rising
//! u32 [S + 1] where each source token's list begins in the next part, and where the last one ends
//! u32 [N]     the lists, one behind the other, each rising
//! 32 bytes    BLAKE3 of everything before
//! ```
//!
//! Numbers are little-endian.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_text::special::SPECIALS;
use attentive_text::{Lexicon, Tokenizer};

use crate::directory::Tokenizers;
use crate::error::{ModelError, Result};

/// Which target tokens may translate which source tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortlist {
    /// Where it was read from; errors name it.
    path: PathBuf,
    tgt_vocab: usize,
    vocabularies: [u8; HASH],
    /// Rising, like each list.
    always: Vec<u32>,
    starts: Vec<u32>,
    lists: Vec<u32>,
}

impl Shortlist {
    /// As many translations of a source token as cost models no quality.
    pub const BEST: usize = 100;
    /// As many frequent tokens as cost models no quality.
    pub const FREQUENT: usize = 500;

    /// Of the translations of each source token the `best`, besides the `frequent` most frequent target tokens,
    /// which are always candidates. So are the special tokens, and the token of the same spelling as
    /// a source token is a candidate with it, so that names and numbers can be copied.
    pub fn new(tokenizers: &Tokenizers, lexicon: &Lexicon, best: usize, frequent: usize) -> Self {
        let Tokenizers { src, tgt } = tokenizers;
        let counts = &lexicon.tgt_counts;
        let mut by_count: Vec<u32> = (SPECIALS.len() as u32..tgt.vocab_size() as u32).collect();
        by_count.retain(|&token| counts[token as usize] > 0);
        by_count.sort_by_key(|&token| std::cmp::Reverse(counts[token as usize]));
        by_count.truncate(frequent);
        let mut is_frequent = vec![false; tgt.vocab_size()];
        by_count
            .iter()
            .for_each(|&token| is_frequent[token as usize] = true);

        let ids = 0..tgt.vocab_size() as u32;
        let spelled: HashMap<_, _> = ids.map(|id| (tgt.token(id), id)).collect();
        let lists = lexicon.translations.iter().enumerate();
        let lists = lists.map(|(source, translations)| {
            let targets = translations.iter().map(|(target, _)| *target);
            let rare = targets.filter(|&target| !is_frequent[target as usize]);
            let spelling = src
                .token(source as u32)
                .filter(|_| source >= SPECIALS.len());
            let same = spelling.and_then(|spelling| spelled.get(&Some(spelling)).copied());
            rare.take(best).chain(same).collect()
        });
        Self::of_lists(tokenizers, by_count, lists)
    }

    /// With these lists, one for each source token, and tokens that are always candidates; special tokens are
    /// in any case.
    ///
    /// # Panics
    /// If there are not as many lists as source tokens, or a token is beyond the target vocabulary.
    pub fn of_lists(
        tokenizers: &Tokenizers,
        always: impl IntoIterator<Item = u32>,
        lists: impl IntoIterator<Item = Vec<u32>>,
    ) -> Self {
        let tgt_vocab = tokenizers.tgt.vocab_size();
        let mut always: Vec<u32> = always.into_iter().chain(0..SPECIALS.len() as u32).collect();
        sort_once(&mut always);
        let (mut starts, mut all) = (vec![0], Vec::new());
        for mut list in lists {
            sort_once(&mut list);
            all.extend(list);
            starts.push(all.len() as u32);
        }
        assert_eq!(
            starts.len(),
            tokenizers.src.vocab_size() + 1,
            "a list for each source token"
        );
        let below = |token: &u32| (*token as usize) < tgt_vocab;
        assert!(always.iter().all(below) && all.iter().all(below));
        Self {
            path: PathBuf::from("the new shortlist"),
            tgt_vocab,
            vocabularies: hash_of(tokenizers),
            always,
            starts,
            lists: all,
        }
    }

    /// The target tokens that may occur in the translation of these source tokens, and `others` (what it must
    /// start with, for example); rising.
    ///
    /// # Panics
    /// If a token is beyond its vocabulary.
    pub fn candidates(&self, source: &[u32], others: &[u32]) -> Vec<u32> {
        let mut marked = vec![0u64; self.tgt_vocab.div_ceil(64)];
        let mut mark = |tokens: &[u32]| {
            for &token in tokens {
                marked[token as usize / 64] |= 1 << (token % 64);
            }
        };
        mark(&self.always);
        mark(others);
        source.iter().for_each(|&token| mark(self.list(token)));
        let count = marked.iter().map(|word| word.count_ones() as usize).sum();
        let mut candidates = Vec::with_capacity(count);
        for (first, mut word) in (0..).step_by(64).zip(marked) {
            while word != 0 {
                candidates.push(first + word.trailing_zeros());
                word &= word - 1;
            }
        }
        candidates
    }

    /// The target tokens that are candidates in every sentence; rising.
    pub fn always(&self) -> &[u32] {
        &self.always
    }

    /// The target tokens that are candidates with a source token; rising.
    pub fn list(&self, source: u32) -> &[u32] {
        let source = source as usize;
        &self.lists[self.starts[source] as usize..self.starts[source + 1] as usize]
    }

    /// The number of source tokens.
    pub fn src_vocab(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether it was learned with these tokenizers.
    pub fn check(&self, tokenizers: &Tokenizers) -> Result<()> {
        let foreign = |reason| {
            let path = self.path.clone();
            Err(ModelError::ForeignShortlist { path, reason })
        };
        let sides = [
            ("source", self.src_vocab(), &tokenizers.src),
            ("target", self.tgt_vocab, &tokenizers.tgt),
        ];
        for (side, found, tokenizer) in sides {
            let expected = tokenizer.vocab_size();
            if found != expected {
                return foreign(format!(
                    "it knows {found} {side} tokens, the model {expected}"
                ));
            }
        }
        if self.vocabularies != hash_of(tokenizers) {
            return foreign("its tokens are spelled differently from the model's".to_owned());
        }
        Ok(())
    }

    /// Reads a file that holds [`Shortlist::to_bytes`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(ModelError::io("read", path))?;
        Self::from_bytes(&bytes, path)
    }

    /// Reads the bytes of a file that errors call `path`.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        Self::parse(path, bytes).map_err(|reason| ModelError::BadShortlist {
            path: path.to_path_buf(),
            reason,
        })
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sizes = [
            FORMAT as usize,
            self.src_vocab(),
            self.tgt_vocab,
            self.always.len(),
            self.lists.len(),
        ];
        let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let parts: [Vec<u8>; 6] = [
            MAGIC.to_vec(),
            numbers(&sizes.map(|size| size as u32)),
            self.vocabularies.to_vec(),
            numbers(&self.always),
            numbers(&self.starts),
            numbers(&self.lists),
        ];
        let mut bytes = parts.concat();
        let hash = *blake3::hash(&bytes).as_bytes();
        bytes.extend(hash);
        bytes
    }

    /// What is wrong with the bytes is the error.
    fn parse(path: &Path, bytes: &[u8]) -> std::result::Result<Self, String> {
        let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
            return Err("it is too short".to_owned());
        };
        let (magic, header) = header.split_at(MAGIC.len());
        let (sizes, vocabularies) = header.split_at(header.len() - HASH);
        if magic != MAGIC {
            return Err("it begins like another kind of file".to_owned());
        }
        let sizes = numbers(sizes);
        if sizes[0] != FORMAT {
            let found = sizes[0];
            return Err(format!(
                "its format is {found}, this program reads {FORMAT}"
            ));
        }
        let [src_vocab, tgt_vocab, always] = [1, 2, 3].map(|i| sizes[i] as usize);
        let count = sizes[3..].iter().map(|&size| u64::from(size)).sum::<u64>() + 1;
        let expected = (HEADER + HASH) as u64 + 4 * (count + u64::from(sizes[1]));
        if bytes.len() as u64 != expected {
            let found = bytes.len();
            return Err(format!("it has {found} bytes and should have {expected}"));
        }
        let (contents, hash) = bytes.split_at(bytes.len() - HASH);
        if *blake3::hash(contents).as_bytes() != *hash {
            return Err("its checksum is wrong, so it was changed or damaged".to_owned());
        }
        let all = numbers(&rest[..rest.len() - HASH]);
        let (always, rest) = all.split_at(always);
        let (starts, lists) = rest.split_at(src_vocab + 1);
        let rising = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let ends = starts.first() == Some(&0) && starts.last() == Some(&(lists.len() as u32));
        if !ends || !starts.is_sorted() {
            return Err("its lists overlap or leave gaps".to_owned());
        }
        let parts = starts.windows(2);
        let mut parts = parts.map(|ends| &lists[ends[0] as usize..ends[1] as usize]);
        if !rising(always) || !parts.all(rising) {
            return Err("a list does not rise".to_owned());
        }
        let mut tokens = always.iter().chain(lists);
        if let Some(token) = tokens.find(|token| **token as usize >= tgt_vocab) {
            return Err(format!("token {token} is beyond its {tgt_vocab} tokens"));
        }
        Ok(Self {
            path: path.to_path_buf(),
            tgt_vocab,
            vocabularies: vocabularies.try_into().map_err(|_| "it is too short")?,
            always: always.to_vec(),
            starts: starts.to_vec(),
            lists: lists.to_vec(),
        })
    }
}

const MAGIC: [u8; 8] = *b"ATTNSHRT";
const FORMAT: u32 = 1;
/// Bytes of a BLAKE3 hash.
const HASH: usize = 32;
const HEADER: usize = MAGIC.len() + 5 * 4 + HASH;

fn numbers(bytes: &[u8]) -> Vec<u32> {
    let numbers = bytes.as_chunks().0.iter();
    numbers.map(|&bytes| u32::from_le_bytes(bytes)).collect()
}

fn sort_once(tokens: &mut Vec<u32>) {
    tokens.sort_unstable();
    tokens.dedup();
}

/// Of every token's spelling, so that a vocabulary of the same size is not taken for the same.
fn hash_of(tokenizers: &Tokenizers) -> [u8; HASH] {
    let mut hasher = blake3::Hasher::new();
    let mut add = |tokenizer: &Tokenizer| {
        for id in 0..tokenizer.vocab_size() as u32 {
            let spelling = tokenizer.token(id).unwrap_or_default();
            hasher.update(&(spelling.len() as u64).to_le_bytes());
            hasher.update(spelling.as_bytes());
        }
    };
    add(&tokenizers.src);
    add(&tokenizers.tgt);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use attentive_text::special::EOS;
    use attentive_text::{TokenizerKind, TokenizerOptions};

    use super::*;

    fn words(text: &str) -> Tokenizer {
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 1,
            lowercase: false,
        };
        Tokenizer::train(&options, &mut [text].into_iter()).expect("words")
    }

    fn tokenizers() -> Tokenizers {
        Tokenizers {
            src: words("ein Hund in Berlin"),
            tgt: words("a dog in Berlin the of puppy"),
        }
    }

    fn example() -> Shortlist {
        let Tokenizers { src, tgt } = tokenizers();
        let id = |word: &str| tgt.id(word).expect("a word");
        let mut translations = vec![Vec::new(); src.vocab_size()];
        let mut add = |source, targets: &[&str]| {
            let place: u32 = src.id(source).expect("a word");
            let targets = targets.iter().map(|target| (id(target), 0.1));
            translations[place as usize] = targets.collect();
        };
        add("Hund", &["the", "dog", "puppy", "a"]);
        add("ein", &["a", "the", "of"]);
        let mut tgt_counts = vec![0; tgt.vocab_size()];
        tgt_counts[EOS as usize] = 100;
        for (word, count) in [("the", 9), ("a", 8), ("dog", 3), ("of", 2)] {
            tgt_counts[id(word) as usize] = count;
        }
        let lexicon = Lexicon {
            translations,
            tgt_counts,
        };
        Shortlist::new(&tokenizers(), &lexicon, 1, 2)
    }

    #[test]
    fn candidates_are_the_best_translations_the_frequent_tokens_and_equal_spellings() {
        let shortlist = example();
        let Tokenizers { src, tgt } = tokenizers();
        let candidates = |text: &str, others: &str| {
            let found = shortlist.candidates(&src.encode(text), &tgt.encode(others));
            assert!(found.is_sorted_by(|a, b| a < b));
            assert_eq!(found[..4], [0, 1, 2, 3], "special tokens");
            let mut words: Vec<&str> = found[4..].iter().filter_map(|&id| tgt.token(id)).collect();
            words.sort_unstable();
            words.join(" ")
        };
        assert_eq!(candidates("", ""), "a the");
        assert_eq!(candidates("Hund", ""), "a dog the");
        assert_eq!(candidates("ein Hund", ""), "a dog of the");
        assert_eq!(candidates("in Berlin", ""), "Berlin a in the");
        assert_eq!(candidates("Hund", "puppy"), "a dog puppy the");
    }

    #[test]
    fn a_file_gives_back_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shortlist.bin");
        let written = example();
        fs::write(&path, written.to_bytes()).expect("written");
        let read = Shortlist::open(&path).expect("read");
        let expected = Shortlist { path, ..written };
        assert_eq!(read, expected);
        read.check(&tokenizers()).expect("it fits");
    }

    /// The reason for which bytes are refused.
    fn refused(bytes: &[u8]) -> String {
        Shortlist::parse(Path::new("x"), bytes).expect_err("damaged")
    }

    /// The example with the number at `place` (in bytes) changed and the right checksum.
    fn with_number(place: usize, number: u32) -> Vec<u8> {
        let mut bytes = example().to_bytes();
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        let end = bytes.len() - HASH;
        let hash = *blake3::hash(&bytes[..end]).as_bytes();
        bytes[end..].copy_from_slice(&hash);
        bytes
    }

    #[test]
    fn damaged_files_are_refused_with_the_reason() {
        let shortlist = example();
        let whole = shortlist.to_bytes();
        for length in 0..whole.len() {
            let reason = refused(&whole[..length]);
            assert!(
                reason.contains("short") || reason.contains("bytes"),
                "{reason}"
            );
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            refused(&changed);
        }
        assert!(
            refused(b"PK\x03\x04 something else, and long enough to hold a header of ours, too")
                .contains("another kind")
        );
        let sizes = MAGIC.len();
        assert!(refused(&with_number(sizes, 2)).contains("format is 2"));
        for size in 1..=4 {
            if size != 2 {
                assert!(refused(&with_number(sizes + 4 * size, u32::MAX)).contains("bytes"));
            }
        }
        assert!(refused(&with_number(sizes + 8, 7)).contains("beyond its 7"));
        let first_start = HEADER + 4 * shortlist.always.len();
        assert!(refused(&with_number(first_start, 1)).contains("overlap"));
        assert!(refused(&with_number(first_start + 4, u32::MAX)).contains("overlap"));
        assert!(refused(&with_number(HEADER + 4, 0)).contains("rise"));
    }

    #[test]
    fn the_shortlist_of_another_model_is_refused() {
        let shortlist = example();
        let reason = |tokenizers: &Tokenizers| {
            let error = shortlist.check(tokenizers).expect_err("another model");
            assert!(matches!(error, ModelError::ForeignShortlist { .. }));
            error.to_string()
        };
        let Tokenizers { src, tgt } = tokenizers();
        let swapped = Tokenizers {
            src: tgt.clone(),
            tgt: src.clone(),
        };
        assert!(reason(&swapped).contains("it knows 8 source tokens, the model 11"));
        let other = Tokenizers {
            src,
            tgt: words("a cat in Berlin the of puppy"),
        };
        assert!(reason(&other).contains("spelled differently"));
    }

    #[test]
    fn a_file_that_is_no_shortlist_is_named_with_the_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("list.bin");
        fs::write(&path, "nothing").expect("written");
        let message = Shortlist::open(&path)
            .expect_err("no shortlist")
            .to_string();
        for part in ["list.bin", "too short", "attentive shortlist"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
        let missing = Shortlist::open(folder.path().join("none")).expect_err("missing");
        assert!(matches!(missing, ModelError::Io { .. }));
    }
}
