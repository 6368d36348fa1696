//! Where spaces go when words become a sentence again; used by [`super::words`] when decoding.

/// Words to a sentence: a space between two tokens unless either of them holds on to the other.
///
/// This is a guess: spaces were dropped, so `a - b` and `a-b` are the same tokens, and the more
/// frequent spelling wins.
pub(super) fn joined<'t>(tokens: impl Iterator<Item = &'t str>) -> String {
    let mut text = String::new();
    let mut spacing = Spacing::default();
    for token in tokens {
        if spacing.space_before(token) {
            text.push(' ');
        }
        text.push_str(token);
    }
    text
}

/// Says where spaces go, token by token.
#[derive(Default)]
pub(super) struct Spacing {
    quotes: OpenQuotes,
    /// Whether the next token may have a space before it; the first may not.
    may_separate: bool,
}

impl Spacing {
    /// Whether a space goes before the next token.
    pub(super) fn space_before(&mut self, token: &str) -> bool {
        let hold = self.quotes.hold_of(token).unwrap_or_else(|| hold_of(token));
        let space = self.may_separate && !matches!(hold, Hold::Left | Hold::Both);
        self.may_separate = !matches!(hold, Hold::Right | Hold::Both);
        space
    }
}

/// To which neighbor a token is written without a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Neither,
    Left,
    Right,
    Both,
}

fn hold_of(token: &str) -> Hold {
    match token {
        "." | "," | "!" | "?" | ";" | ":" | "…" | "%" | "°" => Hold::Left,
        ")" | "]" | "}" | "”" | "’" | "'" => Hold::Left,
        "(" | "[" | "{" | "‚" | "‘" => Hold::Right,
        "¿" | "¡" | "#" | "$" | "€" | "£" => Hold::Right,
        "-" | "/" | "@" => Hold::Both,
        _ => Hold::Neither,
    }
}

/// Marks that open or close a quotation, depending on what came before.
#[derive(Default)]
struct OpenQuotes {
    straight: bool,
    angled: bool,
    low: bool,
}

impl OpenQuotes {
    fn hold_of(&mut self, token: &str) -> Option<Hold> {
        match token {
            "\"" => Some(turn(&mut self.straight)),
            "«" | "»" => Some(turn(&mut self.angled)), // «French» and »German«
            "„" => {
                self.low = true;
                Some(Hold::Right)
            }
            // It closes „German“ and opens “English” quotations.
            "“" if self.low => {
                self.low = false;
                Some(Hold::Left)
            }
            "“" => Some(Hold::Right),
            _ => None,
        }
    }
}

/// A mark that looks the same at both ends opens and closes in turn.
fn turn(is_open: &mut bool) -> Hold {
    *is_open = !*is_open;
    if *is_open { Hold::Right } else { Hold::Left }
}

#[cfg(test)]
mod tests {
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    #[test]
    fn spaces_go_where_people_put_them() {
        for text in [
            "Ein Mann, der (laut) singt: \"Hallo, Welt!\" Dann \"geht\" er.",
            "„Guten Tag“, sagt sie; “good day” is 100% right…",
            "A well-known T-shirt/top for $5. Isn't it?",
            "Er sagt: »Nein« [leise]. ¿Qué? Elle dit «non», #2.",
        ] {
            let words = text.split_word_bounds().filter(|word| *word != " ");
            assert_eq!(joined(words), text);
        }
    }

    #[test]
    fn no_token_gives_no_text() {
        assert_eq!(joined(std::iter::empty()), "");
    }
}
