//! HTML and XML: what is text in them, what comes back, and that nothing is lost whatever they are.

use std::collections::BTreeMap;

use attentive_text::markup::{Bare, Marked, Outline, Page, Part, Syntax, XmlTags};
use proptest::prelude::*;

/// The texts of a page in a small notation: `[` and `]` are tags, `*` is a point, `~...~` is verbatim.
fn texts(source: &str, syntax: &Syntax) -> Vec<String> {
    let shown = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Verbatim(text) => format!("~{text}~"),
        Part::Open(_) => "[".to_owned(),
        Part::Close(_) => "]".to_owned(),
        Part::Point(_) => "*".to_owned(),
    };
    let page = Page::read(source, syntax);
    let text = |text: &Marked| text.parts.iter().map(shown).collect();
    page.texts().iter().map(text).collect()
}

fn xml() -> Syntax {
    Syntax::Xml(XmlTags::default())
}

#[test]
fn blocks_are_texts_and_inline_tags_are_part_of_them() {
    let table: &[(&str, &[&str])] = &[
        ("Hallo", &["Hallo"]),
        (
            "<p>Guten <b>Morgen</b>, Welt!</p>",
            &["Guten [Morgen], Welt!"],
        ),
        ("<p>Eins<p>Zwei <em>x</em>", &["Eins", "Zwei [x]"]),
        ("<ul><li>a<li><b>b</b></ul>", &["a", "b"]),
        ("<h1> \n Ein\n   Titel </h1>", &["Ein Titel"]),
        ("eins<br>zwei<br/>drei", &["eins", "zwei", "drei"]),
        ("a <img src=x> b", &["a * b"]),
        ("<p><img src=x> b <!-- c --></p>", &["b"]),
        (
            "Nimm <code>a &lt; b</code> so",
            &["Nimm ~<code>a &lt; b</code>~ so"],
        ),
        ("<pre>x <b>y</b>\n</pre>z", &["z"]),
        (
            "A <span translate=\"no\">B <i>c</i></span> d",
            &["A ~<span translate=\"no\">B <i>c</i></span>~ d"],
        ),
        ("<div class='x notranslate'>A<div>B</div></div>C", &["C"]),
        ("<p translate=no>A<p>B", &["B"]),
        ("<script>if (a < b) '<p>x</p>'</script>y", &["y"]),
        ("a<script>b</script>c", &["a*c"]),
        ("x <style>p { }</style >", &["x"]),
        ("&Uuml;ber &amp; &zwj; &nbsp;x", &["Über & ~&zwj;~ \u{A0}x"]),
        ("3 < 4 und a<b", &["3 < 4 und a"]),
        ("1 <2 & x", &["1 <2 & x"]),
        ("<b>a<p>b</b>c</p>", &["a", "b", "c"]),
        ("x <b><i>y</b> z</i>", &["x", "y", "z"]),
        ("<a><b>Alles</b></a>", &["Alles"]),
        ("<p>1 2 3</p><p>&nbsp;</p><p>...</p>", &[]),
        (
            "<title>T</title><meta name=description content=\"D e\"><img alt='Ein Bild'>",
            &["T", "D e", "Ein Bild"],
        ),
        (
            "<input type=submit value=\"Los\"><input value=\"nicht\">",
            &["Los"],
        ),
        (
            "<!DOCTYPE html><html><head></head><body>x</body></html>",
            &["x"],
        ),
        ("a<b x=\"", &["a"]),
        ("a <!-- b", &["a"]),
        ("<my-tag>a</my-tag> b", &["[a] b"]),
        ("<SPAN>a</span> B", &["[a] B"]),
        ("a<svg><text>b</text></svg> c", &["a* c"]),
        ("<textarea>a</textarea>b", &["b"]),
        ("", &[]),
    ];
    for (source, expected) in table {
        assert_eq!(texts(source, &Syntax::Html), *expected, "{source}");
    }
}

