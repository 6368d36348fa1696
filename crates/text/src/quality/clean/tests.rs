//! What each filter does to a small corpus.

use std::path::PathBuf;

use super::*;

const GOOD: [(&str, &str); 4] = [
    (
        "Ein Mann geht mit seinem Hund durch den Wald.",
        "A man is walking his dog through the woods.",
    ),
    (
        "Zwei Kinder spielen am Strand mit einem Ball.",
        "Two children are playing with a ball on the beach.",
    ),
    (
        "Eine Frau liest in der Bahn ein altes Buch.",
        "A woman is reading an old book on the train.",
    ),
    (
        "Drei junge Leute sitzen auf einer Bank im Park.",
        "Three young people are sitting on a bench in the park.",
    ),
];

struct Corpus {
    _folder: tempfile::TempDir,
    src: Vec<PathBuf>,
    tgt: Vec<PathBuf>,
}

fn corpus(pairs: &[(&[u8], &[u8])]) -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    let (src, tgt) = (folder.path().join("a.de"), folder.path().join("a.en"));
    let (mut src_bytes, mut tgt_bytes) = (Vec::new(), Vec::new());
    for (src, tgt) in pairs {
        src_bytes.extend_from_slice(&[src, &b"\n"[..]].concat());
        tgt_bytes.extend_from_slice(&[tgt, &b"\n"[..]].concat());
    }
    std::fs::write(&src, src_bytes).unwrap();
    std::fs::write(&tgt, tgt_bytes).unwrap();
    Corpus {
        _folder: folder,
        src: vec![src],
        tgt: vec![tgt],
    }
}

/// The corpus of good pairs with one more in its middle.
fn with(src: impl AsRef<[u8]>, tgt: impl AsRef<[u8]>) -> Corpus {
    let good = GOOD.map(|(src, tgt)| (src.as_bytes(), tgt.as_bytes()));
    let mut pairs = good.to_vec();
    pairs.insert(2, (src.as_ref(), tgt.as_ref()));
    corpus(&pairs)
}

fn run(
    corpus: &Corpus,
    filters: &[Check],
) -> Result<(Counts, String, String, Vec<Rejected>), TextError> {
    let mut held_out = HeldOut::default();
    held_out.add("A sentence of the test set");
    let options = Options {
        filters: filters.iter().copied().collect(),
        held_out,
        ..Options::default()
    };
    let (mut src, mut tgt, mut rejected) = (String::new(), String::new(), Vec::new());
    let counts = clean(&corpus.src, &corpus.tgt, options, &mut |_| {}, |cleaned| {
        src.push_str(&cleaned.src);
        tgt.push_str(&cleaned.tgt);
        rejected.extend(cleaned.rejected.iter().cloned());
        Ok::<_, TextError>(())
    })?;
    Ok((counts, src, tgt, rejected))
}

fn usual() -> Vec<Check> {
    Check::ALL
        .into_iter()
        .filter(|check| check.is_usual())
        .collect()
}

#[test]
fn each_filter_rejects_its_kind_and_nothing_else() {
    let long = "Wort und noch ein ".repeat(100);
    let bad: [(Check, &[u8], &[u8]); 11] = [
        (
            Check::Encoding,
            b"Ein M\xe4nnchen steht da.",
            b"A little man.",
        ),
        (
            Check::Controls,
            "Ein verlorenes \u{fffd} Zeichen".as_bytes(),
            b"A lost character",
        ),
        (Check::Empty, b" ", b"A man."),
        (Check::TooLong, long.as_bytes(), long.as_bytes()),
        (
            Check::Ratio,
            b"Ein Mann in einem blauen Hemd steht auf einer hohen Leiter und putzt das Fenster.",
            b"A man.",
        ),
        (
            Check::Equal,
            b"A man is walking his dog.",
            b"A man is walking his dog.",
        ),
        (Check::Swapped, GOOD[0].1.as_bytes(), GOOD[0].0.as_bytes()),
        (
            Check::Language,
            GOOD[0].0.as_bytes(),
            "Un homme se promène avec son chien dans la forêt.".as_bytes(),
        ),
        (Check::Placeholders, b"Klicke auf {name}.", b"Click here."),
        (Check::HeldOut, b"Ein Satz", b"a sentence of the test set!"),
        (
            Check::Duplicates,
            GOOD[1].0.as_bytes(),
            GOOD[1].1.as_bytes(),
        ),
    ];
    for (check, src, tgt) in bad {
        let (counts, src, _, rejected) = run(&with(src, tgt), &usual()).unwrap();
        assert_eq!(counts.rejected, BTreeMap::from([(check, 1)]), "{check}");
        assert_eq!((counts.read, counts.kept), (5, 4), "{check}");
        assert_eq!((rejected[0].line, rejected[0].filter), (3, check));
        let kept: Vec<&str> = src.lines().collect();
        assert_eq!(kept, GOOD.map(|(src, _)| src), "{check}: order");
    }
    for (check, src, tgt) in [
        (Check::Markup, "<b>Ein</b> Mann", "A man"),
        (Check::Numbers, "im Jahr 1999", "in the year 1989"),
        (
            Check::NearDuplicates,
            "zwei kinder spielen am strand mit einem Ball",
            GOOD[1].1,
        ),
    ] {
        let pairs = with(src, tgt);
        assert_eq!(
            run(&pairs, &usual()).unwrap().0.kept,
            5,
            "{check} is not usual"
        );
        let counts = run(&pairs, &[check]).unwrap().0;
        assert_eq!(counts.rejected, BTreeMap::from([(check, 1)]), "{check}");
    }
}

