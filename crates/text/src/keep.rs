//! What a translation should keep as it is, and the marks that stand in for it.
//!
//! A small model copies a web address or an emoji badly. So such a thing is replaced by a mark before
//! the text is translated, and put back afterwards. Training teaches the model to carry the marks over
//! (`[augmentation] marks` of a recipe, `attentive-train`).
//!
//! ```text
//! text --hide--> text with marks --sentences--> (models) --> translation with marks --restore--> translation
//! ```
//!
//! `patterns` knows what is kept: web and mail addresses, emoji, `@handles` and `#tags` (not `#1`),
//! files and paths, IP addresses, phone numbers, IBANs, five digits and more without a period or a comma,
//! dates and times in digits, placeholders, markup, `` `code` ``. Small numbers are the model's.

mod patterns;
mod repair;

use std::ops::Range;

pub use repair::{Instead, Repaired, deviation, repair};

/// The marks, in the order in which they are used: characters that no text has (private use).
pub const MARKS: [char; 8] = [
    '\u{E000}', '\u{E001}', '\u{E002}', '\u{E003}', '\u{E004}', '\u{E005}', '\u{E006}', '\u{E007}',
];

/// A text in which marks stand for what is not to be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// What the model should see.
    pub text: String,
    /// What stood in the places of the marks, in the order of [`MARKS`].
    items: Vec<String>,
}

/// Replaces what is to be kept by [`MARKS`], each occurrence by the next of them. After the last mark the first is
/// used again: such marks are told apart by their order.
///
/// A text that already has one of these characters is not changed at all, nor is its translation.
///
/// ```
/// use attentive_text::keep::hide;
///
/// let hidden = hide("Siehe https://example.com/a. 😀");
/// assert_eq!(hidden.text, "Siehe \u{E000}. \u{E001}");
/// assert_eq!(hidden.restore("See \u{E000}. \u{E001}"), "See https://example.com/a. 😀");
/// ```
pub fn hide(text: &str) -> Hidden {
    let mut hidden = Hidden {
        text: String::with_capacity(text.len()),
        items: Vec::new(),
    };
    let mut done = 0;
    for (mark, found) in MARKS.into_iter().cycle().zip(spans(text)) {
        hidden.text.push_str(&text[done..found.start]);
        hidden.text.push(mark);
        hidden.items.push(text[found.clone()].to_string());
        done = found.end;
    }
    hidden.text.push_str(&text[done..]);
    hidden
}

/// Where what is to be kept stands, from left to right; nowhere in a text that has a mark of its own.
pub fn spans(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut done = if text.contains(MARKS) { text.len() } else { 0 };
    std::iter::from_fn(move || {
        let found = patterns::next(text, done)?;
        done = found.end;
        Some(found)
    })
}

impl Hidden {
    /// A text in which nothing is hidden.
    pub fn nothing(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            items: Vec::new(),
        }
    }

    /// What was hidden, in the order of its marks.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// Puts what was hidden into the places that the translation gave to the marks.
    ///
    /// Nothing is lost: what has no place any more comes at the end. Nothing is made up: a mark that
    /// comes a second time or was never given out is removed.
    pub fn restore(&self, translation: &str) -> String {
        if self.items.is_empty() && self.text.contains(MARKS) {
            return translation.to_string(); // The marks were the text's own.
        }
        let mut restored = String::with_capacity(translation.len());
        let mut waiting = Waiting::new(&self.items);
        let mut chars = translation.chars().peekable();
        while let Some(c) = chars.next() {
            if !MARKS.contains(&c) {
                restored.push(c);
                continue;
            }
            match waiting.take(c) {
                Some(item) => restored.push_str(item),
                // The removed mark had a space on each side, and one of them goes with it.
                None if ends_with_space(&restored) => {
                    chars.next_if(|next| next.is_whitespace());
                }
                None => {}
            }
        }
        for lost in waiting.rest() {
            if !ends_with_space(&restored) {
                restored.push(' ');
            }
            restored.push_str(lost);
        }
        restored
    }
}

/// Hidden things that have not come back yet.
#[derive(Debug)]
pub struct Waiting<'a> {
    items: &'a [String],
    /// The next item of each mark.
    next: [usize; MARKS.len()],
}

impl<'a> Waiting<'a> {
    /// All items of a [`Hidden`].
    pub fn new(items: &'a [String]) -> Self {
        Self {
            items,
            next: std::array::from_fn(|mark| mark),
        }
    }

    /// The next item that a mark stands for, if there is one.
    pub fn take(&mut self, mark: char) -> Option<&'a str> {
        let next = &mut self.next[MARKS.iter().position(|own| *own == mark)?];
        let item = self.items.get(*next)?;
        *next += MARKS.len();
        Some(item)
    }

    /// Those that are left, in their order.
    fn rest(self) -> impl Iterator<Item = &'a str> {
        let is_left = move |place: &usize| *place >= self.next[place % MARKS.len()];
        let places = (0..self.items.len()).filter(is_left);
        places.map(|place| &*self.items[place])
    }
}

