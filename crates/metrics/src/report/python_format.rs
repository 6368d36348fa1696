//! Numbers and strings as Python's `repr` and `json.dumps` write them.

/// A float with the fewest digits that give it back, as Python writes it: `0.5`, `100.0`, `1e-05`.
pub(super) fn float_repr(value: f64) -> String {
    let magnitude = value.abs();
    if value != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let scientific = format!("{value:e}");
        if let Some((digits, exponent)) = scientific.split_once('e') {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            return format!("{digits}e{sign}{exponent:0>2}");
        }
    }
    format!("{value:?}")
}

/// Which characters a JSON string writes as escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Only those that JSON demands.
    Needed,
    /// All that are not ASCII too.
    NonAscii,
}

/// A string in JSON's quotes.
pub(super) fn json_string(text: &str, escapes: Escapes) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (escapes == Escapes::NonAscii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_in_python() {
        for (value, text) in [
            (0.0, "0.0"),
            (26.1, "26.1"),
            (100.0, "100.0"),
            (0.0001, "0.0001"),
            (0.00005, "5e-05"),
            (1.25e-12, "1.25e-12"),
            (1e16, "1e+16"),
        ] {
            assert_eq!(float_repr(value), text);
        }
    }

    #[test]
    fn strings_escape_as_asked() {
        assert_eq!(json_string("μ\"\n😀", Escapes::Needed), "\"μ\\\"\\n😀\"");
        assert_eq!(
            json_string("μ😀", Escapes::NonAscii),
            "\"\\u03bc\\ud83d\\ude00\""
        );
    }
}
