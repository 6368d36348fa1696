//! `attentive doctor` and `attentive data clean` with the real binary: faults that are planted in a real corpus are found,
//! nothing is found in the corpus as it is, and bad input is an error that helps.

mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use program::{Folder, attentive};

/// The sides of a corpus as raw lines.
#[derive(Clone)]
struct Sides {
    src: Vec<Vec<u8>>,
    tgt: Vec<Vec<u8>>,
}

impl Sides {
    fn text(&mut self, side: fn(&mut Self) -> &mut Vec<Vec<u8>>, line: usize, change: impl Fn(&str) -> String) {
        let line = &mut side(self)[line];
        *line = change(std::str::from_utf8(line).expect("text")).into_bytes();
    }

    /// Every n-th line, this many of them.
    fn places(&self, many: usize) -> Vec<usize> {
        (0..many).map(|i| 100 + i * (self.src.len() - 200) / many).collect()
    }
}

fn src(sides: &mut Sides) -> &mut Vec<Vec<u8>> {
    &mut sides.src
}

fn tgt(sides: &mut Sides) -> &mut Vec<Vec<u8>> {
    &mut sides.tgt
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let lines = attentive_text::lines::read_lines(path).expect("the corpus is there");
    lines.into_iter().map(String::into_bytes).collect()
}

fn multi30k() -> Option<PathBuf> {
    let folder = std::env::var_os("ATTENTIVE_DATA").map(|data| Path::new(&data).join("multi30k"));
    if folder.is_none() {
        eprintln!("SKIPPED: set ATTENTIVE_DATA to the data folder to plant faults in Multi30k");
    }
    folder
}

/// Runs doctor on a corpus; returns its exit code and its findings.
fn doctor(folder: &Folder, sides: &Sides, held_out: &[String]) -> (i32, Vec<Value>) {
    let joined = |lines: &[Vec<u8>]| [lines.join(&b'\n'), b"\n".to_vec()].concat();
    let (src, tgt) = (folder.file("train.de", joined(&sides.src)), folder.file("train.en", joined(&sides.tgt)));
    let mut arguments = vec!["doctor".to_owned(), "--json".into(), "--src".into(), src, "--tgt".into(), tgt];
    if !held_out.is_empty() {
        arguments.push("--held-out".into());
        arguments.extend(held_out.iter().cloned());
    }
    let ran = attentive(&arguments);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (ran.code, report["findings"].as_array().expect("a list").clone())
}

/// The names of what is at least a warning.
fn serious(findings: &[Value]) -> Vec<String> {
    let serious = findings.iter().filter(|finding| finding["severity"] != "hint");
    serious.map(|finding| finding["name"].as_str().expect("a name").to_owned()).collect()
}

type Plant = fn(&mut Sides, &Sides);

/// What is planted, by which name it is found, and the exit code. `val` is the validation set.
const FAULTS: [(&str, i32, Plant); 16] = [
    ("encoding", 1, |sides, _| {
        // One line in Latin-1.
        sides.src[20_000] = b"Ein M\xe4dchen f\xe4hrt Fahrrad.".to_vec();
    }),
    ("mojibake", 0, |sides, _| {
        for line in sides.places(60) {
            let misread = |text: &str| text.bytes().map(char::from).collect();
            sides.text(src, line, |text| misread(&format!("{text} Schöne Grüße.")));
        }
    }),
    ("controls", 0, |sides, _| {
        for line in sides.places(30) {
            sides.text(tgt, line, |text| text.replacen(' ', " \u{200b}", 1));
        }
    }),
    ("line-counts", 1, |sides, _| {
        sides.tgt.remove(12_345);
    }),
    ("empty", 0, |sides, _| {
        for line in sides.places(60) {
            sides.text(tgt, line, |_| " ".to_owned());
        }
    }),
    ("duplicates", 0, |sides, _| {
        for line in sides.places(300) {
            sides.src[line] = sides.src[line + 1].clone();
            sides.tgt[line] = sides.tgt[line + 1].clone();
        }
    }),
    ("equal", 0, |sides, _| {
        for line in sides.places(200) {
            sides.tgt[line] = sides.src[line].clone();
        }
    }),
    ("ratio", 0, |sides, _| {
        for line in sides.places(200) {
            let next = sides.tgt[line + 1..line + 8].join(&b' ');
            sides.tgt[line].extend_from_slice(&[b" ".to_vec(), next].concat());
        }
    }),
    ("language", 0, |sides, _| {
        for line in sides.places(200) {
            sides.text(tgt, line, |_| "Un homme se promène avec son chien dans la forêt.".to_owned());
            sides.text(tgt, line, |text| format!("{text} Il est {line}."));
        }
    }),
    ("swapped", 0, |sides, _| {
        for line in sides.places(100) {
            let (src, tgt) = (sides.src[line].clone(), sides.tgt[line].clone());
            (sides.src[line], sides.tgt[line]) = (tgt, src);
        }
    }),
    ("misaligned", 1, |sides, _| {
        // A line is missing, and thirty lines later there is one too much.
        let line = sides.tgt.remove(7000);
        sides.tgt.insert(7030, line);
    }),
    ("held-out", 1, |sides, val| {
        for (index, line) in sides.places(100).into_iter().enumerate() {
            sides.src[line] = val.src[index * 7].clone();
            sides.tgt[line] = val.tgt[index * 7].clone();
        }
    }),
    ("markup", 0, |sides, _| {
        for line in sides.places(80) {
            sides.text(src, line, |text| format!("<b>{text}</b>"));
            sides.text(tgt, line, |text| format!("<b>{text}</b>"));
        }
    }),
    ("placeholders", 0, |sides, _| {
        for line in sides.places(80) {
            sides.text(src, line, |text| format!("{text} {{name}}"));
        }
    }),
    ("numbers", 0, |sides, _| {
        for line in sides.places(800) {
            sides.text(src, line, |text| format!("{text} {}", line + 1000));
        }
    }),
    ("nfc", 0, |sides, _| {
        for line in sides.places(100) {
            sides.text(src, line, |text| format!("{} scho\u{308}n", text));
        }
    }),
];

