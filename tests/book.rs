//! The book and the README cannot drift away from the program: chapters, listings, links, pictures, the Chinese twin.
//!
//! mdBook leaves an include that it cannot find as it is, and checks no link. Here every listing is found in the file that
//! the compiler sees, and every picture and link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source() -> PathBuf {
    root().join("docs/book/src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the files in a folder that end so, without the ending.
fn names(folder: &Path, ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap_or_else(|_| panic!("{} is there", folder.display()));
    let names = files.map(|file| file.expect("readable").file_name());
    let names = names.filter_map(|name| Some(name.to_str()?.strip_suffix(ending)?.to_owned()));
    names.collect()
}

/// The chapters: names of files and their text.
fn chapters() -> BTreeMap<String, String> {
    let names = names(&source(), ".md").into_iter();
    names
        .map(|name| format!("{name}.md"))
        .filter(|name| name != "SUMMARY.md")
        .map(|name| (name.clone(), read(&source().join(name))))
        .collect()
}

/// What is read of a page: links and pictures, code blocks by language, headings, rows of tables.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    code: Vec<(String, String)>,
    headings: Vec<(HeadingLevel, String)>,
    rows: usize,
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Page::default();
        let mut inside = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.to_string());
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    page.code.push((language.to_string(), String::new()));
                    inside = Some(Tag::Paragraph);
                }
                Event::End(TagEnd::CodeBlock | TagEnd::Heading(_)) => inside = None,
                Event::Start(tag @ Tag::Heading { level, .. }) => {
                    page.headings.push((level, String::new()));
                    inside = Some(tag);
                }
                Event::End(TagEnd::TableRow) => page.rows += 1,
                Event::Text(text) | Event::Code(text) => match inside {
                    Some(Tag::Heading { .. }) => {
                        page.headings.last_mut().expect("inside").1 += &text
                    }
                    Some(_) => page.code.last_mut().expect("inside").1 += &text,
                    None => {}
                },
                _ => {}
            }
        }
        page
    }
}

/// The id that mdBook gives a heading.
fn id(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect()
}

/// What stands between `{{#include ` and `}}`.
fn includes(text: &str) -> Vec<&str> {
    let parts = text.split("{{#include ").skip(1);
    parts
        .map(|part| part.split("}}").next().expect("a first part").trim())
        .collect()
}

/// The lines of an anchor, without other anchors' marks.
fn anchored(text: &str, anchor: &str) -> Vec<String> {
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        let mark = line.trim().trim_start_matches('/').trim();
        if mark == format!("ANCHOR_END: {anchor}") {
            inside = false;
        } else if mark == format!("ANCHOR: {anchor}") {
            inside = true;
        } else if inside && !mark.starts_with("ANCHOR") && !mark.is_empty() {
            lines.push(line.to_owned());
        }
    }
    lines
}

#[test]
fn the_summary_names_every_chapter_once_and_nothing_else() {
    let mut named = Page::of(&read(&source().join("SUMMARY.md"))).links;
    let count = named.len();
    named.sort();
    named.dedup();
    assert_eq!(named.len(), count, "a chapter is named twice");
    let chapters: Vec<String> = chapters().into_keys().collect();
    assert_eq!(named, chapters);
}

#[test]
fn every_listing_is_included_from_a_file_that_the_compiler_sees() {
    let mut listings = 0;
    for (chapter, text) in chapters() {
        for (language, code) in Page::of(&text).code {
            if language.split(',').next() != Some("rust") {
                continue;
            }
            listings += 1;
            let only_includes = code.lines().all(|line| line.starts_with("{{#include "));
            assert!(
                only_includes,
                "{chapter}: Rust that is not included: {code}"
            );
        }
        for include in includes(&text) {
            let (file, anchor) = match include.split_once(':') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (include, None),
            };
            let path = source().join(file);
            let included = read(&path);
            if file.ends_with(".rs") {
                let anchor = anchor.unwrap_or_else(|| panic!("{chapter}: {include} has no anchor"));
                let lines = anchored(&included, anchor);
                assert!(!lines.is_empty(), "{chapter}: {include} has no such anchor");
                assert!(lines.len() <= 40, "{chapter}: {include} is a wall of code");
            } else {
                let lines = included.lines().count();
                let range = anchor.map_or(1..=lines, |range| {
                    let ends = range.split_once(':').expect("FIRST:LAST");
                    ends.0.parse().expect("a line")..=ends.1.parse().expect("a line")
                });
                let there = *range.start() >= 1 && *range.end() <= lines && !range.is_empty();
                assert!(there, "{chapter}: {include} is not there");
            }
        }
        let left = text.matches("{{").count() - text.matches("{{#include ").count();
        assert_eq!(left, 0, "{chapter}: something that is no include");
    }
    assert!(listings > 20, "only {listings} listings were found");
}

