//! Damaged vocabularies and codes: each is refused by its name, or is a vocabulary with which text can be cut.

use std::fs;
use std::path::Path;

use attentive_convert::error::{ConvertError, Result};
use attentive_text::special::SPECIALS;
use attentive_text::tokenizer::vocabulary_file;
use attentive_text::{SentencePiece, Tokenizer};

use crate::reader::{Attempts, Contents, Reader};
use crate::{FILES, KINDS, Random, damage};

const TEXT: &str = "a small dog, näher: ＡＢ \u{1f600} <unk> it's back\\slash";

/// Words of the fixtures, as fairseq's dictionaries and plain lists have them.
fn words() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentences.txt");
    let text = fs::read_to_string(path).expect("a fixture");
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read(folder.join(name)).expect("a fixture")
}

/// Cuts a text and joins it again.
fn used(tokenizer: &Tokenizer) -> Contents {
    let ids = tokenizer.encode(TEXT);
    assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
    tokenizer.decode(&ids);
    Contents::Text
}

fn sentencepiece(path: &Path) -> Result<Contents> {
    let bytes = fs::read(path).expect("just written");
    let file = SentencePiece::from_bytes(&bytes, path)?;
    assert!(!file.ids().is_empty());
    Ok(used(&Tokenizer::from_bytes(&bytes, path)?))
}

/// Tokens behind our special ones.
fn listed(entries: Vec<(String, u32)>) -> Contents {
    assert!((0..).zip(&entries).all(|(id, entry)| id == entry.1));
    Contents::Text
}

fn json(path: &Path) -> Result<Contents> {
    Ok(listed(vocabulary_file::json(path)?))
}

fn yml(path: &Path) -> Result<Contents> {
    Ok(listed(vocabulary_file::yml(path)?))
}

fn txt(path: &Path) -> Result<Contents> {
    Ok(listed(vocabulary_file::txt(path)?))
}

fn dictionary(path: &Path) -> Result<Contents> {
    Ok(listed(vocabulary_file::fairseq_dict(path)?))
}

fn codes(path: &Path) -> Result<Contents> {
    let codes = fs::read(path).expect("just written");
    let codes = String::from_utf8_lossy(&codes);
    let words = words()
        .into_iter()
        .flat_map(|word| [format!("{word}@@"), word]);
    let vocabulary = SPECIALS
        .map(str::to_owned)
        .into_iter()
        .chain(words)
        .collect();
    let wrong = |source| ConvertError::Tokenizer {
        path: path.to_path_buf(),
        source,
    };
    Ok(used(
        &Tokenizer::subword_nmt(&codes, vocabulary).map_err(wrong)?,
    ))
}

/// Damages a file in every way. A shorter list of words is a list, so that only some kinds of files are known to be
/// incomplete.
fn damaged(reader: Reader, files: &[Vec<u8>]) {
    let attempts = Attempts::new();
    for file in files {
        let (result, _) = attempts.read("the file as it is", reader, file);
        result.expect("the file as it is");
    }
    let (mut random, mut refused) = (Random(23), 0);
    for number in 0..FILES {
        let kind = number / files.len() % KINDS.len();
        let mut file = files[number % files.len()].clone();
        damage(kind, &mut random, &mut file);
        let what = format!("number {number}: {}", KINDS[kind]);
        let (result, _) = attempts.read(&what, reader, &file);
        refused += usize::from(result.is_err());
    }
    assert!(attempts.leftovers().is_empty());
    assert!(
        refused > FILES / 20,
        "only {refused} of {FILES} were refused"
    );
}

#[test]
fn damaged_sentencepiece_files_are_refused_or_read() {
    let bpe = fixture("huggingface/m2m100/sentencepiece.bpe.model");
    damaged(
        sentencepiece,
        &[fixture("marian/bergamot/vocab.enpt.spm"), bpe],
    );
}

#[test]
fn damaged_json_vocabularies_are_refused_or_read() {
    let list = fixture("ctranslate2/float32/shared_vocabulary.json");
    damaged(json, &[fixture("huggingface/marian/vocab.json"), list]);
}

#[test]
fn damaged_yml_vocabularies_are_refused_or_read() {
    let names = [
        "post-norm-bin/vocab.yml",
        "pre-norm-npz/vocab.src.yml",
        "pre-norm-npz/vocab.trg.yml",
    ];
    damaged(yml, &names.map(|name| fixture(&format!("marian/{name}"))));
}

#[test]
fn damaged_lists_of_tokens_are_refused_or_read() {
    damaged(txt, &[(words().join("\n") + "\n").into_bytes()]);
}

#[test]
fn damaged_dictionaries_of_fairseq_are_refused_or_read() {
    let lines = (0..)
        .zip(words())
        .map(|(count, word)| format!("{word} {}\n", 900 - count));
    damaged(dictionary, &[lines.collect::<String>().into_bytes()]);
}

#[test]
fn damaged_codes_of_subword_nmt_are_refused_or_read() {
    let merges = "#version: 0.2\nt h\nth e</w>\na n\ni n\ns m\nsm a\nd o\ndo g</w>\ni t</w>\n";
    let old = merges.replace("#version: 0.2\n", "");
    damaged(codes, &[merges.as_bytes().to_vec(), old.into_bytes()]);
}
