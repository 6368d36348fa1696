//! What became of the lines on the way, said once and not for every line: nothing is lost silently.

use attentive_runtime::search::Finish;
use attentive_runtime::translator::Translation;

use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Counts what the user should know about translated lines.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// Lines whose end was not translated.
    truncated: usize,
    /// Translations that lack terms of the glossary.
    without_terms: usize,
    /// Lines with words that the model does not know, and the number of these words.
    unknown: (usize, usize),
    /// Outputs that ran into the length limit.
    unfinished: usize,
    /// Outputs that stopped because no token had a probability.
    dead_ends: usize,
    /// Outputs of a second search, as the first one repeated itself.
    repetitive: usize,
    /// Things that had to be put back, and in how many lines.
    moved: (usize, usize),
}

/// So many lines are named one by one.
const NAMED: usize = 5;

impl Notices {
    /// Looks at the translation of a line, counted from 1; returns what should be said about it now.
    pub fn add(&mut self, line: usize, translation: &Translation) -> Option<String> {
        let mut warning = None;
        if let Some(tokens) = translation.truncated {
            self.truncated += 1;
            if self.truncated <= NAMED {
                warning = Some(format!(
                    "line {line} has characters of more tokens than a source may have: {} were cut off \
                     (--max-source-length sets the limit)",
                    plural(tokens, "token", "tokens")
                ));
            }
        }
        if !translation.missing_terms.is_empty() {
            self.without_terms += 1;
            if self.without_terms <= NAMED {
                let terms = translation.missing_terms.join(", ");
                warning = Some(format!(
                    "the translation of line {line} lacks what the glossary wants: {terms} (the vocabulary \
                     cannot spell it, it has more than 32 tokens, or the length limit leaves no room)"
                ));
            }
        }
        if translation.unknown > 0 {
            self.unknown.0 += 1;
            self.unknown.1 += translation.unknown;
        }
        if translation.moved > 0 {
            self.moved.0 += translation.moved;
            self.moved.1 += 1;
        }
        self.repetitive += usize::from(translation.repetition_blocked);
        match translation.finished {
            Finish::EndOfSentence => {}
            Finish::LengthLimit => self.unfinished += 1,
            Finish::DeadEnd => self.dead_ends += 1,
        }
        warning
    }

    /// Says what there is to say when all lines are done.
    pub fn tell(&self, terminal: &Terminal) {
        for message in self.messages() {
            terminal.warn(message);
        }
    }

    fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        if self.truncated > NAMED {
            let more = count(self.truncated - NAMED);
            messages.push(format!(
                "{more} more lines have characters that were cut off"
            ));
        }
        if self.without_terms > NAMED {
            let more = count(self.without_terms - NAMED);
            messages.push(format!(
                "{more} more translations lack terms of the glossary"
            ));
        }
        let (lines, words) = self.unknown;
        if words > 0 {
            let (words, lines) = (
                plural(words, "word", "words"),
                plural(lines, "line", "lines"),
            );
            messages.push(format!(
                "{words} in {lines} not in the vocabulary: the model saw <unk> instead"
            ));
        }
        if self.unfinished > 0 {
            let outputs = plural(self.unfinished, "output was", "outputs were");
            messages.push(format!("{outputs} cut at the length limit (--max-length)"));
        }
        if self.repetitive > 0 {
            let outputs = plural(self.repetitive, "output", "outputs");
            messages.push(format!(
                "{outputs} repeated the same words again and again, so a second search blocked repeated \
                 3-grams (--allow-repetition switches that off)"
            ));
        }
        let (things, lines) = self.moved;
        if things > 0 {
            let (things, lines) = (
                plural(
                    things,
                    "placeholder or address",
                    "placeholders or addresses",
                ),
                plural(lines, "line", "lines"),
            );
            messages.push(format!(
                "{things} in {lines} did not come through the model, and now stand beside the words that they stood beside"
            ));
        }
        if self.dead_ends > 0 {
            let outputs = plural(self.dead_ends, "output", "outputs");
            messages.push(format!(
                "{outputs} could not be completed: the model gives no token a probability, so its \
                 training has diverged or its file is damaged"
            ));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_say_says_nothing() {
        assert!(Notices::default().messages().is_empty());
    }

    #[test]
    fn each_kind_is_said_once() {
        let notices = Notices {
            truncated: 7,
            without_terms: 0,
            unknown: (1, 3),
            unfinished: 1,
            dead_ends: 2,
            repetitive: 1,
            moved: (2, 1),
        };
        let messages = notices.messages();
        assert_eq!(
            messages[0],
            "2 more lines have characters that were cut off"
        );
        assert_eq!(
            messages[1],
            "3 words in 1 line not in the vocabulary: the model saw <unk> instead"
        );
        assert!(
            messages[2].starts_with("1 output was cut"),
            "{}",
            messages[2]
        );
        assert!(
            messages[3].starts_with("1 output repeated"),
            "{}",
            messages[3]
        );
        assert!(
            messages[4].starts_with("2 placeholders or addresses in 1 line"),
            "{}",
            messages[4]
        );
        assert!(
            messages[5].starts_with("2 outputs could not"),
            "{}",
            messages[5]
        );
    }
}