#[test]
fn elements_of_xml_are_texts_unless_they_stand_beside_text() {
    let source = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x \"<b>\">]><doc><t>Ein <e>Titel</e></t><t><e>Zwei</e></t>\
                  <x/><k>K</k></doc>";
    assert_eq!(texts(source, &xml()), ["Ein [Titel]", "Zwei", "K"]);
    let with = |tags: XmlTags| {
        texts(
            "Ein <a>Satz <k>mit</k></a> <b>Teilen</b>.",
            &Syntax::Xml(tags),
        )
    };
    assert_eq!(with(XmlTags::default()), ["Ein [Satz [mit]] [Teilen]."]);
    let list = |name: &str| vec![name.to_owned()];
    let splitting = XmlTags {
        splitting: list("b"),
        ..XmlTags::default()
    };
    assert_eq!(with(splitting), ["Ein [Satz [mit]]", "Teilen"]);
    let ignored = XmlTags {
        ignored: list("k"),
        ..XmlTags::default()
    };
    assert_eq!(with(ignored), ["Ein [Satz ~<k>mit</k>~] [Teilen]."]);
    let source = "<a><p>Eins</p><p>Zwei</p></a>";
    let never = XmlTags {
        non_splitting: list("p"),
        ..XmlTags::default()
    };
    assert_eq!(texts(source, &Syntax::Xml(never)), ["[Eins][Zwei]"]);
    let listed = XmlTags {
        outline: Outline::Listed,
        ..XmlTags::default()
    };
    assert_eq!(texts(source, &Syntax::Xml(listed)), ["[Eins][Zwei]"]);
    assert_eq!(
        texts("a <![CDATA[<b>]]> c", &xml()),
        ["a ~<![CDATA[<b>]]>~ c"]
    );
}

#[test]
fn translations_are_written_where_their_texts_were() {
    let page = "<h1 title='A &amp; b'>\n  Ein  <b class=x>Titel</b>\n</h1>\n<p>F&uuml;r &lt;dich&gt;</p><p>5 &times; 6</p>";
    let read = Page::read(page, &Syntax::Html);
    let mut texts = read.texts().to_vec();
    assert_eq!(read.write(&texts), page);
    for part in texts.iter_mut().flat_map(|text| &mut text.parts) {
        if let Part::Text(text) = part {
            *text = text.to_uppercase();
        }
    }
    let expected = "<h1 title='A &amp; B'>\n  EIN <b class=x>TITEL</b>\n</h1>\n<p>FÜR &lt;DICH&gt;</p><p>5 &times; 6</p>";
    assert_eq!(read.write(&texts), expected);
    assert_eq!(read.write(&[]), page);
}

#[test]
fn quotes_of_attributes_are_escaped() {
    let read = Page::read("<img alt='it'><img alt=\"it\">", &Syntax::Html);
    let new = ["it's \"x\"", "it's \"x\""].map(Marked::plain);
    assert_eq!(
        read.write(&new),
        "<img alt='it&#39;s \"x\"'><img alt=\"it's &quot;x&quot;\">"
    );
}

#[test]
fn hostile_pages_take_no_longer_for_their_length() {
    let pieces = [
        "<b>",
        "</b>",
        "<",
        "<!",
        "<?",
        "<![",
        "<!--",
        "<b \"",
        "<b a='",
        "&",
        "&#",
        "<b></i>",
        "<pre>",
        "<code>",
        "<p>",
        "<script>",
        "</",
        "<a><b></a></b>",
        "<!x[>",
        "<code><b>",
        "</p>",
        "]]>",
        "<b>a ",
        "x <br>",
        "<svg>",
        "<a1>",
        "<i translate=no>",
        "<li translate=no>",
    ];
    for piece in pieces {
        for end in ["", "Hallo", "</b>"] {
            let source = piece.repeat(30_000) + end;
            for syntax in [Syntax::Html, xml()] {
                let page = Page::read(&*source, &syntax);
                assert!(page.write(page.texts()) == source, "{piece}");
                for text in page.texts() {
                    let bare = Bare::of(text);
                    let found = bare.restore(bare.text(), None);
                    assert_eq!(found.marked.parts.len(), text.parts.len(), "{piece}");
                }
            }
        }
    }
}

