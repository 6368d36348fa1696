//! Vocabulary files of other programs: what is read from them, beside PyYAML (`fixtures/imported/make.py`), and
//! the errors of files that are damaged or no vocabularies.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use attentive_text::TextError;
use attentive_text::tokenizer::vocabulary_file::{fairseq_dict, json, txt, yml};
use proptest::prelude::*;
use serde_json::Value;

type Entries = Vec<(String, u32)>;
type Reader = fn(PathBuf) -> Result<Entries, TextError>;

const READERS: [Reader; 4] = [json, yml, txt, fairseq_dict];

#[test]
fn every_kind_gives_tokens_in_the_order_of_their_ids() {
    let expected = entries(&["</s>", "▁the", "it's", "\u{2028}"]);
    for (reader, content) in [
        (
            READERS[0],
            "{\"▁the\": 1,\n \"\\u2028\": 3, \"</s>\": 0, \"it's\": 2}",
        ),
        (READERS[0], "[\"</s>\", \"▁the\", \"it's\", \"\u{2028}\"]"),
        (
            READERS[1],
            "---\n# words\n</s>: 0\n\"\\L\": 3\n\n▁the: 1\n'it''s' : 2\n...\n",
        ),
        (
            READERS[1],
            "\u{feff}? \"▁the\"\n: 1\r\n? </s>\n: 0\nit's: 2 \n\"\\u2028\": 3",
        ),
        (
            READERS[1],
            "\n{\"▁the\": 1, \"\\u2028\": 3, \"</s>\": 0, \"it's\": 2}",
        ),
        (READERS[2], "</s>\n▁the\nit's\n\u{2028}\n"),
        (READERS[2], "</s>\r\n▁the\r\nit's\r\n\u{2028}\r\n"),
        (
            READERS[3],
            "</s> 9\n▁the 7\nit's 3 #fairseq:overwrite\n\u{2028} 0",
        ),
    ] {
        assert_eq!(read(reader, content).unwrap(), expected, "{content:?}");
    }
    // A line end that not every line has is a part of the token.
    assert_eq!(
        read(READERS[2], "a\r\nb\n").unwrap(),
        entries(&["a\r", "b"])
    );
    assert_eq!(read(READERS[3], "a b 1\n").unwrap(), entries(&["a b"]));
}

#[test]
fn yml_is_what_pyyaml_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/imported");
    let mut file =
        flate2::read::GzDecoder::new(fs::File::open(folder.join("expected.json.gz")).unwrap());
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let tokens: Vec<&str> = data["yml"]["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_str().unwrap())
        .collect();
    let files = data["yml"]["files"].as_array().unwrap();
    assert!(tokens.len() > 60 && files.len() > 3);
    for file in files {
        assert_eq!(
            read(READERS[1], file.as_str().unwrap()).unwrap(),
            entries(&tokens)
        );
    }
}

