//! SentencePiece models beside the Python package: pieces, ids, decoded text and BLEU of
//! `fixtures/sentencepiece/make.py`; damaged files are errors.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;

use attentive_metrics::bleu::BleuScorer;
use attentive_metrics::bleu_options::{BleuOptions, Case, NgramOrder};
use attentive_metrics::bleu_tokenizers::BleuTokenizer;
use attentive_metrics::references::References;
use attentive_metrics::scorer::Scorer;
use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};
use attentive_text::{SentencePiece, Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;
use serde_json::Value;

const MODELS: [&str; 7] = [
    "unigram",
    "unigram-unknown",
    "bpe",
    "bpe-bytes",
    "word",
    "word-bare",
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
fn ids_are_those_of_the_python_package_behind_our_special_tokens() {
    let data = expected();
    let texts = strings(&data["texts"]);
    let mut controls = 0;
    for name in MODELS {
        let (model, kinds) = (model(name), kinds(&data, name));
        // Pieces keep their order; those that are special to both have our ids.
        assert!(model.ids().iter().filter(|id| **id > UNK).is_sorted());
        for (text, expected) in texts
            .iter()
            .zip(data["models"][name]["ids"].as_array().unwrap())
        {
            let expected: Vec<u32> = numbers(expected)
                .map(|id| match kinds[id] {
                    b'c' => {
                        controls += 1;
                        UNK // a control piece that text spells out is text
                    }
                    _ => model.ids()[id],
                })
                .collect();
            assert_eq!(model.encode(text), expected, "{name}: {text:?}");
            assert_eq!(model.encode(text).len(), model.pieces(text).len());
        }
    }
    assert!(controls > 0, "no text spells a control piece");
}

#[test]
fn ids_are_decoded_as_the_python_package_decodes_them() {
    let data = expected();
    for name in MODELS {
        let model = model(name);
        let decode = |ids: &Value| {
            let ids: Vec<u32> = numbers(ids).map(|id| model.ids()[id]).collect();
            model.decode(&ids)
        };
        let cases = data["models"][name]["decoded"].as_array().unwrap();
        assert!(cases.len() >= 250);
        for case in cases {
            assert_eq!(
                decode(&case[0]),
                case[1].as_str().unwrap(),
                "{name}: {}",
                case[0]
            );
        }
    }
    let char = model("char");
    assert_eq!(char.decode(&[BOS, EOS, PAD, UNK, 9999]), "??");
}

#[test]
fn a_tokenizer_of_such_a_file_is_saved_and_opened_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    for name in MODELS {
        let spm = folder.path().join(format!("{name}.spm"));
        fs::write(&spm, unpacked(name)).unwrap();
        let opened = Tokenizer::load(&spm).unwrap();
        let saved = folder.path().join("tokenizer.json");
        std::fs::write(&saved, opened.to_bytes().unwrap()).unwrap();
        let again = Tokenizer::load(&saved).unwrap();
        let model = model(name);
        let text = "The quick  brown fox <sep> 12 \u{fb01}x";
        for tokenizer in [opened, again] {
            assert_eq!(tokenizer.kind(), TokenizerKind::SentencePiece);
            assert_eq!(tokenizer.fingerprint(), model.fingerprint());
            let ids = tokenizer.encode(text);
            assert_eq!(ids, model.encode(text));
            assert_eq!(tokenizer.decode(&ids), model.decode(&ids));
            assert_eq!(tokenizer.pieces(text), model.pieces(text));
            let highest = model.ids().iter().max().unwrap();
            assert_eq!(tokenizer.vocab_size(), *highest as usize + 1);
            for (id, special) in (0..).zip(SPECIALS) {
                assert_eq!(tokenizer.token(id), Some(special));
            }
        }
    }
    let options = TokenizerOptions {
        kind: TokenizerKind::SentencePiece,
        ..Default::default()
    };
    let error = Tokenizer::train(&options, &mut ["a"].into_iter()).unwrap_err();
    assert!(
        error.to_string().contains("train a bpe or unigram"),
        "{error}"
    );
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
                case: if given("lowercase") {
                    Case::Lower
                } else {
                    Case::Mixed
                },
                order: if given("effective_order") {
                    NgramOrder::Effective
                } else {
                    NgramOrder::Full
                },
                ..BleuOptions::default()
            };
            let scorer = BleuScorer::new(options, &references).unwrap();
            let bleu = scorer.corpus(&outputs).unwrap();
            let label = format!("{name} {}", case["options"]);
            let score = case["score"].as_f64().unwrap();
            assert!((bleu.score - score).abs() < 1e-9, "{label}");
            assert_eq!(bleu.counts, floats(&case["counts"]), "{label}");
            assert_eq!(bleu.totals, floats(&case["totals"]), "{label}");
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
    // The last message of these files is the normalizer's; cutting inside a field is always noticed.
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
            model.decode(&model.encode(&text));
            model.pieces("The ﬁx <sep> of Ｆull ½ 翻訳 e\u{301} 😀 \u{1} translated  foxes");
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        static LOADED: OnceLock<Vec<SentencePiece>> = OnceLock::new();
        for model in LOADED.get_or_init(|| MODELS.map(model).into()) {
            let pieces = model.pieces(&text);
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
            let ids = model.encode(&text);
            prop_assert_eq!(pieces.len(), ids.len());
            model.decode(&ids);
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

/// The kinds of a model's pieces, one letter each.
fn kinds<'d>(data: &'d Value, name: &str) -> &'d [u8] {
    data["models"][name]["kinds"].as_str().unwrap().as_bytes()
}

fn numbers(value: &Value) -> impl Iterator<Item = usize> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap() as usize)
}

fn floats(value: &Value) -> Vec<f64> {
    let number = |item: &Value| item.as_f64().unwrap();
    value.as_array().unwrap().iter().map(number).collect()
}
