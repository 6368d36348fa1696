//! Is a parallel corpus fit to train on? Checks of lines, of pairs and of whole corpora, strings only.
//!
//! ```text
//! files --pairs--> chunks of raw pairs --checks--> counts and examples (inspect), or kept pairs (clean)
//! ```
//!
//! One implementation of each check, one file for each kind: [`characters`] (encoding), [`lengths`], [`copies`]
//! (equal sides), [`languages`], [`codes`] (markup, placeholders, numbers), [`duplicates`], [`held_out`] (test
//! sentences), [`alignment`] (stretches in which the sides are shifted). [`Check`] names them and [`PairChecks`] asks all that concern one pair; [`inspect`] counts what
//! they find, for `attentive doctor`, and [`clean`] leaves it out, for `attentive data clean`. [`coverage`] asks what a
//! vocabulary makes of the text, [`findings`] how bad all this is.

pub mod alignment;
mod calibration;
pub mod characters;
pub mod clean;
pub mod codes;
pub mod copies;
pub mod coverage;
pub mod duplicates;
pub mod findings;
pub mod held_out;
pub mod inspect;
pub mod languages;
pub mod lengths;
mod pair_checks;
mod pairs;
mod sample;
mod words;

use std::fmt;
use std::str::FromStr;

pub use calibration::{Calibration, LanguageChoice};
pub use pair_checks::PairChecks;
pub use sample::Sample;

/// What can be wrong with a line or a pair, in the fixed order in which `clean` looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Check {
    /// A line that is not UTF-8, or that holds a NUL byte.
    Encoding,
    /// UTF-8 that was read as another encoding: `Ã¼` for `ü`.
    Mojibake,
    /// Control characters, invisible characters, replacement characters.
    Controls,
    /// Letters and accents as two characters where one is usual.
    Nfc,
    /// A side with nothing but white space.
    Empty,
    /// Part of a stretch in which the sides are shifted against each other.
    Misaligned,
    /// A side with very many words.
    TooLong,
    /// A side that is much longer than the other.
    Ratio,
    /// The target is the source.
    Equal,
    /// Each side is in the language of the other.
    Swapped,
    /// A side in another language.
    Language,
    /// Tags and entities.
    Markup,
    /// Placeholders and addresses that the other side lacks.
    Placeholders,
    /// Digits that the other side lacks.
    Numbers,
    /// A sentence of a test set.
    HeldOut,
    /// A pair that was there before.
    Duplicates,
    /// A pair that was there before with other punctuation or case.
    NearDuplicates,
    /// One more translation of a sentence that has many.
    ManyTranslations,
}

impl Check {
    /// All checks in their order.
    pub const ALL: [Check; 18] = [
        Check::Encoding,
        Check::Mojibake,
        Check::Controls,
        Check::Nfc,
        Check::Empty,
        Check::Misaligned,
        Check::TooLong,
        Check::Ratio,
        Check::Equal,
        Check::Swapped,
        Check::Language,
        Check::Markup,
        Check::Placeholders,
        Check::Numbers,
        Check::HeldOut,
        Check::Duplicates,
        Check::NearDuplicates,
        Check::ManyTranslations,
    ];

    /// The name of its filter.
    pub fn name(self) -> &'static str {
        match self {
            Check::Encoding => "encoding",
            Check::Mojibake => "mojibake",
            Check::Controls => "controls",
            Check::Nfc => "nfc",
            Check::Empty => "empty",
            Check::Misaligned => "misaligned",
            Check::TooLong => "too-long",
            Check::Ratio => "ratio",
            Check::Equal => "equal",
            Check::Swapped => "swapped",
            Check::Language => "language",
            Check::Markup => "markup",
            Check::Placeholders => "placeholders",
            Check::Numbers => "numbers",
            Check::HeldOut => "held-out",
            Check::Duplicates => "duplicates",
            Check::NearDuplicates => "near-duplicates",
            Check::ManyTranslations => "many-translations",
        }
    }

    /// Whether its filter is one of those that are used if none are named: those that are hardly ever wrong.
    pub fn is_usual(self) -> bool {
        !matches!(
            self,
            Check::Markup | Check::Numbers | Check::NearDuplicates | Check::ManyTranslations
        )
    }
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that no filter has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no filter `{asked}`; the filters are {}", names())]
pub struct UnknownCheck {
    /// What was asked for.
    pub asked: String,
}

fn names() -> String {
    Check::ALL.map(Check::name).join(", ")
}

impl FromStr for Check {
    type Err = UnknownCheck;

    fn from_str(asked: &str) -> Result<Self, UnknownCheck> {
        let found = Check::ALL
            .into_iter()
            .find(|check| check.name() == asked.trim());
        found.ok_or_else(|| UnknownCheck {
            asked: asked.to_owned(),
        })
    }
}

/// A set of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckSet(u32);

impl CheckSet {
    /// Adds a check if the condition holds.
    pub fn add_if(&mut self, check: Check, condition: bool) {
        self.0 |= u32::from(condition) << check as u8;
    }

    /// Whether the check is in it.
    pub fn has(self, check: Check) -> bool {
        self.0 >> check as u8 & 1 == 1
    }

    /// The checks in their order.
    pub fn iter(self) -> impl Iterator<Item = Check> {
        Check::ALL.into_iter().filter(move |check| self.has(*check))
    }
}

impl FromIterator<Check> for CheckSet {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> Self {
        let mut set = Self::default();
        for check in checks {
            set.add_if(check, true);
        }
        set
    }
}

/// A hash of 64 bits: two of ten million different lines are the same with a probability of one in 300,000.
fn hash(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_found_by_their_names_and_stand_in_their_order() {
        for (index, check) in Check::ALL.into_iter().enumerate() {
            assert_eq!(check as usize, index);
            assert_eq!(check.name().parse(), Ok(check));
        }
        let error = "dupes".parse::<Check>().unwrap_err().to_string();
        assert!(error.contains("`dupes`") && error.contains("near-duplicates"));
        let set: CheckSet = [Check::Equal, Check::Encoding].into_iter().collect();
        let found: Vec<Check> = set.iter().collect();
        assert_eq!(found, [Check::Encoding, Check::Equal]);
        assert!(!set.has(Check::Empty));
    }
}
