//! The program without a model: those that are part of it, and the text as people type it.
//!
//! Nothing here depends on how well a model translates, only on what is done around it.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use program::{Folder, Ran, attentive, attentive_reading, command};

const GERMAN: &str = "Wo ist der Bahnhof und wann fährt der nächste Zug?";
const ENGLISH: &str = "Where is the station and when does the next train leave?";

fn translate(arguments: &[&str]) -> Ran {
    attentive(&[&["translate"], arguments].concat())
}

/// What the model of this name makes of a line.
fn by(model: &str, line: &str) -> String {
    translate(&["--model", model, line]).good()
}

fn lines(output: &str) -> Vec<&str> {
    output.lines().collect()
}

#[test]
fn without_a_model_the_language_of_the_text_decides() {
    for (text, model, other) in [(GERMAN, "de-en", "en-de"), (ENGLISH, "en-de", "de-en")] {
        let ran = translate(&["--scores", text]);
        assert_eq!(ran.stderr, "", "a pipe is told nothing");
        let with = |model| translate(&["--scores", "--model", model, text]).good();
        assert_ne!(with(model), with(other), "two models should not agree");
        assert_eq!(ran.good(), with(model));
    }
    // All arguments together: a name alone says nothing.
    let together = translate(&["Berlin", GERMAN]).good();
    assert_eq!(lines(&together)[0], by("de-en", "Berlin").trim_end());
}

#[test]
fn either_language_is_enough_and_the_user_is_right() {
    for (arguments, model) in [
        (&["--from", "de"][..], "de-en"),
        (&["--to", "english"], "de-en"),
        (&["--from", "English"], "en-de"),
        (&["--to", "de"], "en-de"),
        (&["--from", "german", "--to", "en"], "de-en"),
    ] {
        for text in [GERMAN, ENGLISH] {
            let found = translate(&[arguments, &["--scores", text]].concat()).good();
            let expected = translate(&["--model", model, "--scores", text]).good();
            assert_eq!(found, expected, "{arguments:?}");
        }
    }
}

#[test]
fn a_pair_that_is_not_there_is_answered_with_those_that_are() {
    let pairs = ["de-en", "en-de"];
    translate(&["--from", "fr", GERMAN]).bad(2, &[&["fr"], &pairs[..]].concat());
    translate(&["--from", "de", "--to", "de", GERMAN]).bad(2, &pairs);
    translate(&["--model", "de-fr", GERMAN]).bad(1, &[&["de-fr"], &pairs[..]].concat());
    translate(&["--model", "de-en", "--from", "de", GERMAN]).bad(2, &["--model", "--from"]);
}

#[test]
fn a_text_in_another_language_is_warned_about() {
    let ran = translate(&["Où est la gare, s'il vous plaît ? Je cherche le train de Paris."]);
    assert!(ran.stderr.contains("warning: "), "{ran:?}");
    assert!(ran.stderr.contains("--from"), "{ran:?}");
    assert_eq!(ran.good().lines().count(), 1);
}

#[test]
fn every_sentence_of_a_line_is_translated_for_itself() {
    let (first, second) = ("Ein Hund rennt durch das Gras.", "Wo ist der Ball?");
    let (one, two) = (by("de-en", first), by("de-en", second));
    let found = translate(&["--from", "de", &format!("{first}   {second}")]).good();
    assert_eq!(found, format!("{}   {two}", one.trim_end()));

    let whole = ["--from", "de", "--whole-lines"];
    let line = format!("{first} {second}");
    let alone = translate(&[&whole[..], &["--json", &line]].concat()).good();
    let typed = translate(&["--from", "de", "--json", &line]).good();
    let score = |json: &str| serde_json::from_str::<Value>(json).expect("JSON")["score"].as_f64();
    assert_ne!(
        score(&alone),
        score(&typed),
        "a line that is one sentence is another one"
    );
    translate(&[&whole[..], &["--sentences", &line]].concat()).bad(2, &["--sentences"]);
}

#[test]
fn addresses_and_emoji_come_through_unchanged() {
    let kept = [
        "https://example.org/Weg?a=B&c=1",
        "Max.Muster@example.org",
        "😀",
        "👩‍👩‍👧",
    ];
    let line = format!(
        "Siehe {} oder schreib {} und freu dich {} {}!",
        kept[0], kept[1], kept[2], kept[3]
    );
    let found = translate(&[&line]).good();
    for item in kept {
        assert_eq!(found.matches(item).count(), 1, "{item} in {found}");
    }
    let copied = translate(&["😀", "https://example.org", "42", "3,5 - 1"]);
    assert_eq!(copied.stderr, "");
    assert_eq!(copied.good(), "😀\nhttps://example.org\n42\n3,5 - 1\n");
}

