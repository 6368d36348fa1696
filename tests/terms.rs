//! Glossaries, long sentences and wrapped paragraphs, with the real program and its own models.

mod program;

use program::{Folder, Ran, attentive, attentive_reading};

fn translate(arguments: &[&str]) -> Ran {
    attentive(&[&["translate", "--model", "de-en"], arguments].concat())
}

#[test]
fn a_glossary_decides_how_terms_are_translated_and_nothing_else() {
    let folder = Folder::new();
    let terms = folder.file(
        "terms.tsv",
        "# mine\nHund\thound\nBahnhof\ttrain depot | main depot\n",
    );
    let lines = ["Der Hund schläft am Bahnhof.", "Die Katze schläft."];
    let with = |more: &[&str]| {
        let arguments = [&["--glossary", &terms], more, &lines[..]].concat();
        translate(&arguments).good()
    };
    let plain = translate(&lines).good();
    for beam in [&["--beam", "1"][..], &["--beam", "4"]] {
        let found = with(beam);
        let first = found.lines().next().expect("two lines");
        assert!(
            first.contains("hound") && first.contains("depot"),
            "{first}"
        );
    }
    let [found, plain] = [with(&[]), plain];
    assert_eq!(found.lines().nth(1), plain.lines().nth(1));
    assert!(!plain.contains("hound"));
}

#[test]
fn a_glossary_that_cannot_be_read_is_named_with_its_line() {
    let folder = Folder::new();
    let wrong = folder.file("wrong.tsv", "Hund\tdog\nKatze cat\n");
    translate(&["--glossary", &wrong, "Hallo"]).bad(1, &["wrong.tsv", "line 2", "a tab"]);
    translate(&["--glossary", "/nowhere", "Hallo"]).bad(1, &["cannot open"]);
    let empty = folder.file("empty.tsv", "Hund\t\n\tcat\n");
    let ran = translate(&["--glossary", &empty, "Der Hund."]);
    assert!(
        ran.stderr.contains("line 1: the target term is empty"),
        "{ran:?}"
    );
    assert_eq!(ran.good(), translate(&["Der Hund."]).good());
}

/// That every clause is translated is tested with a model that copies; what this one makes of them is its own business.
#[test]
fn a_line_of_two_hundred_clauses_is_not_cut_off() {
    let clauses: Vec<String> = (100..300).map(|n| format!("Zimmer {n} ist frei")).collect();
    let line = clauses.join(", ") + ".";
    let ran = translate(&["--beam", "1", "--json", "--max-source-length", "64", &line]);
    assert!(!ran.stderr.contains("cut off"), "{ran:?}");
    let found = ran.good();
    assert_eq!(found.lines().count(), 1);
    assert!(found.contains("\"truncated\":null"), "{found}");
    let text = found.split("\"text\":\"").nth(1).expect("a text");
    let words = text.split('"').next().expect("its end").split(' ').count();
    assert!(words > 300, "{words} words of 800: {found}");
}

const LETTER: &str = "Wir haben gestern den ganzen Tag am See verbracht und\n\
    sind erst am späten Abend wieder nach Hause gekommen.\n\
    \n\
    Bis bald!\n";

#[test]
fn wrapped_paragraphs_of_a_document_are_joined_and_a_corpus_is_not() {
    let folder = Folder::new();
    let document = folder.file("letter.txt", LETTER);
    let corpus = folder.file("letter.de", LETTER);
    let joined = LETTER.replacen("und\n", "und ", 1);
    let sentence = translate(&[joined.lines().next().expect("a line")]).good();

    let found = translate(&["-i", &document]).good();
    let (paragraph, rest) = found.split_once("\n\n").expect("a blank line");
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(paragraph), words(&sentence));
    assert!(
        paragraph.lines().count() > 1 && paragraph.lines().all(|line| line.chars().count() <= 53),
        "{found}"
    );
    assert_eq!(rest.lines().count(), 1);
    assert_eq!(translate(&[LETTER.trim_end()]).good(), found);

    let by_line = translate(&["-i", &document, "--wrapped", "lines"]).good();
    assert_eq!(by_line.lines().count(), 4);
    assert_ne!(by_line, found);
    assert_eq!(translate(&["-i", &corpus]).good(), by_line);
    for whole in [
        ["-i", &document, "--whole-lines"],
        ["-i", &document, "--scores"],
    ] {
        assert_eq!(translate(&whole).good().lines().count(), 4);
    }
    let arguments = ["translate", "--model", "de-en"];
    assert_eq!(
        attentive_reading(&arguments, LETTER.as_bytes()).good(),
        by_line
    );
    let join = attentive_reading(
        &[&arguments[..], &["--wrapped", "join"]].concat(),
        LETTER.as_bytes(),
    );
    assert_eq!(join.good(), found);
    translate(&["--whole-lines", "--wrapped", "join", "x"]).bad(2, &["--wrapped join"]);
}
