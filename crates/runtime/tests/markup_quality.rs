//! What markup and placeholders cost, measured on real sentences with the built-in models.
//!
//! The data is not part of this repository: set `ATTENTIVE_DATA` to the folder that holds `multi30k/`.

use std::path::Path;

use attentive_metrics::bleu::corpus_bleu;
use attentive_runtime::Translator;
use attentive_runtime::translator::{Lines, TranslatorOptions};
use attentive_text::keep;
use attentive_text::lines::LineReader;
use attentive_text::markup::{Marked, Page, Part, Syntax, units};

fn lines(name: &str) -> Option<Vec<String>> {
    let Some(data) = std::env::var_os("ATTENTIVE_DATA") else {
        eprintln!("SKIPPED: set ATTENTIVE_DATA to the data folder to measure markup on Multi30k");
        return None;
    };
    let path = Path::new(&data).join("multi30k").join(name);
    let lines = LineReader::open(&path).expect("the data folder holds Multi30k");
    Some(lines.map(|line| line.expect("readable")).collect())
}

fn german() -> Translator {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/de-en");
    let translator = Translator::open(model).expect("the repository holds this model");
    let options = TranslatorOptions {
        lines: Lines::RawText,
        ..translator.options().clone()
    };
    translator.with_options(options).expect("sound options")
}

/// Numbers without pattern, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// A sentence with up to three random inline elements, which may be nested, and sometimes something without content.
fn tagged(sentence: &str, random: &mut Random) -> String {
    const NAMES: [&str; 6] = [
        "b",
        "i",
        "a href=\"x?a=1&amp;b\"",
        "span class='y'",
        "em",
        "u",
    ];
    let units = units(sentence);
    let mut inserted: Vec<(usize, usize, String)> = Vec::new(); // place, order, tag
    let mut room = 0..units.len();
    for number in 0..1 + random.below(3) {
        if room.is_empty() {
            break;
        }
        let first = room.start + random.below(room.len());
        let last = first + random.below((room.end - first).min(4));
        let name = NAMES[random.below(NAMES.len())];
        let closing = format!("</{}>", name.split(' ').next().unwrap_or(name));
        inserted.push((units[first].start, 10 + number, format!("<{name}>")));
        inserted.push((units[last].end, 5 - number, closing));
        room = if random.below(2) == 0 {
            first..last + 1
        } else {
            last + 1..units.len()
        };
    }
    if random.below(4) == 0 {
        let at = units[random.below(units.len())].start;
        inserted.push((at, 9, "<img src=\"z.png\">".to_owned()));
    }
    inserted.sort();
    let mut page = String::from("<p>");
    let mut done = 0;
    for (at, _, tag) in inserted {
        page.push_str(
            &sentence[done..at]
                .replace('&', "&amp;")
                .replace('<', "&lt;"),
        );
        page.push_str(&tag);
        done = at;
    }
    page + &sentence[done..].replace('&', "&amp;").replace('<', "&lt;") + "</p>"
}

/// The tags of a page, sorted.
fn tags(page: &str) -> Vec<String> {
    let mut tags: Vec<String> = page
        .split('<')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('>')?.0.to_owned()))
        .collect();
    tags.sort();
    tags
}

#[test]
fn three_hundred_snippets_keep_every_tag_and_their_quality() {
    let (Some(src), Some(references)) = (
        lines("test_2016_flickr.de.gz"),
        lines("test_2016_flickr.en.gz"),
    ) else {
        return;
    };
    let (src, references) = (&src[..300], &references[..300]);
    let mut random = Random(7);
    let snippets: Vec<String> = src
        .iter()
        .map(|sentence| tagged(sentence, &mut random))
        .collect();
    let translator = german();
    let bare: Vec<String> = translator
        .translate(src)
        .into_iter()
        .map(|found| found.text)
        .collect();
    let (mut texts, mut unplaced, mut equal) = (Vec::new(), 0, 0);
    for (snippet, bare) in snippets.iter().zip(&bare) {
        let page = Page::read(&**snippet, &Syntax::Html);
        let found = translator.translate_marked(page.texts());
        unplaced += found
            .iter()
            .map(|found| found.unplaced.len())
            .sum::<usize>();
        let found: Vec<Marked> = found.into_iter().map(|found| found.marked).collect();
        let output = page.write(&found);
        assert_eq!(tags(&output), tags(snippet), "{output}");
        let read = Page::read(&*output, &Syntax::Html);
        assert_eq!(read.texts().len(), page.texts().len(), "{output}");
        let text: String = read.texts().iter().map(Marked::text).collect();
        equal += usize::from(&text == bare);
        texts.push(text);
    }
    let (with, without) = (
        corpus_bleu(&texts, references).score,
        corpus_bleu(&bare, references).score,
    );
    println!(
        "BLEU {with:.2} with tags, {without:.2} without; {equal} of 300 the same, {unplaced} tags unplaced"
    );
    assert!((with - without).abs() < 1.0, "{with} {without}");
}