#[test]
fn planted_faults_are_found_in_multi30k_and_nothing_in_the_clean_copy() {
    let Some(folder) = multi30k() else { return };
    let file = |name: &str| folder.join(name);
    let clean = Sides { src: read(&file("train.de.gz")), tgt: read(&file("train.en.gz")) };
    let val = Sides { src: read(&file("val.de.gz")), tgt: read(&file("val.en.gz")) };
    let held_out = ["val.de.gz", "val.en.gz", "test_2016_flickr.de.gz", "test_2016_flickr.en.gz"];
    let held_out = held_out.map(|name| file(name).display().to_string());
    let scratch = Folder::new();
    let (code, findings) = doctor(&scratch, &clean, &held_out);
    assert_eq!((code, serious(&findings)), (0, Vec::new()), "{findings:#?}");
    for (name, code, plant) in FAULTS {
        let mut sides = clean.clone();
        plant(&mut sides, &val);
        let (ended, findings) = doctor(&scratch, &sides, &held_out);
        let found = serious(&findings);
        assert!(found.contains(&name.to_owned()), "{name} is not found: {findings:#?}");
        assert_eq!(ended, code, "{name}: {found:?}");
        // A missing line shifts all that follow.
        let others: Vec<&String> = found.iter().filter(|other| **other != name && (name != "line-counts" || *other != "misaligned")).collect();
        assert!(others.is_empty(), "{name}: also {others:?}: {findings:#?}");
    }
}

/// A few sentences that differ enough.
fn small(folder: &Folder) -> (String, String) {
    let pairs = [
        ("Ein Mann geht mit seinem Hund durch den Wald.", "A man is walking his dog through the woods."),
        ("Zwei Kinder spielen am Strand mit einem Ball.", "Two children are playing with a ball on the beach."),
        ("Eine Frau liest in der Bahn ein altes Buch.", "A woman is reading an old book on the train."),
        ("Drei junge Leute sitzen auf einer Bank im Park.", "Three young people are sitting on a bench in the park."),
    ];
    let (src, tgt): (Vec<&str>, Vec<&str>) = pairs.into_iter().unzip();
    (folder.file("a.de", src.join("\n")), folder.file("a.en", tgt.join("\n")))
}

#[test]
fn a_small_corpus_is_fine_and_its_fault_is_told_with_the_command_that_removes_it() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    let report = attentive(&["doctor", "--src", &src, "--tgt", &tgt]).good();
    assert!(report.contains("4 pairs in 1 file, German to English") && report.contains("nothing was found"), "{report}");

    let mut bytes = fs::read(&src).expect("just written");
    bytes.extend_from_slice(b"\nna\xefve\n");
    fs::write(&src, bytes).expect("writable");
    fs::write(&tgt, fs::read_to_string(&tgt).expect("text") + "\nnaive\n").expect("writable");
    let ran = attentive(&["doctor", "--src", &src, "--tgt", &tgt]);
    ran.bad(1, &["1 finding would make training wrong"]);
    for part in ["error: encoding", "line 5", "attentive data clean --src", "--filters encoding"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    // The command does what it says.
    let command = ran.stdout.lines().find_map(|line| line.trim().strip_prefix("attentive ")).expect("a command");
    let arguments: Vec<String> = command.split(' ').map(|word| match word {
        "clean-a.de" | "clean-a.en" => folder.path(word),
        word => word.to_owned(),
    }).collect();
    let counts = attentive(&arguments).good();
    assert!(counts.contains("encoding") && counts.contains("1 rejected"), "{counts}");
    let report = attentive(&["doctor", "--src", &folder.path("clean-a.de"), "--tgt", &folder.path("clean-a.en")]).good();
    assert!(report.contains("nothing was found"), "{report}");
}