#[test]
fn capitals_in_are_capitals_out() {
    let small = by("de-en", "Ein hund rennt durch das gras.");
    let found = by("de-en", "EIN HUND RENNT DURCH DAS GRAS.");
    assert_eq!(found, small.to_uppercase());
    assert_ne!(found, small, "the small letters should be some");
}

#[test]
fn one_word_and_nothing_at_all_are_fine() {
    assert_eq!(translate(&["Hund"]).good().lines().count(), 1);
    assert_eq!(translate(&[""]).good(), "\n");
    assert_eq!(translate(&["", GERMAN, "  "]).good().lines().count(), 3);
    let nothing = attentive_reading(&["translate"], b"");
    assert_eq!(
        (&*nothing.stdout, &*nothing.stderr, nothing.code),
        ("", "", 0)
    );
    assert_eq!(attentive_reading(&["translate"], b"\n\n").good(), "\n\n");
}

#[test]
fn a_pipe_gives_one_line_for_each_and_decides_by_its_beginning() {
    let mut input = String::from("OK\n\n");
    input.extend((0..3000).map(|i| format!("Das ist der Satz Nummer {i}. Er ist kurz.\n")));
    let arguments = ["translate", "--beam", "1", "--max-length", "5"];
    let ran = attentive_reading(&arguments, input.as_bytes());
    assert!(!ran.stderr.contains("--from"), "{}", ran.stderr);
    let found = ran.good();
    assert_eq!(found.lines().count(), 3002);
    assert_eq!(lines(&found)[1], "");

    let bad = attentive_reading(&["translate", "--beam", "1"], b"Der Hund ist da.\n\xff\n");
    bad.bad(1, &["line 2", "UTF-8"]);
    assert_eq!(
        bad.stdout.lines().count(),
        1,
        "lines before it are answered"
    );
}

/// Whoever waits for each answer gets it, and the first line with words in it decides.
#[test]
fn a_pipe_that_waits_is_answered_line_by_line() {
    let mut child = command(&["translate", "--unbuffered", "--beam", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut answers = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ask = |line: &str| {
        writeln!(stdin, "{line}").expect("it reads");
        answers.next().expect("it answers").expect("text")
    };
    assert_eq!(ask(""), "");
    assert_eq!(ask("  "), "");
    let greedy = |line| translate(&["--model", "en-de", "--beam", "1", line]).good();
    assert_eq!(ask(ENGLISH), greedy(ENGLISH).trim_end());
    assert_eq!(ask(GERMAN), greedy(GERMAN).trim_end(), "decided once");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn files_go_in_and_out() {
    let folder = Folder::new();
    let input = folder.file("brief.txt", format!("{GERMAN}\n\n{GERMAN} {GERMAN}\n"));
    let output = folder.path("letter.txt");
    translate(&["-i", &input, "-o", &output]).good();
    let written = fs::read_to_string(output).expect("written");
    let one = by("de-en", GERMAN);
    let one = one.trim_end();
    assert_eq!(written, format!("{one}\n\n{one} {one}\n"));
}

#[test]
fn json_alternatives_and_alignments_are_of_the_whole_line() {
    let line = "Ein Hund rennt. Siehe https://example.org an! 42.";
    let json = translate(&[
        "--from",
        "de",
        "--json",
        "--alignments",
        "--alternatives",
        "3",
        line,
    ]);
    let json: Value = serde_json::from_str(&json.good()).expect("one object");
    assert_eq!(json["source"], line);
    let text = json["text"].as_str().expect("a text");
    assert!(
        text.contains("https://example.org") && text.ends_with(" 42."),
        "{text}"
    );
    assert!(json["score"].as_f64().expect("a number") < 0.0);
    assert_eq!(json["alternatives"].as_array().expect("a list").len(), 2);
    let words = |text: &str| text.split_whitespace().count() as u64;
    let links = json["alignment"].as_array().expect("a list");
    for link in links {
        assert!(link[0].as_u64().expect("a number") < words(line), "{json}");
        assert!(link[1].as_u64().expect("a number") < words(text), "{json}");
    }
    // What is copied comes from itself.
    let last = [words(line) - 1, words(text) - 1].map(Value::from);
    assert_eq!(links.last(), Some(&Value::from(last.to_vec())), "{json}");
}

#[test]
fn a_directory_is_translated_whole_unless_sentences_are_asked_for() {
    let folder = Folder::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/de-en");
    let line = "Ein Hund rennt. Wo ist der Ball? 😀";
    let with = |arguments: &[&str]| translate(&[arguments, &["--json", line]].concat()).good();
    let same = |found: String, expected: String| {
        let value = |json: &str| serde_json::from_str::<Value>(json).expect("JSON");
        assert_eq!(value(&found), value(&expected));
    };
    same(
        with(&["-m", model]),
        with(&["-m", "de-en", "--whole-lines"]),
    );
    same(with(&["-m", model, "--sentences"]), with(&["-m", "de-en"]));

    // A directory of that name comes first.
    fs::create_dir(folder.path("de-en")).expect("new");
    let mut here = command(&["translate", "-m", "de-en", line]);
    let output = here.current_dir(folder.path("")).output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("de-en is not a model directory"),
        "{message}"
    );
}

#[test]
fn info_lists_the_models_and_shows_their_cards() {
    let list = attentive(&["info"]).good();
    for part in [
        "de-en",
        "German to English",
        "en-de",
        "English to German",
        " MB",
    ] {
        assert!(list.contains(part), "{part} is not in {list}");
    }
    let json: Value = serde_json::from_str(&attentive(&["info", "--json"]).good()).expect("JSON");
    assert_eq!(json[1]["name"], "en-de");
    assert!(json[0]["bytes"].as_u64() > Some(1_000_000), "{json}");

    let card = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../models/de-en/README.md"
    ));
    let card = card.expect("the card");
    let one = attentive(&["info", "de-en"]).good();
    assert!(
        one.contains("the built-in model de-en") && one.contains(card.trim()),
        "{one}"
    );
    let json: Value =
        serde_json::from_str(&attentive(&["info", "de-en", "--json"]).good()).expect("JSON");
    assert_eq!(json["card"], card);
}

