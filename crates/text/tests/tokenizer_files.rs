//! Tokenizer files that are missing, damaged or made for something else: an error that names the
//! file and says what is wrong, never a panic and never a tokenizer that cuts text wrongly.

use std::path::PathBuf;

use attentive_text::{TextError, Tokenizer, TokenizerKind, TokenizerOptions};
use serde_json::{Value, json};

const KINDS: [TokenizerKind; 4] = [
    TokenizerKind::Word,
    TokenizerKind::Tabs,
    TokenizerKind::Bpe,
    TokenizerKind::Unigram,
];

/// A way to make a good file unfit.
type Change<'c> = &'c dyn Fn(&mut Value);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("damaged.json");
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The JSON of a small trained tokenizer.
    fn json(&self, kind: TokenizerKind) -> String {
        let options = TokenizerOptions {
            kind,
            vocab_size: 300,
            min_frequency: 1,
            lowercase: false,
        };
        let text = ["the\tcat sat", "on\tthe mat", "the cat"];
        let path = self.0.path().join("good.json");
        let tokenizer = Tokenizer::train(&options, &mut text.into_iter()).unwrap();
        std::fs::write(&path, tokenizer.to_bytes().unwrap()).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    fn message(&self, content: impl AsRef<[u8]>) -> String {
        let error = Tokenizer::load(self.file(content)).unwrap_err();
        assert!(matches!(error, TextError::TokenizerFile { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("damaged.json"), "{message}");
        message
    }
}

#[test]
fn word_files_load_as_they_were_saved() {
    let folder = Folder::new();
    for kind in [TokenizerKind::Word, TokenizerKind::Tabs] {
        let loaded = Tokenizer::load(folder.file(folder.json(kind))).unwrap();
        let again = folder.0.path().join("again.json");
        std::fs::write(&again, loaded.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.kind(), kind);
        assert_eq!(std::fs::read_to_string(&again).unwrap(), folder.json(kind));
        assert_eq!(
            Tokenizer::load(&again).unwrap().fingerprint(),
            loaded.fingerprint()
        );
    }
}

#[test]
fn a_cut_off_file_is_named() {
    let folder = Folder::new();
    for kind in KINDS {
        let json = folder.json(kind);
        for share in 0..20 {
            let message = folder.message(&json.as_bytes()[..json.len() * share / 20]);
            assert!(message.contains("not complete JSON"), "{message}");
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let folder = Folder::new();
    for kind in KINDS {
        let json = folder.json(kind).into_bytes();
        for at in (0..json.len()).step_by(1 + json.len() / 60) {
            for replacement in [b'"', b'9', b'}'] {
                let mut damaged = json.clone();
                damaged[at] = replacement;
                if let Ok(tokenizer) = Tokenizer::load(folder.file(&damaged)) {
                    let text = "the cat </s> 12";
                    tokenizer.decode(&tokenizer.encode(text));
                }
            }
        }
    }
}

#[test]
fn other_files_are_told_apart() {
    let folder = Folder::new();
    assert!(folder.message([0xff, 0xfe]).contains("not a text file"));
    assert!(folder.message("hello").contains("not complete JSON"));
    assert!(folder.message("[1, 2]").contains("neither a `format`"));
    let config = r#"{"d_model": 512, "heads": 8}"#;
    assert!(folder.message(config).contains("neither a `format`"));
    let newer =
        r#"{"format": "attentive-words-2", "kind": "word", "lowercase": false, "tokens": []}"#;
    assert!(folder.message(newer).contains("attentive-words-1"));
    let wrong =
        r#"{"format": "attentive-words-1", "kind": "bpe", "lowercase": false, "tokens": []}"#;
    assert!(folder.message(wrong).contains("cannot be of kind bpe"));
}

#[test]
fn missing_files_and_folders_are_named() {
    let folder = Folder::new();
    let missing = folder.0.path().join("not-there").join("tokenizer.json");
    let error = Tokenizer::load(&missing).unwrap_err();
    assert!(matches!(error, TextError::Open { .. }), "{error}");
    assert!(error.to_string().contains("not-there"), "{error}");
}

#[test]
fn subword_files_of_other_designs_are_refused_with_the_reason() {
    let folder = Folder::new();
    let refusal = |kind, change: Change| {
        let mut value: Value = serde_json::from_str(&folder.json(kind)).unwrap();
        change(&mut value);
        folder.message(value.to_string())
    };
    let bpe = TokenizerKind::Bpe;
    let cases: [(&str, Change); 8] = [
        ("neither absent nor Lowercase", &|file| {
            file["normalizer"] = json!({"type": "NFKC"})
        }),
        ("not ByteLevel", &|file| {
            file["pre_tokenizer"] = json!({"type": "Whitespace"})
        }),
        ("not ByteLevel", &|file| {
            file["pre_tokenizer"]["add_prefix_space"] = json!(true)
        }),
        ("dropout", &|file| file["model"]["dropout"] = json!(0.1)),
        ("starts or ends of words", &|file| {
            file["model"]["end_of_word_suffix"] = json!("</w>")
        }),
        ("first tokens", &|file| {
            file["model"]["vocab"]["<s>"] = json!(1);
            file["model"]["vocab"]["</s>"] = json!(0);
        }),
        ("no token has the id", &|file| {
            file["model"]["vocab"]["!"] = json!(100_000)
        }),
        ("not made of bytes", &|file| {
            let next = file["model"]["vocab"].as_object().unwrap().len();
            file["model"]["vocab"]["語"] = json!(next);
        }),
    ];
    for (reason, change) in cases {
        let message = refusal(bpe, change);
        assert!(message.contains(reason), "{reason} is not in: {message}");
    }
    let added: Change = &|file| {
        let mut token = file["added_tokens"][0].clone();
        (token["id"], token["content"]) = (json!(99_999), json!("<new>"));
        file["added_tokens"].as_array_mut().unwrap().push(token);
    };
    for (reason, change) in [cases[0], cases[1], cases[2], ("added tokens", added)] {
        let message = refusal(TokenizerKind::Unigram, change);
        assert!(message.contains(reason), "{reason} is not in: {message}");
    }
    let message = refusal(TokenizerKind::Unigram, &|file| {
        let vocab = file["model"]["vocab"].as_array_mut().unwrap();
        let byte = vocab.iter().position(|entry| entry[0] == "Ā").unwrap();
        vocab[byte][0] = json!("ĀĀ");
    });
    assert!(message.contains("lacks the byte 0x00"), "{message}");
    let message =
        refusal(
            bpe,
            &|file| {
                file["model"] =
                    json!({"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"})
            },
        );
    assert!(message.contains("neither BPE nor Unigram"), "{message}");
}
