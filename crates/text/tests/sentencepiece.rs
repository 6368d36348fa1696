//! SentencePiece models beside the Python package: pieces and BLEU of `fixtures/sentencepiece/make.py`;
//! damaged files are errors.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;

use attentive_metrics::bleu::BleuScorer;
use attentive_metrics::bleu_options::{BleuOptions, Case, NgramOrder};
use attentive_metrics::bleu_tokenizers::BleuTokenizer;
use attentive_metrics::references::References;
use attentive_metrics::scorer::Scorer;
use attentive_text::sentencepiece::SentencePiece;
use proptest::prelude::*;
use serde_json::Value;

const MODELS: [&str; 6] = [
    "unigram",
    "unigram-unknown",
    "bpe",
    "bpe-bytes",
    "word",
    "char",
];

#[test]
fn every_string_is_cut_as_the_python_package_cuts_it() {
    let data = expected();
    let texts = strings(&data["texts"]);
    assert!(texts.len() >= 300);
    for name in MODELS {
        let model = model(name);
        let pieces = data["models"][name]["pieces"].as_array().unwrap();
        assert_eq!(pieces.len(), texts.len());
        for (text, expected) in texts.iter().zip(pieces) {
            assert_eq!(model.pieces(text), strings(expected), "{name}: {text:?}");
        }
    }
}

#[test]
fn bleu_over_pieces_equals_sacrebleus() {
    let data = expected();
    let references = References::single(&strings(&data["texts"])).unwrap();
    let outputs = strings(&data["outputs"]);
    for name in MODELS {
        let model = model(name);
        let tokenizer = BleuTokenizer::sentence_piece(move |line| model.pieces(line));
        for case in data["models"][name]["bleu"].as_array().unwrap() {
            let given = |option: &str| case["options"][option].as_bool().unwrap_or(false);
            let options = BleuOptions {
                tokenizer: tokenizer.clone(),
                case: match given("lowercase") {
                    true => Case::Lower,
                    false => Case::Mixed,
                },
                order: match given("effective_order") {
                    true => NgramOrder::Effective,
                    false => NgramOrder::Full,
                },
                ..BleuOptions::default()
            };
            let scorer = BleuScorer::new(options, &references).unwrap();
            let bleu = scorer.corpus(&outputs).unwrap();
            let label = format!("{name} {}", case["options"]);
            let score = case["score"].as_f64().unwrap();
            assert!((bleu.score - score).abs() < 1e-9, "{label}");
            assert_eq!(bleu.counts, numbers(&case["counts"]), "{label}");
            assert_eq!(bleu.totals, numbers(&case["totals"]), "{label}");
            assert_eq!(bleu.sys_len as u64, case["sys_len"], "{label}");
            assert_eq!(bleu.ref_len as u64, case["ref_len"], "{label}");
            assert!(scorer.signature().to_string().contains("|tok:spm|"));
        }
    }
}

#[test]
fn a_file_that_is_no_model_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.model");
    let error = SentencePiece::load(&missing).unwrap_err().to_string();
    assert!(error.contains("missing.model"), "{error}");
    for (content, problem) in [
        (&b""[..], "it has no pieces"),
        (b"plain text, no model", "byte"),
        (
            b"\x0a\x03\x0a\x01a",
            "0 pieces for unknown text, expected 1",
        ),
    ] {
        let path = folder.path().join("wrong.model");
        fs::write(&path, content).unwrap();
        let error = SentencePiece::load(&path).unwrap_err().to_string();
        assert!(error.contains("wrong.model"), "{error}");
        assert!(error.contains(problem), "{error}");
        assert!(error.contains("download it again"), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    // The last message of these files is the normaliser's; cutting inside a field is always noticed.
    for name in MODELS {
        let bytes = unpacked(name);
        let error = load(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(error.contains("more bytes"), "{name}: {error}");
        assert!(load(&bytes[..bytes.len() / 200]).is_err(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic(
        which in 0..MODELS.len(),
        keep in 0.0..1.2_f64,
        flips in prop::collection::vec((0.0..1.0_f64, 1..=255_u8, any::<bool>()), 0..6),
        text in "\\PC{0,20}",
    ) {
        let mut bytes = unpacked(MODELS[which]).to_vec();
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        for (place, mask, early) in flips {
            // Half of the damage goes to the pieces, which are few bytes beside a table of characters.
            let length = if early { bytes.len().min(6000) } else { bytes.len() };
            if let Some(byte) = bytes.get_mut((length as f64 * place) as usize) {
                *byte ^= mask;
            }
        }
        if let Ok(model) = load(&bytes) {
            model.pieces(&text);
            model.pieces("The ﬁx <sep> of Ｆull ½ 翻訳 e\u{301} 😀 \u{1} translated  foxes");
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        static LOADED: OnceLock<Vec<SentencePiece>> = OnceLock::new();
        for model in LOADED.get_or_init(|| MODELS.map(model).into()) {
            let pieces = model.pieces(&text);
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        }
    }
}

fn model(name: &str) -> SentencePiece {
    load(unpacked(name)).unwrap()
}

/// Writes a file and loads it, since files are what the library reads.
fn load(bytes: &[u8]) -> Result<SentencePiece, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    SentencePiece::load(file.path()).map_err(|error| error.to_string())
}

/// A model file as it was before it was compressed.
fn unpacked(name: &str) -> &'static [u8] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let files = FILES.get_or_init(|| MODELS.map(|name| read(&format!("{name}.model.gz"))).into());
    let index = MODELS.iter().position(|model| *model == name).unwrap();
    &files[index]
}

fn expected() -> Value {
    serde_json::from_slice(&read("expected.json.gz")).unwrap()
}

fn read(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentencepiece");
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

fn numbers(value: &Value) -> Vec<f64> {
    let number = |item: &Value| item.as_f64().unwrap();
    value.as_array().unwrap().iter().map(number).collect()
}
