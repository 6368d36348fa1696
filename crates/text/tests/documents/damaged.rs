//! Random text and damaged archives: an error or a document, never a panic, and never a byte that was lost.

use std::path::Path;

use attentive_text::documents::{Document, Format};
use attentive_text::markup::Marked;

use super::archives::{docx, odt};
use super::{check, in_rot13};

/// Random numbers with a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn char(&mut self) -> char {
        let limit = [0x80, 0x80, 0x250, 0x3000, 0x11_0000][self.below(5)];
        char::from_u32(self.below(limit) as u32).unwrap_or('\u{FFFD}')
    }
}

/// What files of a format are made of.
fn pieces(format: Format) -> &'static [&'static str] {
    match format {
        Format::Text => &[
            "\n",
            "\r\n",
            "  ",
            "- ",
            "word ",
            "word and another word ",
            "\u{FEFF}",
            ".",
        ],
        Format::Markdown => &[
            "\n",
            "\n\n",
            "# ",
            "- ",
            "  ",
            "> ",
            "*",
            "**",
            "_",
            "`",
            "```\n",
            "[",
            "](x)",
            "][a]",
            "]",
            "![",
            "<b>",
            "</b>",
            "<p>",
            "| a | b |\n|---|---|\n",
            "|",
            "&amp;",
            "\\",
            "  \n",
            "---\n",
            "[a]: x\n",
            "1. ",
            "[^1]",
            "~~",
            "word ",
            "\t",
            "<!--",
            "-->",
            "<br>",
            "<https://x.y>",
            "{#id}",
            "\u{FEFF}",
        ],
        Format::Html | Format::Xml => &[
            "<p>",
            "</p>",
            "<b>",
            "</b>",
            "<br/>",
            "<a href=\"x\" title='y'>",
            "</a>",
            "&amp;",
            "&lt",
            "&#x41;",
            "<!--",
            "-->",
            "<script>",
            "</script>",
            "<",
            ">",
            "\"",
            "word ",
            "<pre>",
            "</pre>",
            "<![CDATA[",
            "]]>",
            "<?x",
            "?>",
            "\n",
        ],
        Format::Srt => &[
            "1\n",
            "00:00:01,000 --> 00:00:02,000\n",
            "\n",
            "\n\n",
            "- ",
            "<i>",
            "</i>",
            "{\\an8}",
            "word ",
            "word,",
            "<",
            "{\\",
            "\r\n",
            "00:00:02,000 --> 00:00:03,000\nword\n\n",
        ],
        Format::Vtt => &[
            "WEBVTT\n\n",
            "00:01.000 --> 00:02.000 align:start\n",
            "\n",
            "\n\n",
            "NOTE x\n",
            "<v Bob>",
            "<c.x>",
            "</c>",
            "&amp;",
            "&lt;",
            "&",
            "word ",
            "<00:01.500>",
            "-",
            "\r\n",
        ],
        Format::Po => &[
            "msgid ",
            "\"\"\n",
            "\"word\"\n",
            "msgstr ",
            "msgstr[0] ",
            "msgid_plural ",
            "msgctxt ",
            "#, c-format\n",
            "#, fuzzy\n",
            "#~ msgid \"x\"\n",
            "\n",
            "\"a\\n\"\n",
            "\"\\\"\"\n",
            "msgid \"word\"\nmsgstr \"\"\n",
            "# x\n",
            "\"<b>x</b>\"\n",
            "msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\n",
            "\"nplurals=3; charset=UTF-8\\n\"\n",
        ],
        Format::Json => &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"a\"",
            "\"a b\"",
            "\"\\u00e9\"",
            "\"\\n\"",
            "1",
            "null",
            "\"a\": ",
            "{\"a\": \"word\"}",
            "\"<b>x</b>\"",
            "\\",
            "\"",
            "\n",
        ],
        Format::Yaml => &[
            "a: ",
            "b: ",
            "- ",
            "\n",
            "  ",
            "word",
            "\"a b\"",
            "'it''s'",
            "|\n",
            ">-\n",
            "    text\n",
            "# x\n",
            "[a, b]",
            "{a: b}",
            "&x ",
            "*x",
            "!t ",
            ": ",
            "---\n",
            "\n  c: word\n",
            "  - word\n",
            "\t",
            "a: |\n  word\n  word\n",
            "\u{FEFF}",
        ],
        Format::Xliff => &[
            "<xliff version=\"1.2\">",
            "<xliff version=\"2.0\">",
            "</xliff>",
            "<file>",
            "</file>",
            "<trans-unit>",
            "</trans-unit>",
            "<segment>",
            "</segment>",
            "<source>",
            "</source>",
            "<target>",
            "</target>",
            "<target/>",
            "<g id='1'>",
            "</g>",
            "<x/>",
            "word ",
            "&amp;",
            "&x;",
            "<trans-unit><source>word <g>x</g></source></trans-unit>",
            "\n",
            "<segment state='initial'><source>word<ph/></source></segment>",
        ],
        Format::Docx | Format::Odt => &[],
    }
}

