//! What in a text is copied and not translated: addresses, files, emoji, codes, markup.
//!
//! [`super::hide`] asks [`next`] for one find after the other and puts marks in their places. Finding
//! too much costs a word its translation, finding too little costs an address its meaning; where a text
//! can be read both ways (`1.000.000`, `8.30`, `look.at`) it is left to the model.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The first thing at or after `from` that is to be kept.
pub(super) fn next(text: &str, from: usize) -> Option<Range<usize>> {
    if is_plain(&text[from..]) {
        return None;
    }
    let mut at = from;
    while let Some(found) = ALL.captures_at(text, at) {
        // Exactly one of the groups took part in the match.
        let hit = KINDS
            .iter()
            .find_map(|kind| found.name(kind.name).map(|hit| (kind, hit)));
        let (kind, hit) = hit?;
        if let Some(end) = kind.accepts(text, hit.range()) {
            return Some(hit.start()..end);
        }
        at = after_first_char(text, hit.start());
    }
    None
}

/// Whether a text has only letters of European languages and the punctuation of sentences, in which no kind can
/// be found. Most texts are like this, and compiling the patterns takes longer than translating a short one.
fn is_plain(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let plain = match c {
            'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' => true,
            ' ' | '\n' | ',' | '!' | '?' | '\'' | '"' | '(' | ')' | '-' => true,
            '–' | '—' | '‘' | '’' | '‚' | '“' | '”' | '„' | '…' | '«' | '»' => {
                true
            }
            '.' => chars.peek().is_none_or(|next| next.is_whitespace()),
            _ => false,
        };
        if !plain {
            return false;
        }
    }
    true
}

/// One kind of thing: its pattern, and what a regular expression cannot say about it.
struct Kind {
    name: &'static str,
    pattern: &'static str,
    /// What may stand before it.
    before: Before,
    /// Where a match really ends, if it is one at all. A pattern whose matches can be refused must be
    /// short, or a text of many near misses would take time that grows with its square.
    end: fn(&str) -> Option<usize>,
}

enum Before {
    Anything,
    /// No letter, digit or underscore: the middle of a word is not the start of an address.
    NoWord,
    /// As [`Before::NoWord`], and no sign that makes it the end of a longer number.
    NoNumber,
    /// White space or nothing.
    Space,
}

impl Kind {
    fn accepts(&self, text: &str, range: Range<usize>) -> Option<usize> {
        let before = text[..range.start].chars().next_back();
        let fits = match self.before {
            Before::Anything | Before::NoWord => true, // The expression has seen to it.
            Before::NoNumber => !before.is_some_and(|c| matches!(c, '.' | ',')),
            Before::Space => before.is_none_or(char::is_whitespace),
        };
        let length = (self.end)(&text[range.clone()]).filter(|length| *length > 0)?;
        fits.then_some(range.start + length)
    }
}