/// Pieces that pages are made of, in any order: harder than random characters.
fn typed() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "/>",
        "<b>",
        "</b>",
        "<i class=\"x\">",
        "</i>",
        "<p>",
        "</p>",
        "<br>",
        "<!--",
        "-->",
        "<code>",
        "</code>",
        "<script>",
        "</script>",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "<!DOCTYPE",
        "&amp;",
        "&",
        ";",
        "&#160;",
        "&x;",
        "a",
        "Wort",
        " ",
        "\n",
        "\u{A0}",
        "ü",
        "日本",
        "=",
        "\"",
        "'",
        "<img alt=\"b\">",
        "<span translate=no>",
        "</span>",
        "\u{F0000}",
        "\u{E000}",
        "\u{301}",
        "🇩",
        ".",
        "<li>",
        "<pre>",
        "</pre>",
        "<td title='x y'>",
        "\0",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

/// How often each tag occurs.
fn tags(parts: &[Part]) -> BTreeMap<String, usize> {
    let mut tags = BTreeMap::new();
    for part in parts.iter().filter(|part| !matches!(part, Part::Text(_))) {
        *tags.entry(format!("{part:?}")).or_default() += 1;
    }
    tags
}

fn is_well_nested(parts: &[Part]) -> bool {
    let mut open = Vec::new();
    parts.iter().all(|part| match part {
        Part::Open(number) => {
            open.push(*number);
            true
        }
        Part::Close(number) => open.pop() == Some(*number),
        _ => true,
    }) && open.is_empty()
}

fn syntax() -> impl Strategy<Value = Syntax> {
    prop_oneof![Just(Syntax::Html), Just(xml())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn whatever_the_page_nothing_of_it_is_lost(source in prop_oneof![any::<String>(), typed()], syntax in syntax()) {
        let page = Page::read(&*source, &syntax);
        prop_assert_eq!(page.write(page.texts()), &*source);
        for text in page.texts() {
            prop_assert!(is_well_nested(&text.parts), "{:?}", text);
            // A model that copies: the same text, the same tags in the same places.
            let bare = Bare::of(text);
            let units = attentive_text::markup::units(bare.text()).len();
            let links: Vec<_> = (0..units).map(|unit| (unit, unit)).collect();
            let found = bare.restore(bare.text(), Some(&links));
            // White space beside a comment may become one space.
            let (found_text, own) = (found.marked.text(), text.text());
            prop_assert!(found_text.split_whitespace().eq(own.split_whitespace()), "{:?}", found);
            prop_assert_eq!(tags(&found.marked.parts), tags(&text.parts));
            prop_assert!(is_well_nested(&found.marked.parts), "{:?}", found);
        }
    }

    #[test]
    fn whatever_the_translation_every_tag_comes_back_once_and_well_nested(
        source in typed(),
        translation in "([a-z]{1,3}|[ .!,]){0,30}",
        links in prop::collection::vec((0_usize..20, 0_usize..20), 0..40),
        known in any::<bool>(),
    ) {
        for text in Page::read(source, &Syntax::Html).texts() {
            let bare = Bare::of(text);
            let found = bare.restore(&translation, known.then_some(&links));
            let mut expected = tags(&text.parts);
            expected.retain(|tag, _| !tag.starts_with("Verbatim"));
            prop_assert_eq!(tags(&found.marked.parts), expected);
            prop_assert!(is_well_nested(&found.marked.parts), "{:?}", found);
            let is_letter = |c: &char| !c.is_whitespace();
            let (shown, whole) = (found.marked.text(), &translation);
            prop_assert!(shown.chars().filter(is_letter).eq(whole.chars().filter(is_letter)));
        }
    }
}
