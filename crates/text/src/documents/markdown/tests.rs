//! Tests of Markdown: what is a text, and what is written for it.

use super::*;

fn texts(source: &str) -> Vec<String> {
    let template = read(source.to_owned()).unwrap();
    assert_eq!(template.fill(&template.texts, &template.texts), source);
    template.texts.iter().map(Marked::text).collect()
}

/// The document with every text part changed.
fn changed(source: &str, change: impl Fn(&str) -> String) -> String {
    let template = read(source.to_owned()).unwrap();
    let new: Vec<Marked> = template
        .texts
        .iter()
        .map(|text| with(text, &change))
        .collect();
    template.fill(&template.texts, &new)
}

fn with(text: &Marked, change: impl Fn(&str) -> String) -> Marked {
    let part = |part: &Part| match part {
        Part::Text(text) if !text.trim().is_empty() => {
            let (start, end) = (text.trim_start(), text.trim_end());
            let (before, after) = (&text[..text.len() - start.len()], &text[end.len()..]);
            Part::Text(format!("{before}{}{after}", change(text.trim())))
        }
        other => other.clone(),
    };
    Marked {
        parts: text.parts.iter().map(part).collect(),
    }
}

const PAGE: &str = "\
---
title: Seite
---

# Der *Titel* ###

Ein **fetter** Satz mit `code` und [Verweis](https://example.org \"Titel\")
über zwei Zeilen, die umbrochen wurden, [kurz] und ![Bild *eins*](a.png).

- Punkt eins
- [ ] Punkt \\*zwei\\* &amp; drei
  1. Unterpunkt

> Zitat über
> zwei Zeilen.

| Kopf | Zahl |
|------|-----:|
| Zelle | 12  |

```rust
let code = \"bleibt\";
```

<p>HTML bleibt</p>

Zeile eins  
Zeile zwei <b>fett</b><br>Ende

[kurz]: https://example.org/kurz
";

#[test]
fn everything_that_people_read_is_a_text() {
    let expected = [
        "Der Titel",
        "Bild eins",
        "Ein fetter Satz mit code und Verweis über zwei Zeilen, die umbrochen wurden, kurz und .",
        "Punkt eins",
        "Punkt *zwei* & drei",
        "Unterpunkt",
        "Zitat über zwei Zeilen.",
        "Kopf",
        "Zahl",
        "Zelle",
        "Zeile eins Zeile zwei fett Ende",
        "HTML bleibt",
    ];
    assert_eq!(texts(PAGE), expected);
    let template = read(PAGE.to_owned()).unwrap();
    let skipped: Vec<(usize, Reason)> = template
        .skipped
        .iter()
        .map(|one| (one.line, one.reason))
        .collect();
    assert_eq!(skipped, [(1, Reason::FrontMatter), (21, Reason::Code)]);
}

#[test]
fn markup_stays_around_new_words() {
    let page = changed(PAGE, |text| text.to_uppercase());
    for line in [
        "# DER *TITEL* ###",
        "EIN **FETTER** SATZ MIT `code` UND [VERWEIS](https://example.org \"Titel\")",
        "ÜBER ZWEI ZEILEN, DIE UMBROCHEN WURDEN, [KURZ][kurz] UND ![BILD\n*EINS*](a.png).",
        "- [ ] PUNKT \\*ZWEI\\* & DREI",
        "  1. UNTERPUNKT",
        "> ZITAT ÜBER ZWEI ZEILEN.",
        "| ZELLE | 12  |",
        "let code = \"bleibt\";",
        "ZEILE EINS  \nZEILE ZWEI <b>FETT</b><br>ENDE",
        "[kurz]: https://example.org/kurz",
    ] {
        assert!(page.contains(line), "{line}\n--- is not in ---\n{page}");
    }
}

#[test]
fn what_is_written_is_read_again_as_it_was_meant() {
    let nasty = [
        "# x",
        "- x",
        "1. x",
        "2) x",
        "> x",
        "a * b * c",
        "*x*",
        "snake_case _x_",
        "[x](y)",
        "<b>x",
        "`x`",
        "a | b",
        "&amp;",
        "x \\* y",
        "x\\",
        "!x!",
        "~~x~~",
        "=x",
        "x #",
        "+ x",
        "a < b && c",
        "---x",
        "C:\\x\\y",
        "x & y; z",
        "{x}",
    ];
    for nasty in nasty {
        let change = |text: &str| {
            if is_text(text) {
                format!("{nasty} a")
            } else {
                text.to_owned()
            }
        };
        let page = changed(PAGE, change);
        let old = read(PAGE.to_owned()).unwrap();
        let expected: Vec<String> = old
            .texts
            .iter()
            .map(|text| with(text, change).text())
            .collect();
        let again = read(page.clone()).unwrap();
        let texts: Vec<String> = again.texts.iter().map(Marked::text).collect();
        assert_eq!(texts, expected, "{nasty}: {page}");
    }
}
