//! Faults that are planted in a real corpus are found, and nothing is found in the corpus as it is.
//!
//! The data is not part of this repository: ATTENTIVE_DATA names the folder that has `multi30k`. Without it the test says
//! that it was skipped.

use std::fs;
use std::path::{Path, PathBuf};

use attentive_text::lines::read_lines;
use attentive_text::quality::findings::{Finding, Severity, findings};
use attentive_text::quality::inspect::{Options, TestSet, inspect};

/// The sides of a corpus as raw lines.
#[derive(Clone)]
struct Sides {
    src: Vec<Vec<u8>>,
    tgt: Vec<Vec<u8>>,
}

impl Sides {
    fn text(
        &mut self,
        side: fn(&mut Self) -> &mut Vec<Vec<u8>>,
        line: usize,
        change: impl Fn(&str) -> String,
    ) {
        let line = &mut side(self)[line];
        *line = change(std::str::from_utf8(line).expect("text")).into_bytes();
    }

    /// Every n-th line, this many of them.
    fn places(&self, many: usize) -> Vec<usize> {
        (0..many)
            .map(|i| 100 + i * (self.src.len() - 200) / many)
            .collect()
    }
}

fn src(sides: &mut Sides) -> &mut Vec<Vec<u8>> {
    &mut sides.src
}

fn tgt(sides: &mut Sides) -> &mut Vec<Vec<u8>> {
    &mut sides.tgt
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let lines = read_lines(path).expect("the corpus is there");
    lines.into_iter().map(String::into_bytes).collect()
}

fn multi30k() -> Option<PathBuf> {
    let folder = std::env::var_os("ATTENTIVE_DATA").map(|data| Path::new(&data).join("multi30k"));
    if folder.is_none() {
        eprintln!("SKIPPED: set ATTENTIVE_DATA to the data folder to plant faults in Multi30k");
    }
    folder
}

/// What is found in a corpus, apart from hints.
fn serious(folder: &Path, sides: &Sides, test_sets: &[TestSet]) -> Vec<Finding> {
    let file = |name: &str, lines: &[Vec<u8>]| {
        let path = folder.join(name);
        fs::write(&path, [lines.join(&b'\n'), b"\n".to_vec()].concat()).expect("writable");
        vec![path]
    };
    let (src, tgt) = (file("train.de", &sides.src), file("train.en", &sides.tgt));
    let options = Options {
        test_sets: test_sets.to_vec(),
        ..Options::default()
    };
    let inspection = inspect(&src, &tgt, &options, &mut |_| {}).expect("readable");
    let found = findings(&inspection);
    found
        .into_iter()
        .filter(|finding| finding.severity != Severity::Hint)
        .collect()
}

type Plant = fn(&mut Sides, &Sides);

