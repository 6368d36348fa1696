//! Required terms: phrases that the target must contain, wherever the model puts them.
//!
//! Half of this is a rule for the next token, as every constraint: `</s>` has to wait until all terms are there,
//! and the next token of a term is never impossible. The other half is the beam's (`banks`): improbable terms would
//! fall out of it before they pay off, so hypotheses compete with those that lack as many tokens as they do
//! (dynamic beam allocation, Post & Vilar 2018, <https://aclanthology.org/N18-1119>).
//!
//! Paper: a hypothesis keeps a state of what it has of each constraint. Here: it is read off its tokens each time,
//! as they are few. So overlapping terms, common beginnings and a phrase that is begun and broken off need no rules
//! of their own.

use std::sync::Arc;

use attentive_text::special::{BOS, EOS, PAD};

use super::Next;

/// A phrase that must occur in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Its spellings as tokens, with and without a space before it for example; any of them will do.
    pub forms: Vec<Vec<u32>>,
    /// How often it must occur.
    pub count: usize,
}

impl Term {
    /// A term that must occur once, in any of these forms.
    pub fn new(forms: Vec<Vec<u32>>) -> Self {
        Self { forms, count: 1 }
    }
}

/// All terms that a target must contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    terms: Vec<Term>,
    /// For each token whether it goes on with the word before it; those beyond the end do not.
    continues: Arc<[bool]>,
}

/// Stand for all tokens that no form holds: one that begins a word, and one that goes on with the word before it.
const OTHER: u32 = u32::MAX;
const OTHER_CONTINUING: u32 = u32::MAX - 1;

impl Terms {
    /// Terms of tokens. Forms that are empty or hold `<s>`, `</s>` or `<blank>`, which no target can contain, are left
    /// out, and so is a term without forms. Of equal terms the counts add up.
    pub fn new(terms: Vec<Term>) -> Self {
        let mut kept: Vec<Term> = Vec::new();
        for Term { mut forms, count } in terms {
            let possible = |token: &u32| ![BOS, EOS, PAD, OTHER, OTHER_CONTINUING].contains(token);
            forms.retain(|form| !form.is_empty() && form.iter().all(possible));
            // The longest first: where several fit, that one occurs.
            forms.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
            forms.dedup();
            match kept.iter_mut().find(|term| term.forms == forms) {
                Some(same) => same.count = same.count.saturating_add(count),
                None if forms.is_empty() || count == 0 => {}
                None => kept.push(Term { forms, count }),
            }
        }
        Self {
            terms: kept,
            continues: Arc::default(),
        }
    }

    /// The same terms as whole words: a form does not count where one of these tokens (`true` at its id) follows,
    /// which goes on with the word that the form ends in.
    pub fn of_whole_words(self, continues: Arc<[bool]>) -> Self {
        Self { continues, ..self }
    }

