//! Fonts: what a character is drawn with, how wide it is, and what to do if no font has it.
//!
//! DejaVu Sans (Latin, Greek, Cyrillic, Hebrew, Arabic and more) and an emoji font are part of the
//! program, so that a picture is the same everywhere. The system's fonts are asked only for characters
//! that these two lack, and what nobody has becomes a box and is reported: nothing vanishes.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb::{Database, ID, Source};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// Takes the place of characters that no font has.
pub const BOX: char = '□';

/// Fonts for a text, and which of its characters none of them has.
#[derive(Debug)]
pub struct Covering {
    /// The fonts.
    pub fonts: Arc<Database>,
    /// In order, each once.
    pub missing: Vec<char>,
}

/// Finds fonts for every character of a text.
pub fn covering(text: &str) -> Covering {
    let mut characters: Vec<char> = text.chars().filter(|c| needs_glyph(*c)).collect();
    characters.sort_unstable();
    characters.dedup();
    characters.retain(|character| !has(&OWN, *character));
    if characters.is_empty() {
        return Covering {
            fonts: OWN.clone(),
            missing: characters,
        };
    }
    characters.retain(|character| !has(&ALL, *character));
    Covering {
        fonts: ALL.clone(),
        missing: characters,
    }
}

/// How wide a text is at a size of 1, in the program's own font. Other fonts differ a little.
pub fn width(text: &str) -> f64 {
    static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
        FontRef::new(dejavu::sans::regular()).expect("a font that is part of the program")
    });
    let metrics = FONT.glyph_metrics(Size::new(1.0), LocationRef::default());
    let characters = FONT.charmap();
    let advance = |character: char| match characters.map(character) {
        Some(glyph) => metrics.advance_width(glyph).unwrap_or(0.6),
        None if !needs_glyph(character) => 0.0,
        // Emoji and Chinese characters are squares.
        None => 1.1,
    };
    text.chars().map(advance).map(f64::from).sum()
}

static OWN: LazyLock<Arc<Database>> = LazyLock::new(|| Arc::new(own()));

static ALL: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = own();
    fonts.load_system_fonts();
    Arc::new(fonts)
});

fn own() -> Database {
    let mut fonts = Database::new();
    for data in [
        dejavu::sans::regular(),
        dejavu::sans::bold(),
        epaint_default_fonts::NOTO_EMOJI_REGULAR,
    ] {
        fonts.load_font_source(Source::Binary(Arc::new(data)));
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    fonts
}

fn has(fonts: &Database, character: char) -> bool {
    fonts
        .faces()
        .any(|face| face_has(fonts, face.id, character))
}

fn face_has(fonts: &Database, id: ID, character: char) -> bool {
    let found = fonts.with_face_data(id, |data, index| {
        FontRef::from_index(data, index).is_ok_and(|font| font.charmap().map(character).is_some())
    });
    found.unwrap_or(false)
}

/// Joiners and variation selectors change their neighbors and are nothing themselves.
fn needs_glyph(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FE00}'..='\u{FE0F}' | '\u{00AD}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_alphabets_and_emoji_need_no_font_of_the_system() {
        for text in [
            "Ein Hund",
            "▁größe",
            "Собака",
            "σκύλος",
            "שלום",
            "مرحبا",
            "👍😀🚀",
            "□◌␣…→",
        ] {
            for character in text.chars() {
                assert!(has(&OWN, character), "{character:?} of {text}");
            }
        }
    }

    #[test]
    fn what_no_font_has_is_named() {
        // A private-use character, which fonts have no business with.
        let missing = covering("a\u{F8FE}b👍\u{10FFFD}").missing;
        assert!(missing.contains(&'\u{10FFFD}'), "{missing:?}");
        assert!(
            !missing.contains(&'a') && !missing.contains(&'👍'),
            "{missing:?}"
        );
    }

    #[test]
    fn wide_texts_are_wider() {
        assert!(width("WWW") > width("iii"));
        assert!((width("ab") - width("a") - width("b")).abs() < 1e-6);
        assert_eq!(width(""), 0.0);
    }
}
