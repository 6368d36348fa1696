//! `attentive translate` with documents: formats, files, messages.
//!
//! Nothing here depends on how well a model translates, only on what is done around it.

mod program;

use std::fs;

use program::{Folder, attentive, attentive_reading};

/// What the model makes of a line.
fn by_model(line: &str) -> String {
    let ran = attentive(&["translate", "--model", "de-en", line]);
    ran.good().trim_end().to_owned()
}

#[test]
fn a_document_keeps_everything_but_its_words() {
    let folder = Folder::new();
    let (input, output) = (folder.path("a.md"), folder.path("b.md"));
    fs::write(
        &input,
        "# Guten Morgen\n\n```\nlet code;\n```\n\n- Ein Hund rennt.\n",
    )
    .unwrap();
    let ran = attentive(&["translate", "--model", "de-en", "-i", &input, "-o", &output]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("2 texts translated"), "{ran:?}");
    assert!(
        ran.stderr.contains("not translated: 1 x code (line 3)"),
        "{ran:?}"
    );
    let (title, item) = (by_model("Guten Morgen"), by_model("Ein Hund rennt."));
    let expected = format!("# {title}\n\n```\nlet code;\n```\n\n- {item}\n");
    assert_eq!(fs::read_to_string(&output).unwrap(), expected);
}

#[test]
fn several_documents_go_to_a_folder_under_their_names() {
    let folder = Folder::new();
    let (one, two, out) = (
        folder.path("one.json"),
        folder.path("two.srt"),
        folder.path("out"),
    );
    fs::write(&one, "{\"a\": \"Ein Hund rennt.\"}").unwrap();
    fs::write(&two, "1\n00:00:01,000 --> 00:00:02,000\nEin Hund rennt.\n").unwrap();
    let inputs = ["translate", "--model", "de-en", "-i", &one, "-i", &two];
    let refused = attentive(&inputs);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--out-dir"), "{refused:?}");
    let ran = attentive(&[&inputs[..], &["--out-dir", &out]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = by_model("Ein Hund rennt.");
    let read = |name: &str| fs::read_to_string(format!("{out}/{name}")).unwrap();
    assert_eq!(read("one.json"), format!("{{\"a\": \"{text}\"}}"));
    assert!(
        read("two.srt").ends_with(&format!("02,000\n{text}\n")),
        "{}",
        read("two.srt")
    );
    let onto_itself = attentive(&[
        "translate",
        "--model",
        "de-en",
        "-i",
        &one,
        "--out-dir",
        &folder.path(""),
    ]);
    assert_eq!(onto_itself.code, 2, "{onto_itself:?}");
}

#[test]
fn the_format_can_be_named_for_sentences_and_pipes() {
    let text = by_model("Ein Hund rennt.");
    let arguments = ["translate", "--model", "de-en", "--format", "html"];
    let sentence = attentive(&[&arguments[..], &["<p>Ein Hund rennt.</p>"]].concat());
    assert_eq!(sentence.good(), format!("<p>{text}</p>\n"));
    let piped = attentive_reading(&arguments, b"<p>Ein Hund rennt.</p>");
    assert_eq!(piped.good(), format!("<p>{text}</p>"));
}

#[test]
fn bad_documents_are_named_with_line_and_remedy_and_leave_nothing() {
    let folder = Folder::new();
    let output = folder.path("out");
    for (name, bytes, expected) in [
        (
            "a.json",
            &b"{\n\"a\": \n"[..],
            &["a.json", "line 3", "repair"][..],
        ),
        (
            "a.po",
            b"msgid \"a\nmsgstr \"\"\n",
            &["a.po", "line 1", "msgfmt"],
        ),
        ("a.docx", b"PK\x03\x04", &["a.docx", "damaged", "copy"]),
        ("a.srt", b"Hallo\xff", &["a.srt", "line 1", "iconv"]),
        (
            "a.xlf",
            b"<xliff version='1.2'>\n<a>",
            &["a.xlf", "line 2", "save"],
        ),
        ("a.yaml", b"a: b\n  c: d\n", &["a.yaml", "line 2", "repair"]),
    ] {
        let input = folder.path(name);
        fs::write(&input, bytes).unwrap();
        let ran = attentive(&["translate", "--model", "de-en", "-i", &input, "-o", &output]);
        assert_eq!(ran.code, 1, "{ran:?}");
        for part in expected {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        assert!(fs::metadata(&output).is_err(), "{name} left something");
    }
    let lines = attentive(&[
        "translate",
        "--model",
        "de-en",
        "--format",
        "json",
        "--scores",
        "\"x\"",
    ]);
    assert_eq!(lines.code, 2, "{lines:?}");
    let unknown = attentive(&["translate", "--format", "pdf", "x"]);
    assert!(unknown.stderr.contains("docx"), "{unknown:?}");
}
