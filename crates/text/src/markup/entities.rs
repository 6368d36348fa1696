//! Character references: `&amp;`, `&#8230;`, and the other way around.
//!
//! Only names that texts often have are decoded, so that the model sees characters. A name that is not in the list
//! is no loss: [`super::page`] leaves the reference as it is.

/// A reference at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// A character, and the length of its reference.
    Character(char, usize),
    /// Something else with this length that a browser may decode.
    Unknown(usize),
    /// An ampersand.
    None,
}

/// Reads what begins with `&`.
pub(super) fn decode(text: &str) -> Reference {
    let bytes = text.as_bytes();
    let name = bytes[1..]
        .iter()
        .take(LONGEST)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#');
    let end = 1 + name.count();
    let name = &text[1..end];
    let ended = bytes.get(end) == Some(&b';');
    let length = end + usize::from(ended);
    let number = |digits: &str, base| {
        let character = u32::from_str_radix(digits, base)
            .ok()
            .and_then(char::from_u32);
        let usual = character.filter(|c| !c.is_control() || c.is_whitespace());
        usual.filter(|_| ended)
    };
    let character = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => number(digits, 16),
            None => number(digits, 10),
        },
        None => named(name).filter(|_| ended),
    };
    match character {
        Some(character) => Reference::Character(character, length),
        None if name.is_empty() || (!ended && named(name).is_none() && !name.starts_with('#')) => {
            Reference::None
        }
        None => Reference::Unknown(length),
    }
}

/// No name is longer.
const LONGEST: usize = 32;

/// Writes a text; a quote is what it stands in, if it is the value of an attribute.
pub(super) fn encode(text: &str, quote: Option<char>, output: &mut String) {
    for c in text.chars() {
        match c {
            '&' => output.push_str("&amp;"),
            '<' => output.push_str("&lt;"),
            '>' => output.push_str("&gt;"),
            '\u{A0}' => output.push_str("&#160;"),
            '"' if quote == Some('"') => output.push_str("&quot;"),
            '\'' if quote == Some('\'') => output.push_str("&#39;"),
            c => output.push(c),
        }
    }
}

fn named(name: &str) -> Option<char> {
    let other = OTHERS.iter().find(|(own, _)| *own == name).map(|(_, c)| *c);
    let latin = || LATIN_1.split(' ').position(|own| own == name);
    other.or_else(|| char::from_u32(0xA0 + latin()? as u32))
}

/// The names of the characters from U+00A0 to U+00FF.
const LATIN_1: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 \
sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash \
Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml \
igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn \
yuml";

const OTHERS: [(&str, char); 34] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("hellip", '…'),
    ("bull", '•'),
    ("dagger", '†'),
    ("Dagger", '‡'),
    ("permil", '‰'),
    ("prime", '′'),
    ("Prime", '″'),
    ("euro", '€'),
    ("trade", '™'),
    ("larr", '←'),
    ("uarr", '↑'),
    ("rarr", '→'),
    ("darr", '↓'),
    ("harr", '↔'),
    ("minus", '−'),
    ("OElig", 'Œ'),
    ("oelig", 'œ'),
    ("Scaron", 'Š'),
    ("scaron", 'š'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_characters_or_stay_what_they_are() {
        for (text, expected) in [
            ("&amp;", Reference::Character('&', 5)),
            ("&uuml;x", Reference::Character('ü', 6)),
            ("&yuml;", Reference::Character('ÿ', 6)),
            ("&#8230;", Reference::Character('…', 7)),
            ("&#x2026; ", Reference::Character('…', 8)),
            ("&CounterClockwiseContourIntegral;", Reference::Unknown(33)),
            ("&copy 2020", Reference::Unknown(5)),
            ("&#0;", Reference::Unknown(4)),
            ("&#xD800;", Reference::Unknown(8)),
            ("&#99", Reference::Unknown(4)),
            ("& co", Reference::None),
            ("&T", Reference::None),
            ("&", Reference::None),
            ("&&", Reference::None),
            ("&é;", Reference::None),
        ] {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
