//! Text with inline markup through the built-in models, which the repository holds.

use std::path::Path;

use attentive_runtime::Translator;
use attentive_text::markup::{Marked, Part};

/// A text with tags in a small notation: `{1` opens, `1}` closes, `|1|` is a point, `~...~` is verbatim.
fn marked(notation: &str) -> Marked {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = notation.chars();
    let flush = |text: &mut String, parts: &mut Vec<Part>| {
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(text)));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '{' => {
                flush(&mut text, &mut parts);
                let number = chars.next().and_then(|c| c.to_digit(10));
                parts.push(Part::Open(number.expect("a digit")));
            }
            '}' => {
                let number = text.pop().and_then(|c| c.to_digit(10));
                flush(&mut text, &mut parts);
                parts.push(Part::Close(number.expect("a digit")));
            }
            '|' => {
                flush(&mut text, &mut parts);
                let number = chars.next().and_then(|c| c.to_digit(10));
                parts.push(Part::Point(number.expect("a digit")));
                assert_eq!(chars.next(), Some('|'));
            }
            '~' => {
                flush(&mut text, &mut parts);
                parts.push(Part::Verbatim(
                    chars.by_ref().take_while(|&c| c != '~').collect(),
                ));
            }
            c => text.push(c),
        }
    }
    flush(&mut text, &mut parts);
    Marked { parts }
}

/// The same notation.
fn shown(marked: &Marked) -> String {
    let show = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Verbatim(text) => format!("~{text}~"),
        Part::Open(number) => format!("{{{number}"),
        Part::Close(number) => format!("{number}}}"),
        Part::Point(number) => format!("|{number}|"),
    };
    marked.parts.iter().map(show).collect()
}

fn german() -> Translator {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/de-en");
    Translator::open(model).expect("the repository holds this model")
}

#[test]
fn tags_come_back_around_the_words_that_they_belonged_to() {
    let table = [
        (
            "{1Guten1} Morgen, {2Welt2}!",
            "{1Good1} morning, {2world2}!",
        ),
        (
            "Ein {1schwarzer1} Hund spielt mit einem {2roten Ball2}.",
            "A {1black1} dog is playing with a {2red ball2}.",
        ),
        (
            "Ein Mann|1| schläft. {2Eine Frau2} auch.",
            "A man|1| is sleeping. {2A woman2}, too.",
        ),
        ("Ein {1{2Hund2}1} rennt.", "A {1{2dog2}1} is running."),
        ("Drücke ~Strg+C~ und warte.", "Press ~Strg+C~ and wait."),
    ];
    let texts: Vec<Marked> = table.iter().map(|(source, _)| marked(source)).collect();
    let found = german().translate_marked(&texts);
    for (found, (source, expected)) in found.iter().zip(table) {
        assert_eq!(shown(&found.marked), expected, "{source}");
        assert!(found.unplaced.is_empty(), "{source}");
    }
}

fn raw(text: &str) -> String {
    let translator = german();
    let options = attentive_runtime::translator::TranslatorOptions {
        lines: attentive_runtime::translator::Lines::RawText,
        ..translator.options().clone()
    };
    let translator = translator.with_options(options).expect("sound options");
    translator.translate(&[text]).remove(0).text
}

#[test]
fn tags_in_plain_text_come_back_around_their_words() {
    for (text, expected) in [
        (
            "<b>Guten</b> Morgen, <a href='x'>Welt</a>!",
            "<b>Good</b> morning, <a href='x'>world</a>!",
        ),
        (
            "<p>Ein <i>Hund</i> rennt. <i>Zwei Katzen schlafen.</i></p>",
            "<p>A <i>dog</i> is running. <i>Two cats sleep.</i></p>",
        ),
    ] {
        assert_eq!(raw(text), expected);
    }
}

#[test]
fn placeholders_come_back_exactly_as_often_as_they_were() {
    let text = "Klicken Sie auf {name}, um %d Dateien zu löschen.";
    println!("{}", raw(text));
    let many: Vec<String> = (0..20).map(|number| format!("{{x{number}}}")).collect();
    let found = raw(&format!("Hier sind {} und mehr.", many.join(", ")));
    println!("{found}");
    for item in many {
        assert_eq!(found.matches(&item).count(), 1, "{item} in {found}");
    }
}