#[test]
fn cleaning_writes_gzip_and_reports_and_a_dry_run_writes_nothing() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    for (file, more) in [(&src, "\nEin Mann.\nEin Mann geht mit seinem Hund durch den Wald.\n"), (&tgt, "\n\nA man is walking his dog through the woods.\n")] {
        let text = fs::read_to_string(file).expect("text") + more;
        fs::write(file, text).expect("writable");
    }
    let (out_src, out_tgt) = (folder.path("out.de.gz"), folder.path("out.en.gz"));
    let (json, tsv) = (folder.path("report.json"), folder.path("rejected.tsv"));
    let dry = ["data", "clean", "--src", &src, "--tgt", &tgt, "--dry-run", "--report", &tsv];
    let counts = attentive(&dry).good();
    assert!(counts.contains("duplicates") && counts.contains("empty"), "{counts}");
    assert!(!Path::new(&out_src).exists());
    let rejected = fs::read_to_string(&tsv).expect("written");
    let rejected: Vec<Vec<&str>> = rejected.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rejected.len(), 2);
    assert_eq!((rejected[0][0], rejected[0][2], rejected[0][3]), ("empty", "5", "Ein Mann."));
    assert_eq!((rejected[1][0], rejected[1][2]), ("duplicates", "6"));

    let wet = ["data", "clean", "--src", &src, "--tgt", &tgt, "--out-src", &out_src, "--out-tgt", &out_tgt, "--report", &json];
    attentive(&wet).good();
    assert_eq!(fs::read(&out_src).expect("written")[..2], [0x1f, 0x8b]);
    let kept = [read(Path::new(&out_src)), read(Path::new(&out_tgt))];
    assert_eq!(kept[0], read(Path::new(&src))[..4]);
    assert_eq!(kept[1], read(Path::new(&tgt))[..4]);
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!((&report["read"], &report["kept"]), (&Value::from(6), &Value::from(4)));
    assert_eq!(report["rejected"]["empty"], 1);
}

#[test]
fn bad_input_is_an_error_that_helps_and_leaves_no_output() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    let missing = folder.path("missing.de");
    attentive(&["doctor", "--src", &missing, "--tgt", &tgt]).bad(1, &["missing.de", "check that the path"]);
    attentive(&["doctor", "--src", &src, &src, "--tgt", &tgt]).bad(1, &["2 source file(s) but 1"]);
    let empty = folder.file("empty", "");
    attentive(&["doctor", "--src", &empty, "--tgt", &empty]).bad(1, &["empty"]);
    attentive(&["doctor", &src]).bad(1, &["a.de"]);
    let text = "Ein Hund bellt.\n".repeat(5000);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).expect("in memory");
    let whole = gzip.finish().expect("in memory");
    let cut = folder.file("cut.de.gz", &whole[..whole.len() / 2]);
    let other = folder.file("other.en", &text);
    attentive(&["doctor", "--src", &cut, "--tgt", &other]).bad(1, &["cut.de.gz", "cut off"]);

    let (out_src, out_tgt) = (folder.path("out.de"), folder.path("out.en"));
    let clean = |src: &str, tgt: &str| attentive(&["data", "clean", "--src", src, "--tgt", tgt, "--out-src", &out_src, "--out-tgt", &out_tgt]);
    clean(&cut, &other).bad(1, &["cut.de.gz", "cut off"]);
    clean(&src, &other).bad(1, &["a.de", "has 4 lines", "has 5000"]);
    assert!(!Path::new(&out_src).exists() && !Path::new(&out_tgt).exists());
    let unknown = attentive(&["data", "clean", "--src", &src, "--tgt", &tgt, "--dry-run", "--filters", "dupes"]);
    unknown.bad(2, &["dupes", "near-duplicates"]);
    attentive(&["data", "clean", "--src", &src, "--tgt", &tgt, "--dry-run", "--filters", "held-out"]).bad(2, &["--held-out"]);
}

#[test]
fn random_bytes_never_make_it_panic() {
    let folder = Folder::new();
    let mut state = 3u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let mut byte = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 57) as u8 * 2
        };
        (0..count).map(|_| byte()).collect()
    };
    let (src, tgt) = (folder.file("a", bytes(40_000)), folder.file("b", bytes(30_000)));
    let ran = attentive(&["doctor", "--src", &src, "--tgt", &tgt]);
    assert!([0, 1].contains(&ran.code), "{ran:?}");
    attentive(&["data", "clean", "--src", &src, "--tgt", &src, "--dry-run"]).good();
}

#[test]
fn a_recipe_is_checked_with_what_its_run_will_need() {
    let folder = Folder::new();
    folder.copy_task("train", 300, 1);
    folder.copy_task("val", 20, 2);
    let recipe = folder.recipe();
    let set = ["--set", "data.val_src=val.src", "--set", "data.val_tgt=val.tgt"];
    let ran = attentive(&[&["doctor", &recipe, "--json"], &set[..]].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(report["pairs"], 300, "{report}");
    let needs = &report["needs"];
    for key in ["seconds", "steps", "parameters", "disk_bytes", "seconds_per_batch"] {
        assert!(needs[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {report}");
    }
    assert_eq!(needs["steps"], 200.0, "`training.max_steps` of the recipe");
    attentive(&["doctor", &recipe, "--set", "data.dir=nowhere"]).bad(1, &["train.src", "--set data.dir"]);
    attentive(&["doctor", "no-such.toml"]).bad(1, &["no-such.toml"]);
}