#[test]
fn problems_are_told_with_file_and_line() {
    let [json, yml, txt, dict] = READERS;
    for (reader, content, line, problem) in [
        (
            json,
            "{\"a\": 0,\n \"b\": 0}",
            "line 2",
            "the id 0 of \"b\" stands there twice",
        ),
        (
            json,
            "{\"a\": 0,\n\n \"a\": 1}",
            "line 3",
            "the token \"a\" stands there twice",
        ),
        (
            json,
            "{\"a\": 0,\n \"b\": -1}",
            "line 2",
            "invalid value: integer `-1`",
        ),
        (
            json,
            "{\"a\": 0,\n \"b\": 4294967296}",
            "line 2",
            "invalid value",
        ),
        (json, "{\"a\": 0,\n \"b\": \"1\"}", "line 2", "expected u32"),
        (json, "{\"a\": 0,\n \"b\"", "line 2", "EOF while parsing"),
        (json, "{\"a\": 0}\nmore", "line 2", "trailing characters"),
        (json, "[\"a\",\n 5]", "line 2", "expected a string"),
        (
            json,
            "[\"a\",\n \"a\"]",
            "line 2",
            "the token \"a\" stands there twice",
        ),
        (
            json,
            "5",
            "line 1",
            "expected a JSON object of tokens and ids",
        ),
        (
            json,
            "{\"a\": 0, \"b\": 2}",
            "",
            "no token has the id 1; the next one is \"b\" with 2",
        ),
        (json, "{\"a\": 1}", "", "no token has the id 0"),
        (json, "{}", "", "it holds no token"),
        (json, "", "line 1", "EOF"),
        (
            yml,
            "a: 0\nb: 0",
            "line 2",
            "the id 0 of \"b\" stands there twice",
        ),
        (
            yml,
            "a: 0\n'a': 1",
            "line 2",
            "the token \"a\" stands there twice",
        ),
        (yml, "a: 0\nb: x", "line 2", "where `: id` should stand"),
        (yml, "a: 0\nb: -1", "line 2", "where `: id` should stand"),
        (
            yml,
            "a: 0\nb: 99999999999",
            "line 2",
            "where `: id` should stand",
        ),
        (yml, "a: 0\nb", "line 2", "found \"b\""),
        (yml, "a: 0\nb:", "line 2", "found \"b:\""),
        (yml, "a: 0\n\"b: 1", "line 2", "without a second \""),
        (yml, "a: 0\n\"b\\q\": 1", "line 2", "unknown escape"),
        (
            yml,
            "a: 0\n\"b\\ud800\": 1",
            "line 2",
            "\"d800\", which is no character",
        ),
        (yml, "a: 0\n\"\\x1\": 1", "line 2", "which is no character"),
        (
            yml,
            "a: 0\n\"b\" 1: 1",
            "line 2",
            "where `: id` should stand",
        ),
        (yml, "a: 0\n- b: 1", "line 2", "needs quotation marks"),
        (yml, "a: 0\n  b: 1", "line 2", "needs quotation marks"),
        (yml, "a: 0\n&x b: 1", "line 2", "needs quotation marks"),
        (yml, "a: 0\nb: c: 1", "line 2", "needs quotation marks"),
        (yml, "a: 0\nb #c: 1", "line 2", "needs quotation marks"),
        (yml, "a: 0\n? b", "line 2", "found no id of \"b\""),
        (
            yml,
            "a: 0\n? b\nc: 1",
            "line 3",
            "where `: id` should stand",
        ),
        (yml, "a: 0\n? \"b\" c\n: 1", "line 2", "behind a token"),
        (yml, "a: 0\nb: 7", "", "no token has the id 1"),
        (txt, "a\n\nb", "line 2", "found an empty line"),
        (
            txt,
            "a\nb\na",
            "line 3",
            "the token \"a\" stands there twice",
        ),
        (txt, "", "", "it holds no token"),
        (dict, "a 1\nb", "line 2", "found \"b\""),
        (dict, "a 1\nb x", "line 2", "found \"b x\""),
        (dict, "a 1\n 5", "line 2", "found \" 5\""),
        (
            dict,
            "a 1\na 2",
            "line 2",
            "the token \"a\" stands there twice",
        ),
    ] {
        let error = read(reader, content).unwrap_err();
        assert!(matches!(error, TextError::VocabularyFile { .. }), "{error}");
        let message = error.to_string();
        for part in ["vocabulary.file", line, problem, "; expected "] {
            assert!(
                message.contains(part),
                "{content:?}: {part:?} is not in: {message}"
            );
        }
        assert_eq!(message.contains(", line "), !line.is_empty(), "{message}");
    }
}

#[test]
fn missing_files_and_other_encodings_are_named() {
    for reader in READERS {
        let error = reader(PathBuf::from("not/there.yml")).unwrap_err();
        assert!(matches!(error, TextError::Open { .. }), "{error}");
        let error = read(reader, b"a: 0\nb\xff: 1").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("line 2: byte 2 is not valid UTF-8"),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_content_is_a_vocabulary_or_an_error(
        content in prop_oneof![any::<String>(), "([ab\"':?\\\\ \n\r0-3{},#x-])*", "(\"?[a-c]\"?: [0-3]\n)*"],
    ) {
        for reader in READERS {
            match read(reader, &content) {
                Ok(entries) => prop_assert!((0..).zip(&entries).all(|(id, entry)| id == entry.1)),
                Err(error) => prop_assert!(error.to_string().contains("vocabulary.file")),
            }
        }
    }
}

fn read(reader: Reader, content: impl AsRef<[u8]>) -> Result<Entries, TextError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocabulary.file");
    fs::write(&path, content).unwrap();
    reader(path)
}

fn entries(tokens: &[&str]) -> Entries {
    (0..)
        .zip(tokens)
        .map(|(id, token)| ((*token).to_owned(), id))
        .collect()
}
