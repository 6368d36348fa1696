//! The files of such tokenizers: saved and loaded, cut off, damaged, and of parts that do not belong together.

use std::fs;

use attentive_text::special::SPECIALS;
use attentive_text::{TextError, Tokenizer, TokenizerKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    EXPECTED, TOKENIZERS, marian, marian_vocabulary, strings, subword_nmt, unpacked, with_specials,
};

#[test]
fn tokenizers_load_as_they_were_saved() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        TokenizerKind::SentencePiece,
        TokenizerKind::SubwordNmt,
        TokenizerKind::Characters,
    ];
    for (name, tokenizer) in &*TOKENIZERS {
        assert_eq!(tokenizer.file_extension(), "json");
        assert!(kinds.contains(&tokenizer.kind()));
        let path = folder.path().join("src.tokenizer.json");
        let file = tokenizer.to_bytes().unwrap();
        fs::write(&path, &file).unwrap();
        let loaded = Tokenizer::load(&path).unwrap();
        assert_eq!(loaded.to_bytes().unwrap(), file, "{name}");
        assert_eq!(loaded.fingerprint(), tokenizer.fingerprint());
        assert_eq!(
            (loaded.kind(), loaded.vocab_size()),
            (tokenizer.kind(), tokenizer.vocab_size())
        );
        for text in strings(&EXPECTED["texts"]).iter().take(60) {
            let ids = tokenizer.encode(text);
            assert_eq!(loaded.encode(text), ids, "{name}: {text:?}");
            assert_eq!(loaded.decode(&ids), tokenizer.decode(&ids));
            assert_eq!(loaded.pieces(text), tokenizer.pieces(text));
        }
        for (id, special) in (0..).zip(SPECIALS) {
            assert_eq!(
                (loaded.token(id), loaded.label(id).as_str()),
                (Some(special), special)
            );
        }
    }
    let (_, first) = &TOKENIZERS[0];
    let fingerprints = TOKENIZERS
        .iter()
        .filter(|(_, other)| other.fingerprint() == first.fingerprint());
    assert_eq!(fingerprints.count(), 1);
}

#[test]
fn files_that_are_cut_off_or_of_another_make_are_refused_with_the_reason() {
    for (name, tokenizer) in &*TOKENIZERS {
        let file = tokenizer.to_bytes().unwrap();
        for share in 0..20 {
            let message = refusal(&file[..file.len() * share / 20]);
            // Cut within a character, it is no text.
            let reason = ["not complete JSON", "not a text file"];
            assert!(
                reason.iter().any(|reason| message.contains(reason)),
                "{name}: {message}"
            );
        }
    }
    let file = |tokenizer: &Tokenizer| -> Value {
        serde_json::from_slice(&tokenizer.to_bytes().unwrap()).unwrap()
    };
    let changed = |mut file: Value, key: &str, value: Value| {
        file[key] = value;
        refusal(file.to_string().as_bytes())
    };
    let (spm, codes) = (file(&marian("bpe")), file(&subword_nmt("0.2")));
    let without = |file: &Value, key: &str| {
        let mut file = file.clone();
        file.as_object_mut().unwrap().remove(key);
        refusal(file.to_string().as_bytes())
    };
    for (message, reason) in [
        (
            changed(spm.clone(), "format", json!("attentive-imported-2")),
            "expected \"attentive-imported-1\"",
        ),
        (
            changed(spm.clone(), "kind", json!("characters")),
            "its kind is characters",
        ),
        (
            changed(spm.clone(), "kind", json!("morphemes")),
            "unknown variant `morphemes`",
        ),
        (
            changed(spm.clone(), "sentencepiece", json!("CgQKA???")),
            "is not base64",
        ),
        (
            changed(spm.clone(), "sentencepiece", json!("")),
            "it has no pieces",
        ),
        (
            changed(spm.clone(), "tokens", json!(["a"])),
            "first tokens should be",
        ),
        (
            changed(spm.clone(), "tokens", json!(SPECIALS)),
            "do not belong together",
        ),
        (
            changed(spm.clone(), "more", json!(1)),
            "unknown field `more`",
        ),
        (without(&spm, "sentencepiece"), "its kind is sentencepiece"),
        (without(&spm, "tokens"), "missing field `tokens`"),
        (
            changed(codes.clone(), "codes", json!("#version: 0.3\na b")),
            "version \"0.3\"",
        ),
        (
            changed(codes.clone(), "codes", json!("#version: 0.2\na b\na b c")),
            "line 3 of its codes is \"a b c\"",
        ),
        (
            changed(codes.clone(), "codes", json!("a b\n\nc d")),
            "line 2 of its codes is \"\"",
        ),
    ] {
        assert!(message.contains(reason), "{reason} is not in: {message}");
    }
}

