//! Tokenizers that other programs bring: `parity` sets them beside those programs, `files` damages their files. The
//! fixtures of both are here; `../fixtures/imported/make.py` made them.

mod files;
mod parity;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use attentive_text::Tokenizer;
use attentive_text::special::SPECIALS;
use serde_json::Value;

const MARIAN: [&str; 3] = ["unigram", "bpe", "bytes"];
const CODES: [&str; 3] = ["0.1", "0.2", "shuffled"];

static EXPECTED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&unpacked("expected.json.gz")).unwrap());

static TOKENIZERS: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    let marian = MARIAN.map(|name| (format!("marian {name}"), marian(name)));
    let codes = CODES.map(|name| (format!("subword-nmt {name}"), subword_nmt(name)));
    let characters = (
        "characters".to_owned(),
        characters("abc äß日👍 </>s\u{301}"),
    );
    marian
        .into_iter()
        .chain(codes)
        .chain([characters])
        .collect()
});

/// Our vocabulary of another program's tokens: its special tokens are ours, the others keep their order.
fn with_specials(tokens: impl Iterator<Item = String>) -> Vec<String> {
    let others = tokens.filter(|token| !["</s>", "<unk>", "<pad>"].contains(&token.as_str()));
    SPECIALS
        .map(str::to_owned)
        .into_iter()
        .chain(others)
        .collect()
}

fn marian(name: &str) -> Tokenizer {
    let spm = match name {
        "bytes" => unpacked("../sentencepiece/unigram.model.gz"),
        _ => unpacked(&format!("{name}.spm.gz")),
    };
    Tokenizer::sentencepiece_with_vocabulary(&spm, marian_vocabulary(name)).unwrap()
}

fn marian_vocabulary(name: &str) -> Vec<String> {
    with_specials(strings(&EXPECTED["marian"][name]["tokens"]).into_iter())
}

fn subword_nmt(name: &str) -> Tokenizer {
    let data = &EXPECTED["subword_nmt"][name];
    let tokens = with_specials(strings(&data["tokens"]).into_iter());
    Tokenizer::subword_nmt(data["codes"].as_str().unwrap(), tokens).unwrap()
}

fn characters(known: &str) -> Tokenizer {
    let known: BTreeSet<char> = known.chars().collect();
    Tokenizer::characters(with_specials(known.into_iter().map(String::from))).unwrap()
}

fn unpacked(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/imported");
    let file = fs::File::open(folder.join(name)).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn strings(value: &Value) -> Vec<String> {
    let text = |item: &Value| item.as_str().unwrap().to_owned();
    value.as_array().unwrap().iter().map(text).collect()
}