/// Whether a word can be written at the end as it is.
fn ends_with_space(text: &str) -> bool {
    text.chars().next_back().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is hidden in a text.
    fn kept(text: &str) -> Vec<String> {
        hide(text).items
    }

    #[test]
    fn everything_that_is_copied_is_found_as_a_whole() {
        let table: [(&str, &[&str]); 51] = [
            (
                "Siehe https://example.com/a?b=c#d.",
                &["https://example.com/a?b=c#d"],
            ),
            (
                "(see http://en.wikipedia.org/wiki/Rust_(game)).",
                &["http://en.wikipedia.org/wiki/Rust_(game)"],
            ),
            ("„https://a.de/ü“ lesen", &["https://a.de/ü"]),
            ("[hier](https://a.de/x)!", &["https://a.de/x"]),
            ("Auf www.beispiel.de, sagt er", &["www.beispiel.de"]),
            ("example.com/x is down", &["example.com/x"]),
            ("Go to example.com.", &["example.com"]),
            (
                "http://localhost:8080 or localhost:8080/a",
                &["http://localhost:8080", "localhost:8080/a"],
            ),
            (
                "Schreib an max.muster+x@example.co.uk!",
                &["max.muster+x@example.co.uk"],
            ),
            ("<max@example.com>", &["max@example.com"]),
            ("Super 😀", &["😀"]),
            ("👍🏽👍🏽 ok", &["👍🏽👍🏽"]),
            ("die Familie 👨‍👩‍👧‍👦 ist da", &["👨‍👩‍👧‍👦"]),
            ("❤️ 🇩🇪🇬🇧 1️⃣!", &["❤️ 🇩🇪🇬🇧 1️⃣"]),
            ("🏴󠁧󠁢󠁥󠁮󠁧󠁿 wins", &["🏴󠁧󠁢󠁥󠁮󠁧󠁿"]),
            ("Hallo😀Welt😎", &["😀", "😎"]),
            ("Na :-) und du ;)", &[":-)", ";)"]),
            ("I <3 you", &["<3"]),
            (
                "Frag @tom_b oder @a@example.social.",
                &["@tom_b", "@a@example.social"],
            ),
            ("#schöner-Tag und #1", &["#schöner-Tag"]),
            (r"Öffne C:\x\y.txt, bitte", &[r"C:\x\y.txt"]),
            (r"\\server\teil\datei", &[r"\\server\teil\datei"]),
            ("cat /etc/hosts.", &["/etc/hosts"]),
            ("in ~/bilder und ./run", &["~/bilder", "./run"]),
            (
                "Lies report.pdf und src/lib.rs!",
                &["report.pdf", "src/lib.rs"],
            ),
            (
                "Ping 192.168.0.1:80 und 10.0.0.0/8",
                &["192.168.0.1:80", "10.0.0.0/8"],
            ),
            (
                "fe80::1 und 2001:db8::ff00:42:8329",
                &["fe80::1", "2001:db8::ff00:42:8329"],
            ),
            ("Ruf +49 (0)30 1234-567 an", &["+49 (0)30 1234-567"]),
            ("Tel. 030/1234567.", &["030/1234567"]),
            ("Call 555-123-4567 now", &["555-123-4567"]),
            (
                "IBAN DE89 3704 0044 0532 0130 00.",
                &["DE89 3704 0044 0532 0130 00"],
            ),
            ("Am 2024-05-01 um 14:30 Uhr", &["2024-05-01", "14:30"]),
            ("Am 24.12.2024 oder 5/1/24", &["24.12.2024", "5/1/24"]),
            ("Karte 1234 5678 9012 3456", &["1234 5678 9012 3456"]),
            ("Bestellung 4711081 und 10115 Berlin", &["4711081", "10115"]),
            ("Version v1.2.3 ist da", &["v1.2.3"]),
            (
                "Hallo {name}, {0} und {{ user }}",
                &["{name}", "{0}", "{{ user }}"],
            ),
            (
                "%s hat %d Dateien, %1$s, %(n)s, %.2f",
                &["%s", "%d", "%1$s", "%(n)s", "%.2f"],
            ),
            ("%-5d und %lu in %02X", &["%-5d", "%lu", "%02X"]),
            (
                "{n, plural, one {# Datei} other {{x} Dateien}} da",
                &["{n, plural, one {# Datei} other {{x} Dateien}}"],
            ),
            ("am {d, date, short} um {t}", &["{d, date, short}", "{t}"]),
            ("Setze $HOME und $x_1 für 5 $", &["$HOME", "$x_1"]),
            ("20 km und 5kg, 3,5 km, 10 °C", &["20 km", "5kg", "10 °C"]),
            ("Ein <b>fettes</b> Wort<br/>", &["<b>", "</b>", "<br/>"]),
            (
                r#"<a href="https://a.de/x y">hier</a>"#,
                &[r#"<a href="https://a.de/x y">"#, "</a>"],
            ),
            ("zehn&nbsp;Euro&#8230;", &["&nbsp;", "&#8230;"]),
            ("Tippe `ls -l` ein", &["`ls -l`"]),
            ("mailto:a@b.de", &["mailto:a@b.de"]),
            (
                "ftp://a.b/c und HTTPS://A.DE",
                &["ftp://a.b/c", "HTTPS://A.DE"],
            ),
            ("Nimm ${HOME} oder %PATH%", &["${HOME}", "%PATH%"]),
            ("Ich mag ©️ und 😀 nicht", &["©️", "😀"]),
        ];
        for (text, items) in table {
            assert_eq!(kept(text), items, "{text}");
        }
    }

    #[test]
    fn what_has_a_translation_is_not_hidden() {
        for text in [
            "3",
            "1,5",
            "3.14",
            "1.000.000",
            "1,000,000 people",
            "1.234.567.890",
            "1990",
            "am 3. Mai",
            "um 8.30 Uhr",
            "50 % der Leute",
            "100%ig sicher",
            "50%d",
            "#1",
            "C#",
            "und/oder",
            "er /sie",
            "a < b und c > d",
            "if a <b and c> d",
            "Das war gut.es regnet",
            "look.at that",
            "© 2024",
            "Tom & Jerry; oder",
            "z.B. so",
            "U.S.A.",
            "Ja: nein",
            "5:1 gewonnen",
            "in-text",
            "Das ist toll!",
            "Mr. Smith",
            "@ home",
            "3-2=1",
            "He said: (no)",
            "10.000 $",
            "1 000 000",
        ] {
            assert_eq!(kept(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn after_the_last_mark_the_first_is_used_again() {
        let text = "@a @b @c @d @e @f @g @h @i @j";
        let hidden = hide(text);
        assert_eq!(hidden.items().len(), 10);
        assert!(
            hidden.text.ends_with("\u{E007} \u{E000} \u{E001}"),
            "{}",
            hidden.text
        );
        assert_eq!(hidden.restore(&hidden.text), text);
        assert_eq!(
            hidden.restore("\u{E001} \u{E000}"),
            "@b @a @c @d @e @f @g @h @i @j"
        );
        assert_eq!(
            hidden.restore(&"\u{E000}".repeat(3)),
            "@a@i @b @c @d @e @f @g @h @j"
        );
    }

    #[test]
    fn items_go_where_the_translation_put_their_marks() {
        let hidden = hide("@eins und @zwei");
        assert_eq!(
            hidden.restore("\u{E001}, then\u{E000}."),
            "@zwei, then@eins."
        );
    }

    #[test]
    fn an_item_whose_mark_was_lost_comes_at_the_end() {
        let hidden = hide("@eins und @zwei");
        assert_eq!(hidden.restore("and \u{E001}."), "and @zwei. @eins");
        assert_eq!(hidden.restore(""), "@eins @zwei");
    }

    #[test]
    fn a_mark_that_comes_twice_or_was_never_given_out_is_removed() {
        let hidden = hide("Hallo @eins");
        assert_eq!(hidden.restore("Hi \u{E000} \u{E000} you"), "Hi @eins you");
        assert_eq!(hidden.restore("Hi \u{E005} \u{E000}!"), "Hi @eins!");
        assert_eq!(hide("Hallo").restore("Hello\u{E000}"), "Hello");
    }

    #[test]
    fn a_text_with_marks_of_its_own_comes_back_unharmed() {
        let text = "\u{E003} und https://a.de \u{E003}";
        let hidden = hide(text);
        assert_eq!(hidden.text, text);
        assert_eq!(
            hidden.restore("\u{E003} and \u{E001}"),
            "\u{E003} and \u{E001}"
        );
    }

    #[test]
    fn near_misses_do_not_take_forever() {
        // Each of these took minutes when a refused match could be long.
        for piece in ["a/", "0 ", ")", "1:", "ä/", "0.", "/a"] {
            let text = format!("www.a{0} {0}", piece.repeat(20_000));
            let hidden = hide(&text);
            assert_eq!(hidden.restore(&hidden.text), text);
        }
    }

    /// Pieces that patterns are made of, in any order: harder than random characters.
    fn typed() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "http://", "www.", "a", "Ü", ".", "/", "@", "#", "1", "23", ":", " ", "\n", "😀",
            "\u{200D}", "\u{FE0F}", "\u{20E3}", "🇩", "<", ">", "b", "=", "\"", "`", "{", "}", "%",
            "s", "&", ";", "(", ")", "\\", "C", "-", "~", "+49", "0", ".pdf", ".com", "\u{E000}",
            "©", "’", "…",
        ]);
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_is_hidden_comes_back_exactly(text in prop_oneof![any::<String>(), typed()]) {
            let hidden = hide(&text);
            prop_assert_eq!(hidden.restore(&hidden.text), text);
        }

        #[test]
        fn no_translation_loses_an_item_or_keeps_a_mark(text in typed(), translation in ".*\u{E000}?\u{E001}?.*") {
            let hidden = hide(&text);
            prop_assume!(!text.contains(MARKS));
            let restored = hidden.restore(&translation);
            prop_assert!(!restored.contains(MARKS));
            for item in hidden.items() {
                prop_assert!(restored.contains(item.as_str()), "{} in {}", item, restored);
            }
        }
    }
}