/// What is planted, by which name it is found, and how bad it is. The second argument is the validation set.
const FAULTS: [(&str, Severity, Plant); 16] = [
    ("encoding", Severity::Error, |sides, _| {
        // One line in Latin-1.
        sides.src[20_000] = b"Ein M\xe4dchen f\xe4hrt Fahrrad.".to_vec();
    }),
    ("mojibake", Severity::Warning, |sides, _| {
        for line in sides.places(60) {
            let misread = |text: &str| text.bytes().map(char::from).collect();
            sides.text(src, line, |text| misread(&format!("{text} Schöne Grüße.")));
        }
    }),
    ("controls", Severity::Warning, |sides, _| {
        for line in sides.places(30) {
            sides.text(tgt, line, |text| text.replacen(' ', " \u{200b}", 1));
        }
    }),
    ("line-counts", Severity::Error, |sides, _| {
        sides.tgt.remove(12_345);
    }),
    ("empty", Severity::Warning, |sides, _| {
        for line in sides.places(60) {
            sides.text(tgt, line, |_| " ".to_owned());
        }
    }),
    ("duplicates", Severity::Warning, |sides, _| {
        for line in sides.places(300) {
            sides.src[line] = sides.src[line + 1].clone();
            sides.tgt[line] = sides.tgt[line + 1].clone();
        }
    }),
    ("equal", Severity::Warning, |sides, _| {
        for line in sides.places(200) {
            sides.tgt[line] = sides.src[line].clone();
        }
    }),
    ("ratio", Severity::Warning, |sides, _| {
        for line in sides.places(200) {
            let next = sides.tgt[line + 1..line + 8].join(&b' ');
            sides.tgt[line].extend_from_slice(&[b" ".to_vec(), next].concat());
        }
    }),
    ("language", Severity::Warning, |sides, _| {
        for line in sides.places(200) {
            sides.text(tgt, line, |_| {
                "Un homme se promène avec son chien dans la forêt.".to_owned()
            });
            sides.text(tgt, line, |text| format!("{text} Il est {line}."));
        }
    }),
    ("swapped", Severity::Warning, |sides, _| {
        for line in sides.places(100) {
            let (src, tgt) = (sides.src[line].clone(), sides.tgt[line].clone());
            (sides.src[line], sides.tgt[line]) = (tgt, src);
        }
    }),
    ("misaligned", Severity::Error, |sides, _| {
        // A line is missing, and thirty lines later there is one too much.
        let line = sides.tgt.remove(7000);
        sides.tgt.insert(7030, line);
    }),
    ("held-out", Severity::Error, |sides, val| {
        for (index, line) in sides.places(100).into_iter().enumerate() {
            sides.src[line] = val.src[index * 7].clone();
            sides.tgt[line] = val.tgt[index * 7].clone();
        }
    }),
    ("markup", Severity::Warning, |sides, _| {
        for line in sides.places(80) {
            sides.text(src, line, |text| format!("<b>{text}</b>"));
            sides.text(tgt, line, |text| format!("<b>{text}</b>"));
        }
    }),
    ("placeholders", Severity::Warning, |sides, _| {
        for line in sides.places(80) {
            sides.text(src, line, |text| format!("{text} {{name}}"));
        }
    }),
    ("numbers", Severity::Warning, |sides, _| {
        for line in sides.places(800) {
            sides.text(src, line, |text| format!("{text} {}", line + 1000));
        }
    }),
    ("nfc", Severity::Warning, |sides, _| {
        for line in sides.places(100) {
            sides.text(src, line, |text| format!("{} scho\u{308}n", text));
        }
    }),
];

#[test]
fn planted_faults_are_found_in_multi30k_and_nothing_in_the_clean_copy() {
    let Some(folder) = multi30k() else { return };
    let sides = |name: &str| Sides {
        src: read(&folder.join(format!("{name}.de.gz"))),
        tgt: read(&folder.join(format!("{name}.en.gz"))),
    };
    let (clean, val) = (sides("train"), sides("val"));
    let test_set = |name: &str| {
        let lines = |side: &str| {
            read_lines(&folder.join(format!("{name}.{side}.gz"))).expect("the corpus is there")
        };
        TestSet {
            name: name.to_owned(),
            src: lines("de"),
            tgt: lines("en"),
        }
    };
    let test_sets = ["val", "test_2016_flickr"].map(test_set);
    let scratch = tempfile::tempdir().expect("a folder");
    assert_eq!(serious(scratch.path(), &clean, &test_sets), []);
    for (name, severity, plant) in FAULTS {
        let mut sides = clean.clone();
        plant(&mut sides, &val);
        let found = serious(scratch.path(), &sides, &test_sets);
        let own = found.iter().find(|finding| finding.name == name);
        let own = own.unwrap_or_else(|| panic!("{name} is not found: {found:#?}"));
        assert_eq!(own.severity, severity, "{own:#?}");
        // A missing line shifts all that follow.
        let follows = |other: &Finding| name == "line-counts" && other.name == "misaligned";
        let others: Vec<&Finding> = found
            .iter()
            .filter(|other| other.name != name && !follows(other))
            .collect();
        assert!(others.is_empty(), "{name}: also {others:#?}");
        if name == "line-counts" {
            assert!(own.advice.contains("from about line 1234"), "{own:?}");
        }
    }
}