#[test]
fn evaluate_knows_built_in_models() {
    let folder = Folder::new();
    let (src, tgt) = (
        folder.file("s", "Ein Hund rennt.\n"),
        folder.file("t", "A dog runs.\n"),
    );
    let arguments = ["evaluate", "-m", "de-en", "--src", &src, "--ref", &tgt];
    let text = attentive(&arguments).good();
    assert!(text.contains("BLEU") && !text.contains("loss"), "{text}");
    let json = attentive(&[&arguments[..], &["--json", "--whole-lines"]].concat()).good();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        json["loss"].is_null() && json["bleu"]["score"].is_number(),
        "{json}"
    );
}

#[test]
fn attention_picks_the_model_like_translate_and_shows_its_translation() {
    let json = |arguments: &[&str]| -> Value {
        let json = attentive(&[&["attention", "--format", "json"], arguments].concat());
        assert_eq!(json.stderr, "", "a pipe is told nothing");
        serde_json::from_str(&json.good()).expect("JSON")
    };
    for (arguments, model) in [
        (&[GERMAN][..], "de-en"),
        (&[ENGLISH], "en-de"),
        (&[ENGLISH, "--from", "de"], "de-en"),
        (&[ENGLISH, "--model", "de-en"], "de-en"),
    ] {
        let found = json(arguments);
        assert_eq!(found["model"], model, "{arguments:?}");
        let whole = ["-m", model, "--whole-lines", arguments[0]];
        let text = found["written"]["text"].as_str().expect("a text");
        assert_eq!(text, translate(&whole).good().trim_end());
        let count = |side: &str| found[side]["tokens"].as_array().expect("a list").len();
        let sizes = [
            ("encoder", count("source"), count("source")),
            ("decoder", count("read"), count("read")),
            ("cross", count("written"), count("source")),
        ];
        for (attention, (kind, rows, columns)) in found["attention"]
            .as_array()
            .expect("a list")
            .iter()
            .zip(sizes)
        {
            assert_eq!(attention["kind"], kind);
            for layer in attention["layers"].as_array().expect("a list") {
                let weights = &layer["maps"][0]["weights"];
                assert_eq!(weights.as_array().map(Vec::len), Some(rows), "{kind}");
                for row in weights.as_array().expect("rows") {
                    let row = row.as_array().expect("a row").iter();
                    assert_eq!(row.len(), columns, "{kind}");
                    let sum: f64 = row.map(|weight| weight.as_f64().expect("a number")).sum();
                    assert!((sum - 1.0).abs() < 1e-4, "{kind}: {sum}");
                }
            }
        }
    }
    // An int8 directory works as well, and with words for the terminal.
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/de-en");
    let words = attentive(&["attention", "-m", directory, GERMAN, "--words"]).good();
    assert!(words.contains("Cross-attention"), "{words}");
}

#[test]
fn attention_says_when_several_sentences_are_shown_as_one() {
    let two = attentive(&["attention", "Ein Hund rennt. Wo ist der Ball?"]);
    assert!(two.stderr.contains("2 sentences"), "{two:?}");
    two.good();
    let directory = ["--model", "de-en", "--from", "de"];
    attentive(&[&["attention", GERMAN], &directory[..]].concat()).bad(2, &["--model", "--from"]);
    for empty in ["", "   "] {
        attentive(&["attention", empty]).bad(1, &["the sentence is empty"]);
    }
    let long = "Hund ".repeat(300);
    attentive(&["attention", &long]).bad(1, &["tokens", "at most 255"]);
}

#[test]
fn errors_name_the_built_in_model() {
    translate(&["--compute", "f32", GERMAN]).bad(1, &["the built-in model de-en", "int8"]);
}
