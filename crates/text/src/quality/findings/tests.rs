//! Severities, and what is said about whole files.

use std::path::PathBuf;

use super::super::inspect::{Options, TestSet, inspect};
use super::*;

const NOUNS: [(&str, &str); 7] = [
    ("der Hund", "the dog"),
    ("die Katze", "the cat"),
    ("das Kind", "the child"),
    ("der Bäcker", "the baker"),
    ("die Lehrerin", "the teacher"),
    ("der alte Mann", "the old man"),
    ("das kleine Pferd", "the little horse"),
];
const VERBS: [(&str, &str); 6] = [
    ("schläft heute lange", "sleeps late today"),
    ("geht in den Park", "goes to the park"),
    ("sieht ein Flugzeug am Himmel", "sees a plane in the sky"),
    ("trinkt ein Glas Wasser", "drinks a glass of water"),
    ("kauft Brot und Milch", "buys bread and milk"),
    ("wartet auf den nächsten Zug", "waits for the next train"),
];
const ENDS: [(&str, &str); 5] = [
    ("weil es regnet", "because it rains"),
    ("wenn die Sonne scheint", "when the sun shines"),
    ("und freut sich sehr", "and is very happy"),
    ("bevor der Abend kommt", "before the evening comes"),
    ("ohne etwas zu sagen", "without saying anything"),
];

/// 210 different sentences.
fn corpus() -> (Vec<String>, Vec<String>) {
    let mut sides = (Vec::new(), Vec::new());
    for number in 0..NOUNS.len() * VERBS.len() * ENDS.len() {
        let (noun, verb, end) = (NOUNS[number % 7], VERBS[number % 6], ENDS[number % 5]);
        sides.0.push(format!("{} {}, {}.", noun.0, verb.0, end.0));
        sides.1.push(format!("{} {} {}.", noun.1, verb.1, end.1));
    }
    sides
}

fn look(src: &[String], tgt: &[String], names: [&str; 2], sets: Vec<TestSet>) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, lines: &[String]| -> Vec<PathBuf> {
        let path = folder.path().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        vec![path]
    };
    let options = Options {
        test_sets: sets,
        ..Options::default()
    };
    let (src, tgt) = (file(names[0], src), file(names[1], tgt));
    findings(&inspect(&src, &tgt, &options, &mut |_| {}).unwrap())
}

fn names(findings: &[Finding], severity: Severity) -> Vec<&'static str> {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .map(|finding| finding.name)
        .collect()
}

#[test]
fn a_clean_corpus_has_no_findings() {
    let (src, tgt) = corpus();
    assert_eq!(look(&src, &tgt, ["a.de", "a.en"], Vec::new()), []);
}

#[test]
fn few_are_a_hint_more_a_warning_and_many_an_error() {
    let (src, tgt) = corpus();
    for (count, severity) in [
        (1, Severity::Hint),
        (4, Severity::Warning),
        (30, Severity::Error),
    ] {
        let mut src = src.clone();
        for line in 0..count {
            src[line * 5] = tgt[line * 5].clone();
        }
        let found = look(&src, &tgt, ["a.de", "a.en"], Vec::new());
        assert_eq!(names(&found, severity), ["equal"], "{count}: {found:?}");
        assert_eq!((found[0].pairs, found[0].examples[0].line), (count, 1));
    }
}

#[test]
fn files_in_the_language_of_the_other_and_one_language_are_told() {
    let (src, tgt) = corpus();
    let found = look(&src, &tgt, ["a.en", "a.de"], Vec::new());
    assert_eq!(names(&found, Severity::Error), ["file-language"; 2]);
    let found = look(&src, &src, ["a", "b"], Vec::new());
    assert!(
        names(&found, Severity::Warning).contains(&"one-language"),
        "{found:?}"
    );
}

#[test]
fn lengths_that_differ_say_that_a_file_is_cut_off() {
    let (src, tgt) = corpus();
    let found = look(&src, &tgt[..200], ["a.de", "a.en"], Vec::new());
    assert_eq!(names(&found, Severity::Error), ["line-counts"]);
    assert!(
        found[0].title.contains("210") && found[0].title.contains("200"),
        "{found:?}"
    );
    assert!(found[0].advice.contains("cut off"), "{found:?}");
}

#[test]
fn test_sentences_in_the_corpus_are_an_error() {
    let (src, tgt) = corpus();
    let set = TestSet {
        name: "val".into(),
        src: src[10..30].to_vec(),
        tgt: tgt[10..30].to_vec(),
    };
    let other = TestSet {
        name: "test".into(),
        src: vec!["Etwas ganz anderes.".into()],
        tgt: Vec::new(),
    };
    let found = look(&src, &tgt, ["a.de", "a.en"], vec![set, other]);
    assert_eq!(names(&found, Severity::Error), ["held-out"]);
    assert_eq!(
        (found.len(), found[0].pairs, found[0].examples[0].line),
        (1, 20, 11)
    );
    assert!(filters(&found).has(Check::HeldOut));
}
