//! `attentive doctor` and `attentive data clean` with the real binary: what is found is removed by the command that is
//! told, and bad input is an error that helps. Faults in a real corpus: crates/text/tests/quality.rs.

mod program;

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use program::{Folder, attentive};

fn read(path: &Path) -> Vec<Vec<u8>> {
    let lines = attentive_text::lines::read_lines(path).expect("the corpus is there");
    lines.into_iter().map(String::into_bytes).collect()
}

/// A few sentences that differ enough.
fn small(folder: &Folder) -> (String, String) {
    let pairs = [
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
    let (src, tgt): (Vec<&str>, Vec<&str>) = pairs.into_iter().unzip();
    (
        folder.file("a.de", src.join("\n")),
        folder.file("a.en", tgt.join("\n")),
    )
}

#[test]
fn a_small_corpus_is_fine_and_its_fault_is_told_with_the_command_that_removes_it() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    let report = attentive(&["doctor", "--src", &src, "--tgt", &tgt]).good();
    assert!(
        report.contains("4 pairs in 1 file, German to English")
            && report.contains("nothing was found"),
        "{report}"
    );

    let mut bytes = fs::read(&src).expect("just written");
    bytes.extend_from_slice(b"\nna\xefve\n");
    fs::write(&src, bytes).expect("writable");
    fs::write(&tgt, fs::read_to_string(&tgt).expect("text") + "\nnaive\n").expect("writable");
    let ran = attentive(&["doctor", "--src", &src, "--tgt", &tgt]);
    ran.bad(1, &["1 finding would make training wrong"]);
    for part in [
        "error: encoding",
        "line 5",
        "attentive data clean --src",
        "--filters encoding",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    // The command does what it says.
    let command = ran
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("attentive "))
        .expect("a command");
    let arguments: Vec<String> = command
        .split(' ')
        .map(|word| match word {
            "clean-a.de" | "clean-a.en" => folder.path(word),
            word => word.to_owned(),
        })
        .collect();
    let counts = attentive(&arguments).good();
    assert!(
        counts.contains("encoding") && counts.contains("1 rejected"),
        "{counts}"
    );
    let report = attentive(&[
        "doctor",
        "--src",
        &folder.path("clean-a.de"),
        "--tgt",
        &folder.path("clean-a.en"),
    ])
    .good();
    assert!(report.contains("nothing was found"), "{report}");
}

#[test]
fn cleaning_writes_gzip_and_reports_and_a_dry_run_writes_nothing() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    for (file, more) in [
        (
            &src,
            "\nEin Mann.\nEin Mann geht mit seinem Hund durch den Wald.\n",
        ),
        (&tgt, "\n\nA man is walking his dog through the woods.\n"),
    ] {
        let text = fs::read_to_string(file).expect("text") + more;
        fs::write(file, text).expect("writable");
    }
    let (out_src, out_tgt) = (folder.path("out.de.gz"), folder.path("out.en.gz"));
    let (json, tsv) = (folder.path("report.json"), folder.path("rejected.tsv"));
    let dry = [
        "data",
        "clean",
        "--src",
        &src,
        "--tgt",
        &tgt,
        "--dry-run",
        "--report",
        &tsv,
    ];
    let counts = attentive(&dry).good();
    assert!(
        counts.contains("duplicates") && counts.contains("empty"),
        "{counts}"
    );
    assert!(!Path::new(&out_src).exists());
    let rejected = fs::read_to_string(&tsv).expect("written");
    let rejected: Vec<Vec<&str>> = rejected
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rejected.len(), 2);
    assert_eq!(
        (rejected[0][0], rejected[0][2], rejected[0][3]),
        ("empty", "5", "Ein Mann.")
    );
    assert_eq!((rejected[1][0], rejected[1][2]), ("duplicates", "6"));

    let wet = [
        "data",
        "clean",
        "--src",
        &src,
        "--tgt",
        &tgt,
        "--out-src",
        &out_src,
        "--out-tgt",
        &out_tgt,
        "--report",
        &json,
    ];
    attentive(&wet).good();
    assert_eq!(fs::read(&out_src).expect("written")[..2], [0x1f, 0x8b]);
    let kept = [read(Path::new(&out_src)), read(Path::new(&out_tgt))];
    assert_eq!(kept[0], read(Path::new(&src))[..4]);
    assert_eq!(kept[1], read(Path::new(&tgt))[..4]);
    let report: Value =
        serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(
        (&report["read"], &report["kept"]),
        (&Value::from(6), &Value::from(4))
    );
    assert_eq!(report["rejected"]["empty"], 1);
}

#[test]
fn bad_input_is_an_error_that_helps_and_leaves_no_output() {
    let folder = Folder::new();
    let (src, tgt) = small(&folder);
    let missing = folder.path("missing.de");
    attentive(&["doctor", "--src", &missing, "--tgt", &tgt])
        .bad(1, &["missing.de", "check that the path"]);
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
    let clean = |src: &str, tgt: &str| {
        attentive(&[
            "data",
            "clean",
            "--src",
            src,
            "--tgt",
            tgt,
            "--out-src",
            &out_src,
            "--out-tgt",
            &out_tgt,
        ])
    };
    clean(&cut, &other).bad(1, &["cut.de.gz", "cut off"]);
    clean(&src, &other).bad(1, &["a.de", "has 4 lines", "has 5000"]);
    assert!(!Path::new(&out_src).exists() && !Path::new(&out_tgt).exists());
    let dry_run = |filters: &str| {
        attentive(&[
            "data",
            "clean",
            "--src",
            &src,
            "--tgt",
            &tgt,
            "--dry-run",
            "--filters",
            filters,
        ])
    };
    dry_run("dupes").bad(2, &["dupes", "near-duplicates"]);
    dry_run("held-out").bad(2, &["--held-out"]);
}

#[test]
fn random_bytes_never_make_it_panic() {
    let folder = Folder::new();
    let mut state = 3u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let mut byte = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 57) as u8 * 2
        };
        (0..count).map(|_| byte()).collect()
    };
    let (src, tgt) = (
        folder.file("a", bytes(40_000)),
        folder.file("b", bytes(30_000)),
    );
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
    let set = [
        "--set",
        "data.val_src=val.src",
        "--set",
        "data.val_tgt=val.tgt",
    ];
    let ran = attentive(&[&["doctor", &recipe, "--json"], &set[..]].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(report["pairs"], 300, "{report}");
    let needs = &report["needs"];
    for key in [
        "seconds",
        "steps",
        "parameters",
        "disk_bytes",
        "seconds_per_batch",
    ] {
        assert!(
            needs[key].as_f64().is_some_and(|value| value > 0.0),
            "{key}: {report}"
        );
    }
    assert_eq!(needs["steps"], 200.0, "`training.max_steps` of the recipe");
    attentive(&["doctor", &recipe, "--set", "data.dir=nowhere"])
        .bad(1, &["train.src", "--set data.dir"]);
    attentive(&["doctor", "no-such.toml"]).bad(1, &["no-such.toml"]);
}