/// The kinds in the order in which they are tried at a place: the first that matches wins.
static KINDS: [Kind; 23] = [
    // Each stands for something that is not text, see `markup::Bare`.
    kind(
        "private",
        r"[\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}]",
        Before::Anything,
        all,
    ),
    kind("code", r"`[^`\n]+`", Before::Anything, all),
    kind("comment", r"<!--(?s:.)*?-->", Before::Anything, all),
    kind(
        "element",
        r#"</?[A-Za-z][\w:-]*(?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s<>"']+))*\s*/?>"#,
        Before::Anything,
        all,
    ),
    kind(
        "entity",
        r"&(?:\#\d+|\#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]+);",
        Before::Anything,
        all,
    ),
    kind(
        "placeholder",
        // ICU's arguments can hold messages that hold arguments.
        concat!(
            r"\{\{[^{}\n]*\}\}|\$?\{[\w.:-]*\}|%\(\w+\)[sdif]\b|%[A-Z_]+%|\$[A-Za-z_]\w*|",
            r"\{\w+,\s*[a-z]+\s*(?:,(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)?\}",
        ),
        Before::Anything,
        all,
    ),
    // Not `50 %d`: a percentage has its number before the sign.
    kind(
        "format",
        r"%(?:\d+\$)?[-+0#]?\d*(?:\.\d+)?(?:hh|ll|[hlzjt])?[sdiufgGeExXocp@]\b",
        Before::NoWord,
        all,
    ),
    kind(
        "url",
        r#"(?i:(?:https?|ftps?|file)://|www\.)[^\s<>"“”„«»`。，、！？「」（）《》।]+|(?i:mailto:|tel:)[^\s<>"“”„«»`。，、！？「」（）《》।]+"#,
        Before::NoWord,
        without_punctuation,
    ),
    kind(
        "email",
        r"\w[\w.%+-]*@[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}",
        Before::NoWord,
        all,
    ),
    kind(
        "windows_path",
        r#"[A-Za-z]:\\[^\s<>"|?*“”„«»]*|[A-Za-z]:/[^\s<>"|?*“”„«»/][^\s<>"|?*“”„«»]*|\\\\[\w.-]+\\[^\s<>"|?*“”„«»]*"#,
        Before::NoWord,
        without_punctuation,
    ),
    kind(
        "domain",
        // Without a path only ends that are no words: `look.at` may be a forgotten space.
        r#"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d+)?/[^\s<>"“”„«»`]*|(?:[A-Za-z0-9-]+\.)+(?i:com|org|net|edu|gov|de|ch|eu|io|info|uk|fr|dev|app)\b|localhost:\d+(?:/[^\s<>"“”„«»`]*)?"#,
        Before::NoWord,
        without_punctuation,
    ),
    kind(
        "file",
        concat!(
            r"(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.(?i:pdf|txt|md|rtf|docx?|xlsx?|pptx?|od[tsp]|csv|tsv|",
            r"jsonl?|xml|ya?ml|toml|ini|cfg|conf|html?|css|jsx?|tsx?|py|rs|java|cpp|hpp|go|rb|php|sh|",
            r"bat|ps1|sql|log|jpe?g|png|gif|svg|webp|bmp|tiff?|mp[34]|wav|flac|ogg|avi|mov|mkv|zip|",
            r"tar|t?gz|bz2|7z|rar|exe|dll|msi|apk|iso|dmg|epub|safetensors)\b",
        ),
        Before::NoWord,
        all,
    ),
    // One segment alone (`/sie`) is more often a slash between words.
    kind(
        "unix_path",
        r"(?:~|\.\.?)/[\w.@+/-]+|/[\w.@+-]+(?:/[\w.@+-]+)+/?",
        Before::NoWord,
        without_punctuation,
    ),
    kind(
        "handle",
        r"@[\p{L}_]\w*(?:@[\w-]+(?:\.[\w-]+)+)?",
        Before::NoWord,
        all,
    ),
    // `#1` is a number and not a tag: it has a translation.
    kind("tag", r"\#[\p{L}_][\w-]*", Before::NoWord, all),
    kind(
        "iban",
        r"[A-Z]{2}\d{2}(?:[\ \u{A0}]?[A-Z0-9]{4}){2,7}(?:[\ \u{A0}]?[A-Z0-9]{1,3})?\b",
        Before::NoWord,
        all,
    ),
    kind(
        "date_or_time",
        // `24.12.2024` and `14:30`, not `24.12.` and `14.30`: those could be numbers.
        r"\d{4}-\d{2}-\d{2}(?:[T\ ]\d{2}:\d{2}(?::\d{2})?Z?)?\b|\d{1,2}\.[\ ]?\d{1,2}\.[\ ]?\d{4}\b|\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})\b|\d{1,2}:\d{2}(?::\d{2})?\b",
        Before::NoWord,
        all,
    ),
    kind(
        "ip",
        r"\d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d{1,5})?\b|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{0,36}[0-9A-Fa-f]\b",
        Before::NoWord,
        ip_address,
    ),
    kind(
        "phone",
        r"(?:\+\d|\(?0)[\d\ \u{A0}()/.-]{5,24}\d\b|\(?\d{3}\)?[\ -]\d{3}-\d{4}\b",
        Before::NoWord,
        phone_number,
    ),
    // Plain digits, and groups of four as on a bank card; `10.000` has a translation, `10000` has not.
    kind(
        "digits",
        r"\d{5,}\b|\d{4}(?:\ \d{4}){2,}\b|v\d+(?:\.\d+)+\b",
        Before::NoWord,
        all,
    ),
    // Not `3,5 km`, which is `3.5 km` in other languages.
    kind(
        "measure",
        r"\d+[\ \u{A0}]?(?:[kcmµn]?m|[kmµ]?g|[mc]?l|km/h|m/s|°[CF]|[kMGT]i?B|[kMG]?Hz|[kMG]?W|kWh|mAh|px|dpi|ms)\b",
        Before::NoNumber,
        all,
    ),
    kind("emoji", EMOJI_RUN, Before::Anything, all),
    kind(
        "emoticon",
        r"[:;=]['’]?-?[)(\]\[DPp3*|/\\]+(?:\s|$)|<3+(?:\s|$)|\^_?\^(?:\s|$)",
        Before::Space,
        without_space,
    ),
];

