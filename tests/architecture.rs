//! The house rules that a machine can check: who may use whom, how files begin, how long they are.
//!
//! ARCHITECTURE.md gives the reasons. A rule that stands in the way is changed there and here.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Each crate's folder, and which others of ours it may use.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("text", &[]),
    ("metrics", &[]),
    ("model", &["text"]),
    ("convert", &["model", "text"]),
    ("runtime", &["model", "text"]),
    // `text` for the special ids alone: padding has one number everywhere.
    ("nn", &["model", "runtime", "text"]),
    ("train", &["metrics", "model", "nn", "runtime", "text"]),
    ("pictures", &["model", "runtime", "text"]),
    ("hub", &["model"]),
    ("models", &["model", "runtime", "text"]),
    (
        "server",
        &["model", "models", "pictures", "runtime", "text"],
    ),
    (
        "catalog",
        &["convert", "hub", "model", "models", "runtime", "text"],
    ),
    // Tests alone use it.
    ("browser", &[]),
    (
        "python",
        &[
            "catalog", "metrics", "model", "models", "pictures", "runtime", "text",
        ],
    ),
    ("c", &["catalog", "metrics", "runtime"]),
    (
        "cli",
        &[
            "catalog", "convert", "hub", "metrics", "model", "models", "nn", "pictures", "runtime",
            "server", "text", "train",
        ],
    ),
];

/// Crates in which tensors may occur.
const MAY_USE_BURN: [&str; 2] = ["nn", "train"];

/// Files longer than this are split; tests at a file's end do not count.
const LONGEST: usize = 500;

/// Names that say nothing about what is inside.
const JUNK_DRAWERS: [&str; 4] = ["utils.rs", "helpers.rs", "common.rs", "base.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names in a section of a crate's Cargo.toml, sections of a platform included.
fn dependencies(manifest: &Table, section: &str) -> Vec<String> {
    let names = |table: &Table| -> Vec<String> {
        let section = table.get(section).and_then(|section| section.as_table());
        section
            .map(|section| section.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut all = names(manifest);
    let targets = manifest.get("target").and_then(|target| target.as_table());
    for target in targets.into_iter().flat_map(|targets| targets.values()) {
        all.extend(target.as_table().map(names).unwrap_or_default());
    }
    all
}

#[test]
fn crates_use_only_those_that_come_before_them() {
    let mut seen = 0;
    let crates = fs::read_dir(root().join("crates")).expect("the crates are there");
    let crates = crates.map(|entry| entry.expect("readable").path());
    for folder in crates.chain([root().join("models")]) {
        let name = folder
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("each crate has one");
        let manifest: Table = text.parse().expect("valid TOML");
        let rule = MAY_USE.iter().find(|(crate_name, _)| *crate_name == name);
        let (_, allowed) =
            rule.unwrap_or_else(|| panic!("the crate {name} has no rule in MAY_USE"));
        for section in ["dependencies", "build-dependencies"] {
            for dependency in dependencies(&manifest, section) {
                if let Some(ours) = dependency.strip_prefix("attentive-") {
                    assert!(
                        allowed.contains(&ours),
                        "the crate {name} may not use {ours}"
                    );
                }
                let burn = dependency == "burn" || dependency.starts_with("burn-");
                assert!(
                    !burn || MAY_USE_BURN.contains(&name.as_str()),
                    "the crate {name} uses Burn"
                );
            }
        }
        seen += 1;
    }
    assert!(seen >= 7, "only {seen} crates were found");
}

/// Every Rust file of ours.
fn sources() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for folder in ["crates", "models", "tests", "examples", "benchmarks"] {
        collect(&root().join(folder), &mut files);
    }
    assert!(files.len() > 50, "only {} files were found", files.len());
    files.sort();
    files
}

#[test]
fn every_file_says_first_what_it_is() {
    for path in sources() {
        let text = fs::read_to_string(&path).expect("readable");
        let first = text.lines().next().unwrap_or_default();
        let says = first
            .strip_prefix("//! ")
            .is_some_and(|sentence| sentence.len() > 8);
        assert!(
            says,
            "{} does not begin with a sentence after //!",
            path.display()
        );
    }
}

#[test]
fn there_are_no_junk_drawers() {
    for path in sources() {
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(
            !JUNK_DRAWERS.contains(&name.as_ref()),
            "{} needs a real name",
            path.display()
        );
    }
}

#[test]
fn files_are_short_enough_to_read() {
    for path in sources() {
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        if is_test || path.file_name().is_some_and(|name| name == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let own = text
            .lines()
            .take_while(|line| *line != "#[cfg(test)]")
            .count();
        assert!(
            own <= LONGEST,
            "{} has {own} lines before its tests",
            path.display()
        );
    }
}

/// Names of tests are sentences, so they have many underscores; names of anything else have few.
#[test]
fn the_tests_that_the_invariants_name_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there");
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.matches('_').count() >= 4)
        .filter(|code| {
            code.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
        .collect();
    assert!(named.len() > 40, "only {} tests are named", named.len());
    let code: String = sources()
        .iter()
        .map(|path| fs::read_to_string(path).expect("readable"))
        .collect();
    for name in named {
        let defined = code.contains(&format!("fn {name}("));
        assert!(
            defined,
            "ARCHITECTURE.md names the test `{name}`, which does not exist"
        );
    }
}