    /// These terms and others.
    pub fn and(&self, others: Vec<Term>) -> Self {
        let continues = Arc::clone(&self.continues);
        Self::new([self.terms.clone(), others].concat()).of_whole_words(continues)
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms that are required, without those that were left out.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Every token of every form, in any order.
    pub fn tokens(&self) -> impl Iterator<Item = u32> {
        let forms = self.terms.iter().flat_map(|term| &term.forms);
        forms.flatten().copied()
    }

    /// How many tokens all terms have at least.
    pub fn total(&self) -> usize {
        let tokens = |term: &Term| term.shortest().saturating_mul(term.count);
        self.terms.iter().map(tokens).fold(0, usize::saturating_add)
    }

    /// The numbers of the terms that a target lacks.
    pub fn lacking(&self, target: &[u32]) -> Vec<usize> {
        let lacks = |term: &Term| self.occurrences(term, target).0 < term.count;
        let terms = self.terms.iter().enumerate();
        terms
            .filter_map(|(n, term)| lacks(term).then_some(n))
            .collect()
    }

    /// How many tokens a target lacks at least until it has all terms; a term that it has begun at its end counts.
    pub fn missing(&self, target: &[u32]) -> usize {
        let (mut missing, mut begun) = (0usize, 0);
        for term in &self.terms {
            let (occurrences, end) = self.occurrences(term, target);
            let lacking = term.count.saturating_sub(occurrences);
            if lacking > 0 {
                missing = missing.saturating_add(term.shortest().saturating_mul(lacking));
                begun = begun.max(term.begun(&target[end..]));
            }
        }
        missing - begun
    }

    /// How often a term occurs, without overlaps, and where the last occurrence ends.
    fn occurrences(&self, term: &Term, target: &[u32]) -> (usize, usize) {
        let (mut count, mut end, mut place) = (0, 0, 0);
        while place < target.len() && count < term.count {
            let fits = |form: &&Vec<u32>| {
                target[place..].starts_with(form)
                    && !target
                        .get(place + form.len())
                        .is_some_and(|&next| self.continues(next))
            };
            match term.forms.iter().find(fits) {
                Some(form) => {
                    count += 1;
                    place += form.len();
                    end = place;
                }
                None => place += 1,
            }
        }
        (count, end)
    }

    fn continues(&self, token: u32) -> bool {
        let known = self.continues.get(token as usize);
        known.copied().unwrap_or(token == OTHER_CONTINUING)
    }

    /// What each token would change.
    pub(in crate::search) fn outlook(&self, target: &[u32]) -> Outlook<'_> {
        let mut longer = target.to_vec();
        let mut missing_with = |token| {
            longer.push(token);
            let missing = self.missing(&longer);
            longer.pop();
            missing
        };
        let (other, continuing) = (missing_with(OTHER), missing_with(OTHER_CONTINUING));
        let mut next = self.next_tokens(target);
        next.sort_unstable();
        next.dedup();
        Outlook {
            terms: self,
            now: self.missing(target),
            next: next
                .into_iter()
                .map(|token| (token, missing_with(token)))
                .collect(),
            other,
            continuing,
        }
    }

    /// The tokens that begin a form, or go on with one that the target ends in the middle of.
    fn next_tokens(&self, target: &[u32]) -> Vec<u32> {
        let forms = self.terms.iter().flat_map(|term| &term.forms);
        let next = |form| {
            let places = 0..=target.len().min(Vec::len(form) - 1);
            places
                .filter(move |&begun| target.ends_with(&form[..begun]))
                .map(move |begun| form[begun])
        };
        forms.flat_map(next).collect()
    }
}

impl Term {
    fn shortest(&self) -> usize {
        self.forms.last().map_or(0, Vec::len)
    }

    /// How many tokens fewer are missing because a target ends in the middle of a form; fewer than in the shortest
    /// form, as something is missing.
    fn begun(&self, target: &[u32]) -> usize {
        let saved = |form: &Vec<u32>| {
            let begun = (1..form.len())
                .rev()
                .find(|&n| target.ends_with(&form[..n]));
            self.shortest()
                .saturating_sub(form.len() - begun.unwrap_or(0))
        };
        self.forms.iter().map(saved).max().unwrap_or(0)
    }
}

/// How many tokens of the terms a hypothesis lacks, now and with each token that may come next.
pub(in crate::search) struct Outlook<'a> {
    terms: &'a Terms,
    pub now: usize,
    /// Tokens of the terms.
    pub next: Vec<(u32, usize)>,
    /// With any other token that begins a word, and with one that goes on with the word before it.
    pub other: usize,
    pub continuing: usize,
}

impl Outlook<'_> {
    /// What is missing with a token that is none of the terms'.
    pub fn with_other(&self, token: u32) -> usize {
        if self.terms.continues(token) {
            self.continuing
        } else {
            self.other
        }
    }

    /// The log-probabilities of the tokens that bring a term nearer, before other rules forbid them.
    pub fn nearer(&self, next: &Next<'_>) -> Vec<(u32, f32)> {
        let tokens = self.next.iter().filter(|(_, missing)| *missing < self.now);
        // NaN loses against any number.
        let finite = |token: u32| next.get(token).max(f32::MIN);
        tokens.map(|&(token, _)| (token, finite(token))).collect()
    }

    /// The rule for the next token.
    pub fn apply(&self, nearer: &[(u32, f32)], next: &mut Next<'_>) {
        for &(token, log_prob) in nearer {
            next.set(token, log_prob);
        }
        if self.now > 0 {
            next.forbid(EOS);
        }
    }
}