const fn kind(
    name: &'static str,
    pattern: &'static str,
    before: Before,
    end: fn(&str) -> Option<usize>,
) -> Kind {
    Kind {
        name,
        pattern,
        before,
        end,
    }
}

/// Emoji and what joins them: skin tones, selectors, joiners, flags, keycaps, flags of regions. Signs
/// that are pictures to Unicode and letters to people (`©`, `™`) are emoji only where the text says so.
const EMOJI_RUN: &str = r"(?x:
    (?: [0-9\#*] \x{FE0F}? \x{20E3}
      | \p{Regional_Indicator}{2}
      | (?: [\p{Extended_Pictographic}--[©®™‼⁉]] | [©®™‼⁉]\x{FE0F} )
        [\p{Emoji_Modifier}\x{FE0F}\x{20E3}\x{E0020}-\x{E007F}]*
        (?: \x{200D} \p{Extended_Pictographic} [\p{Emoji_Modifier}\x{FE0F}]* )*
    )
    (?: [\ ]?
      (?: [0-9\#*] \x{FE0F}? \x{20E3}
        | \p{Regional_Indicator}{2}
        | [\p{Extended_Pictographic}--[©®™‼⁉]]
          [\p{Emoji_Modifier}\x{FE0F}\x{20E3}\x{E0020}-\x{E007F}]*
          (?: \x{200D} \p{Extended_Pictographic} [\p{Emoji_Modifier}\x{FE0F}]* )*
      )
    )*)";

/// All kinds as one expression, so that the first place in the text wins and not the first kind.
static ALL: LazyLock<Regex> = LazyLock::new(|| {
    let group = |kind: &Kind| {
        let before = match kind.before {
            Before::NoWord | Before::NoNumber => r"\b{start-half}",
            Before::Anything | Before::Space => "",
        };
        format!("(?P<{}>{before}(?:{}))", kind.name, kind.pattern)
    };
    let pattern: Vec<String> = KINDS.iter().map(group).collect();
    Regex::new(&pattern.join("|")).expect("the patterns are constants, and a test compiles them")
});

fn all(found: &str) -> Option<usize> {
    Some(found.len())
}

fn without_space(found: &str) -> Option<usize> {
    Some(found.trim_end().len())
}

/// The sentence's own punctuation is not part of an address: `(see www.example.com/a_(b)).`
fn without_punctuation(found: &str) -> Option<usize> {
    // How many brackets of each kind were closed and never opened.
    let mut unopened = BRACKETS.map(|(open, close)| {
        found.matches(close).count() as i64 - found.matches(open).count() as i64
    });
    let mut address = found;
    while let Some(last) = address.chars().next_back() {
        match BRACKETS.iter().position(|(_, close)| *close == last) {
            Some(kind) if unopened[kind] > 0 => unopened[kind] -= 1,
            None if ".,;:!?…'’‘*_".contains(last) => {}
            _ => break,
        }
        address = &address[..address.len() - last.len_utf8()];
    }
    Some(address.len())
}

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

/// Four numbers up to 255, or what IPv6 allows; a port or a prefix length may follow the former.
fn ip_address(found: &str) -> Option<usize> {
    let address = found
        .split_once('/')
        .or_else(|| found.split_once(':').filter(|_| found.contains('.')))
        .map_or(found, |(address, _)| address);
    let is_address = address.parse::<Ipv4Addr>().is_ok() || address.parse::<Ipv6Addr>().is_ok();
    is_address.then_some(found.len())
}

fn phone_number(found: &str) -> Option<usize> {
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    (7..=15).contains(&digits).then_some(found.len())
}

fn after_first_char(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_are_plain_and_what_is_kept_is_not() {
        for plain in ["", "Guten Morgen.\n", "„Ça va?“ (Él dijo no) – So…"] {
            assert!(is_plain(plain), "{plain}");
        }
        for kept in [
            "siehe a.de",
            "um 8",
            "x@y",
            "Ⓜ",
            "©\u{FE0F}",
            "www.x",
            "a/b",
        ] {
            assert!(!is_plain(kept), "{kept}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn no_pattern_matches_a_plain_text(
            text in r#"([A-Za-zäßéÀ-ɏ ,!?'"()\-–—‘’‚“”„…«»\n]|\.|www\.|localhost|de|mailto|\PC){0,12}"#,
        ) {
            prop_assert!(!is_plain(&text) || !ALL.is_match(&text), "{text:?}");
        }
    }
}