/// A sentence with placeholders in random places between its words.
fn with_placeholders(sentence: &str, random: &mut Random, many: bool) -> String {
    const ITEMS: [&str; 16] = [
        "{name}",
        "%d",
        "%(x)s",
        "{{ user }}",
        "$HOME",
        "${PATH}",
        "{count, plural, one {# file} other {# files}}",
        "https://example.org/a?b=c",
        "max@example.com",
        "25 km",
        "2024-05-01",
        "%1$s",
        "{0}",
        "@tom",
        "report.pdf",
        "14:30",
    ];
    let mut words: Vec<&str> = sentence.split(' ').collect();
    for _ in 0..if many {
        9 + random.below(6)
    } else {
        1 + random.below(4)
    } {
        let at = random.below(words.len());
        words.insert(at, ITEMS[random.below(ITEMS.len())]);
    }
    words.join(" ")
}

#[test]
fn placeholders_of_two_thousand_sentences_are_all_kept_and_none_is_doubled() {
    let Some(src) = lines("train.de.gz") else {
        return;
    };
    let mut random = Random(3);
    let sentence = |(number, sentence): (usize, &String)| {
        with_placeholders(sentence, &mut random, number % 20 == 0)
    };
    let sentences: Vec<String> = src.iter().take(2000).enumerate().map(sentence).collect();
    let found = german().translate(&sentences);
    let (mut moved, mut lines, mut items) = (0, 0, 0);
    for (sentence, found) in sentences.iter().zip(&found) {
        let kept: Vec<&str> = keep::spans(sentence).map(|span| &sentence[span]).collect();
        items += kept.len();
        assert_eq!(
            keep::deviation(&kept, &found.text),
            0,
            "{sentence}\n{}",
            found.text
        );
        moved += found.moved;
        lines += usize::from(found.moved > 0);
    }
    println!(
        "{items} placeholders kept; {moved} in {lines} of 2000 sentences were put by the alignment"
    );
}

#[test]
fn a_model_without_marks_keeps_placeholders_too() {
    let Some(path) = std::env::var_os("ATTENTIVE_IMPORTED_MODEL") else {
        eprintln!(
            "SKIPPED: set ATTENTIVE_IMPORTED_MODEL to a German-English model that knows no marks"
        );
        return;
    };
    let Some(src) = lines("train.de.gz") else {
        return;
    };
    let translator = Translator::open(Path::new(&path)).expect("a model directory");
    let options = TranslatorOptions {
        lines: Lines::RawText,
        ..translator.options().clone()
    };
    let translator = translator.with_options(options).expect("sound options");
    let mut random = Random(3);
    let sentences: Vec<String> = src
        .iter()
        .take(300)
        .map(|sentence| with_placeholders(sentence, &mut random, false))
        .collect();
    let (mut moved, mut items) = (0, 0);
    for (sentence, found) in sentences.iter().zip(translator.translate(&sentences)) {
        let kept: Vec<&str> = keep::spans(sentence).map(|span| &sentence[span]).collect();
        items += kept.len();
        assert_eq!(
            keep::deviation(&kept, &found.text),
            0,
            "{sentence}\n{}",
            found.text
        );
        moved += found.moved;
    }
    println!("{items} placeholders kept, {moved} were put by the alignment");
    let parts = vec![
        Part::Text("Drücke ".into()),
        Part::Verbatim("Strg+C".into()),
        Part::Text(" jetzt.".into()),
    ];
    let found = translator.translate_marked(&[Marked { parts }]).remove(0);
    assert!(
        found
            .marked
            .parts
            .contains(&Part::Verbatim("Strg+C".into())),
        "{:?}",
        found.marked
    );
}