#[test]
fn what_can_be_repaired_is_kept() {
    for (check, broken, repaired) in [
        (Check::Mojibake, "Ein schÃ¶ner Tag", "Ein schöner Tag"),
        (
            Check::Controls,
            "Ein schöner\u{7} Tag\u{200b}",
            "Ein schöner Tag",
        ),
        (Check::Nfc, "Ein scho\u{308}ner Tag", "Ein schöner Tag"),
    ] {
        let (counts, src, _, _) = run(&with(broken, "A nice day"), &usual()).unwrap();
        assert_eq!(counts.repaired, BTreeMap::from([(check, 1)]));
        assert_eq!(counts.kept, 5);
        assert_eq!(src.lines().nth(2), Some(repaired));
    }
}

#[test]
fn without_filters_the_files_come_back_and_damage_is_an_error() {
    let (counts, src, tgt, rejected) = run(&with("", "x\u{7}"), &[]).unwrap();
    assert_eq!((counts.kept, rejected.len()), (5, 0));
    assert_eq!(
        (src.lines().nth(2), tgt.lines().nth(2)),
        (Some(""), Some("x\u{7}"))
    );
    let error = run(&with("x", b"na\xefve"), &[]).unwrap_err();
    assert!(
        matches!(
            error,
            TextError::NotUtf8 {
                line: 3,
                column: 3,
                ..
            }
        ),
        "{error}"
    );
    let error = run(&with("x\0", "y"), &[]).unwrap_err();
    assert!(
        matches!(error, TextError::Binary { line: 3, .. }),
        "{error}"
    );
}

#[test]
fn a_shifted_stretch_goes_with_the_lines_around_it() {
    let line = |number: usize, word: char| {
        format!(
            "{word}{} {word}{} {word}{}",
            number % 41,
            number % 37,
            number % 29
        )
    };
    let src: Vec<String> = (0..4000).map(|number| line(number * 7, 'q')).collect();
    let mut tgt: Vec<String> = (0..4000).map(|number| line(number * 7, 'z')).collect();
    tgt[2000..2100].rotate_left(1);
    let pairs: Vec<(&[u8], &[u8])> = src
        .iter()
        .zip(&tgt)
        .map(|(src, tgt)| (src.as_bytes(), tgt.as_bytes()))
        .collect();
    let (counts, kept, _, _) = run(&corpus(&pairs), &[Check::Misaligned]).unwrap();
    let lost = counts.rejected[&Check::Misaligned];
    assert!((100..130).contains(&lost), "{counts:?}");
    let kept: std::collections::HashSet<&str> = kept.lines().collect();
    assert!(
        src[2000..2100]
            .iter()
            .all(|line| !kept.contains(line.as_str()))
    );
}

#[test]
fn files_of_different_lengths_are_refused() {
    let pairs = with("x", "y");
    std::fs::write(&pairs.tgt[0], "only one line\n").unwrap();
    let error = run(&pairs, &usual()).unwrap_err();
    assert!(
        matches!(
            error,
            TextError::LineCounts {
                src_lines: 5,
                tgt_lines: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn random_bytes_are_rejected_and_never_a_panic() {
    let mut state = 7u64;
    let mut bytes = |length: usize| -> Vec<u8> {
        let mut byte = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length)
            .map(|_| byte())
            .filter(|byte| *byte != b'\n')
            .collect()
    };
    let lines: Vec<(Vec<u8>, Vec<u8>)> =
        (0..2000).map(|i| (bytes(i % 50), bytes(i % 70))).collect();
    let pairs: Vec<(&[u8], &[u8])> = lines.iter().map(|(src, tgt)| (&**src, &**tgt)).collect();
    let (counts, src, tgt, _) = run(&corpus(&pairs), &Check::ALL).unwrap();
    assert_eq!(counts.read, 2000);
    assert_eq!(src.lines().count(), tgt.lines().count());
}