#[test]
fn parts_that_make_no_tokenizer_are_refused_with_the_reason() {
    let vocabulary = || SPECIALS.map(str::to_owned).to_vec();
    let spm = unpacked("bpe.spm.gz");
    for (made, reason) in [
        (
            Tokenizer::sentencepiece_with_vocabulary(&spm, vocabulary()),
            "none of the",
        ),
        (
            Tokenizer::sentencepiece_with_vocabulary(b"text", vocabulary()),
            "byte 0",
        ),
        (
            Tokenizer::subword_nmt("", vocabulary()),
            "line 1 of its codes",
        ),
        (Tokenizer::characters(vec!["a".to_owned()]), "first tokens"),
        (
            Tokenizer::characters([vocabulary(), vec!["a".to_owned(); 2]].concat()),
            "twice",
        ),
    ] {
        let error = made.unwrap_err();
        assert!(
            matches!(error, TextError::ImportedTokenizer { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains(reason),
            "{reason} is not in: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic(
        which in 0..7_usize,
        flips in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..4),
        text in "\\PC{0,20}",
    ) {
        let mut file = TOKENIZERS[which].1.to_bytes().unwrap();
        for (place, byte) in flips {
            let at = (file.len() as f64 * place) as usize;
            file[at] = byte;
        }
        match Tokenizer::from_bytes(&file, "damaged.json") {
            Ok(tokenizer) => drop(tokenizer.decode(&tokenizer.encode(&text))),
            Err(error) => prop_assert!(error.to_string().contains("damaged.json")),
        }
    }

    #[test]
    fn damaged_parts_never_panic(
        keep in 0.5..1.3_f64,
        flips in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 0..5),
        text in "\\PC{0,20}",
    ) {
        let damage = |mut bytes: Vec<u8>| {
            bytes.truncate((bytes.len() as f64 * keep) as usize);
            for (place, byte) in &flips {
                let at = (bytes.len() as f64 * place) as usize;
                bytes[at] = *byte;
            }
            bytes
        };
        for name in ["unigram", "bpe"] {
            let tokens = marian_vocabulary(name);
            let spm = damage(unpacked(&format!("{name}.spm.gz")));
            if let Ok(tokenizer) = Tokenizer::sentencepiece_with_vocabulary(&spm, tokens) {
                tokenizer.decode(&tokenizer.encode(&text));
            }
        }
        let data = &EXPECTED["subword_nmt"]["0.2"];
        let codes = damage(data["codes"].as_str().unwrap().as_bytes().to_vec());
        let tokens = with_specials(strings(&data["tokens"]).into_iter());
        if let Ok(tokenizer) = Tokenizer::subword_nmt(&String::from_utf8_lossy(&codes), tokens) {
            tokenizer.decode(&tokenizer.encode(&text));
        }
    }
}

fn refusal(file: &[u8]) -> String {
    let error = Tokenizer::from_bytes(file, "damaged.json").unwrap_err();
    assert!(matches!(error, TextError::TokenizerFile { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("damaged.json"), "{message}");
    message
}
