//! All checks that need nothing but the pair itself, and what is usual in its corpus.

use std::cell::OnceCell;

use super::languages::Verdict;
use super::lengths::Limits;
use super::{Calibration, Check, CheckSet, characters, codes, copies, lengths};

/// What pairs are checked against.
#[derive(Debug, Clone)]
pub struct PairChecks {
    /// What is usual in the corpus.
    pub calibration: Calibration,
    /// What is too long.
    pub limits: Limits,
}

impl PairChecks {
    /// Everything that is wrong with a pair, out of what is asked for. What is empty has no other faults, and what is
    /// equal no wrong language.
    pub fn all(&self, src: &str, tgt: &str, asked: CheckSet) -> CheckSet {
        let mut found = CheckSet::default();
        let verdict = OnceCell::new();
        for check in asked.iter() {
            found.add_if(check, self.has(check, src, tgt, &verdict));
            if matches!(check, Check::Empty | Check::Equal) && found.has(check) {
                break;
            }
        }
        found
    }

    /// The first thing that is wrong with a pair, in the order of the checks.
    pub fn first(&self, src: &str, tgt: &str, asked: CheckSet) -> Option<Check> {
        let verdict = OnceCell::new();
        asked
            .iter()
            .find(|check| self.has(*check, src, tgt, &verdict))
    }

    /// Languages are looked at once for the checks that ask for them.
    fn has(&self, check: Check, src: &str, tgt: &str, verdict: &OnceCell<Verdict>) -> bool {
        let side = |test: fn(&str) -> bool| test(src) || test(tgt);
        let verdict = |wanted| {
            let languages = self.calibration.languages.as_ref();
            languages.is_some_and(|check| *verdict.get_or_init(|| check.check(src, tgt)) == wanted)
        };
        match check {
            Check::Mojibake => side(characters::has_mojibake),
            // Misread text may look like control characters; cleaning repairs it first.
            Check::Controls => {
                side(|side| characters::has_controls(&characters::without_mojibake(side)))
            }
            Check::Nfc => side(characters::is_not_nfc),
            Check::Empty => lengths::is_empty(src, tgt),
            Check::TooLong => lengths::is_too_long(src, tgt, &self.limits),
            Check::Ratio => {
                lengths::is_out_of_ratio(src, tgt, self.calibration.log_ratio, &self.limits)
            }
            Check::Equal => copies::is_equal(src, tgt),
            Check::Swapped => verdict(Verdict::Swapped),
            Check::Language => verdict(Verdict::Wrong),
            Check::Markup => codes::has_markup(src, tgt),
            Check::Placeholders => codes::placeholders_differ(src, tgt),
            Check::Numbers => codes::numbers_differ(src, tgt),
            // These need more than the pair.
            Check::Encoding
            | Check::Misaligned
            | Check::HeldOut
            | Check::Duplicates
            | Check::NearDuplicates
            | Check::ManyTranslations => false,
        }
    }
}