/// A random text, which often looks like the format.
fn random_text(random: &mut Random, format: Format) -> String {
    let pieces = pieces(format);
    let mut text = match (format, random.below(2)) {
        (Format::Vtt, 0) => "WEBVTT\n\n".to_owned(),
        (Format::Xliff, 0) => "<xliff version=\"1.2\">".to_owned(),
        (Format::Srt, 0) => "1\n00:00:01,000 --> 00:00:02,000\n".to_owned(),
        (Format::Json, 0) => "{\"a\": \"word\", \"b\": \"".to_owned(),
        _ => String::new(),
    };
    for _ in 0..random.below(30) {
        match random.below(3) {
            0 => text.push(random.char()),
            1 => text.extend((0..random.below(6)).map(|_| (b'a' + random.below(26) as u8) as char)),
            _ => text.push_str(pieces[random.below(pieces.len())]),
        }
    }
    match (format, text.starts_with("<xliff"), text.starts_with("{\"a")) {
        (Format::Xliff, true, _) => text.push_str("</xliff>"),
        (Format::Json, _, true) => text.push_str("\"}"),
        _ => {}
    }
    text
}

#[test]
fn random_text_of_every_format_is_kept_or_refused() {
    for format in Format::all().filter(|format| !format.is_archive()) {
        let mut random = Random(20);
        let mut read = 0;
        for number in 0..10_000 {
            let text = random_text(&mut random, format);
            let Ok(document) = Document::read(Path::new("x"), text.clone().into_bytes(), format)
            else {
                continue;
            };
            read += 1;
            let same = document
                .write(document.texts(), None)
                .expect("it can be written");
            assert_eq!(String::from_utf8_lossy(&same), text, "{format} {number}");
            let new = document.write(&in_rot13(document.texts()), Some("en"));
            let new = new.expect("it can be written");
            let again = Document::read(Path::new("x"), new.clone(), format);
            let again = again.unwrap_or_else(|error| {
                panic!(
                    "{format} {number}: {error}\n{text:?}\n{:?}",
                    String::from_utf8_lossy(&new)
                )
            });
            // Lines that were wrapped are wrapped elsewhere.
            let words = |texts: &[Marked]| -> Vec<String> {
                let words = texts.iter().map(Marked::text).collect::<Vec<_>>().join(" ");
                words.split_whitespace().map(str::to_owned).collect()
            };
            if matches!(format, Format::Json | Format::Yaml | Format::Text) {
                let (expected, found) = (in_rot13(document.texts()), again.texts());
                let new = String::from_utf8_lossy(&new);
                assert_eq!(
                    words(&expected),
                    words(found),
                    "{format} {number}: {text:?}\n{new:?}"
                );
            }
        }
        println!("{format}: {read} of 10000 are documents");
        assert!(read >= 100, "{format}: only {read} are documents");
    }
}

#[test]
fn damaged_archives_are_refused_or_kept() {
    for (format, whole) in [(Format::Docx, docx()), (Format::Odt, odt())] {
        let mut random = Random(21);
        let mut read = 0;
        for _ in 0..10_000 {
            let mut bytes = whole.clone();
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => {
                    let start = random.below(bytes.len());
                    let end = bytes.len().min(start + random.below(64));
                    bytes.drain(start..end);
                }
                _ => {
                    for _ in 0..=random.below(8) {
                        let place = random.below(bytes.len());
                        bytes[place] = random.next() as u8;
                    }
                }
            }
            let Ok(document) = Document::read(Path::new("x"), bytes.clone(), format) else {
                continue;
            };
            read += 1;
            assert!(
                document
                    .write(document.texts(), None)
                    .expect("it is copied")
                    == bytes
            );
            // A damaged picture may make this an error.
            let _ = document.write(&in_rot13(document.texts()), None);
        }
        println!("{format}: {read} of 10000 can be read");
        check(Path::new("x"), &whole, format).expect("it is whole");
    }
}