#[test]
fn links_and_pictures_of_the_book_lead_somewhere() {
    let chapters = chapters();
    let mut seen = 0;
    for (chapter, text) in &chapters {
        for link in Page::of(text).links {
            seen += 1;
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                chapter.as_str()
            } else {
                file
            };
            // Anything outside of the book is not where the book is read.
            assert!(
                !target.contains("..") && !target.contains("://"),
                "{chapter}: {link}"
            );
            assert!(
                source().join(target).is_file(),
                "{chapter}: {link} is not there"
            );
            if !fragment.is_empty() {
                let headings = Page::of(&chapters[target]).headings;
                let found = headings.iter().any(|(_, heading)| id(heading) == fragment);
                assert!(found, "{chapter}: {link}: no such heading");
            }
        }
        let titles = Page::of(text).headings;
        let first: Vec<_> = titles
            .iter()
            .filter(|(level, _)| *level == HeadingLevel::H1)
            .collect();
        assert_eq!(first.len(), 1, "{chapter} has one title");
    }
    assert!(seen > 40, "only {seen} links were found");
}

#[test]
fn every_example_is_built_has_a_chapter_and_its_output_is_there() {
    let manifest = read(&root().join("crates/cli/Cargo.toml"));
    let all: String = chapters().into_values().collect();
    let makes = read(&root().join("docs/make-mechanisms"));
    let examples = names(&root().join("examples"), ".rs");
    for example in &examples {
        let built = format!("path = \"../../examples/{example}.rs\"");
        assert!(
            manifest.contains(&built),
            "{example} is not in crates/cli/Cargo.toml"
        );
        assert!(all.contains(example.as_str()), "no chapter names {example}");
        assert!(
            makes.contains(example.as_str()),
            "docs/make-mechanisms does not run {example}"
        );
    }
    assert_eq!(names(&source().join("output"), ".txt"), examples);
    for part in all.split("--example ").skip(1) {
        let name: String = part
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        assert!(
            examples.contains(&name),
            "the book runs {name}, which is no example"
        );
    }
}

#[test]
fn mistakes_fail_and_exercises_are_answered_as_the_book_says() {
    let tests = std::env::current_exe().expect("a path");
    let folder = tests
        .ancestors()
        .nth(2)
        .expect("target/PROFILE/deps")
        .join("examples");
    for name in [
        "23_mistakes_in_attention",
        "24_mistakes_in_training",
        "25_exercises",
    ] {
        let program = folder.join(name);
        if !program.is_file() {
            println!("SKIPPED: {name} is not built; `cargo test` without --test builds it");
            continue;
        }
        let ran = Command::new(program).output().expect("it runs");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{name}: {said}");
        // Numbers may differ in their last digits on another processor; what is said may not.
        let words = |text: &str| -> Vec<String> {
            let prose = text
                .lines()
                .filter(|line| line.starts_with(char::is_alphanumeric));
            let letters = prose.map(|line| line.chars().filter(|c| c.is_alphabetic()).collect());
            letters.collect()
        };
        let expected = read(&source().join(format!("output/{name}.txt")));
        let found = String::from_utf8_lossy(&ran.stdout).into_owned();
        for line in words(&expected) {
            assert!(
                words(&found).contains(&line),
                "{name} no longer says {line}"
            );
        }
    }
}

#[test]
fn the_chinese_readme_has_the_commands_links_and_tables_of_the_english_one() {
    let [english, chinese] =
        ["README.md", "README.zh-CN.md"].map(|name| Page::of(&read(&root().join(name))));
    for (ours, theirs) in english.code.iter().zip(&chinese.code) {
        assert_eq!(ours, theirs, "README.zh-CN.md has another block of code");
    }
    assert_eq!(english.code.len(), chinese.code.len());
    let levels = |page: &Page| {
        page.headings
            .iter()
            .map(|(level, _)| *level)
            .collect::<Vec<_>>()
    };
    assert_eq!(levels(&english), levels(&chinese), "sections");
    assert_eq!(english.rows, chinese.rows, "rows of tables");
    let links = |page: &Page| {
        let others = page.links.iter().filter(|link| !link.starts_with("README"));
        others.cloned().collect::<BTreeSet<_>>()
    };
    assert_eq!(links(&english), links(&chinese), "links");
    assert!(english.links.contains(&"README.zh-CN.md".to_owned()));
    assert!(chinese.links.contains(&"README.md".to_owned()));
}
