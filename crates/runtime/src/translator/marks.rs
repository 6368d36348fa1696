//! A second search for a sentence whose first translation lost a mark: now every mark must come as often as it is in
//! the source.
//!
//! [`attentive_text::keep`] puts marks in the places of what is not translated. They are required as the terms of a
//! glossary are ([`crate::search::Terms`]), so that a beam looks for the best place for them; besides, a target cannot write the sign
//! that ends a sentence before all marks are there, and none can come too often. Where this still fails, at the length
//! limit, `raw_text` puts the mark where the alignment says.

use std::sync::Arc;

use attentive_text::Tokenizer;
use attentive_text::keep::MARKS;
use attentive_text::special::EOS;

use super::options::TranslatorOptions;
use crate::search::{Constraint, LengthLimit, Next, Request, Term};

/// Which tokens write which marks.
#[derive(Debug)]
pub(super) struct MarkTokens {
    /// A token and the place of its mark in [`MARKS`].
    tokens: Vec<(u32, usize)>,
    /// Tokens that end sentences.
    ends: Vec<u32>,
}

impl MarkTokens {
    /// Nothing, if no single token writes a mark.
    pub fn of(tokenizer: &Tokenizer) -> Option<Arc<Self>> {
        let (mut tokens, mut ends) = (Vec::new(), Vec::new());
        for id in 0..tokenizer.vocab_size() as u32 {
            let label = tokenizer.label(id);
            if let Some(mark) = MARKS.iter().position(|mark| label.contains(*mark)) {
                tokens.push((id, mark));
            }
            if matches!(label.trim_start_matches('▁'), "." | "!" | "?") {
                ends.push(id);
            }
        }
        (!tokens.is_empty()).then(|| Arc::new(Self { tokens, ends }))
    }
}

/// What a translation must have, and how long it may get for that.
pub(super) struct Lost {
    pub constraint: RequiredMarks,
    pub most_tokens: usize,
}

/// Makes a request find what was lost. A search that cannot is to end soon: its result is not used.
pub(super) fn require(request: &mut Request, lost: Lost, options: &TranslatorOptions) {
    let limit = request.max_length.unwrap_or(options.search.max_length);
    let most = limit
        .cap
        .map_or(lost.most_tokens, |cap| cap.min(lost.most_tokens));
    request.max_length = Some(LengthLimit {
        cap: Some(most),
        ..limit
    });
    let terms = request.terms.take().unwrap_or_default();
    request.terms = Some(Arc::new(terms.and(lost.constraint.terms())));
    request.constraints.push(Arc::new(lost.constraint));
}

/// Every mark as often as it is in the source.
#[derive(Debug)]
pub(super) struct RequiredMarks {
    marks: Arc<MarkTokens>,
    wanted: [usize; MARKS.len()],
}

impl RequiredMarks {
    pub fn new(marks: Arc<MarkTokens>, kept: &[String]) -> Self {
        let count = |mark: char| kept.iter().filter(|item| item.starts_with(mark)).count();
        Self {
            marks,
            wanted: MARKS.map(count),
        }
    }

    /// The marks as terms: any token that writes one will do.
    fn terms(&self) -> Vec<Term> {
        let term = |(place, &count): (usize, &usize)| {
            let own = self.marks.tokens.iter().filter(|(_, mark)| *mark == place);
            Term {
                forms: own.map(|(token, _)| vec![*token]).collect(),
                count,
            }
        };
        self.wanted.iter().enumerate().map(term).collect()
    }
}

impl Constraint for RequiredMarks {
    fn apply(&self, tokens: &[u32], next: &mut Next<'_>) {
        let mut missing = self.wanted.map(|count| count as isize);
        for token in tokens {
            let written = self.marks.tokens.iter().find(|(own, _)| own == token);
            if let Some((_, mark)) = written {
                missing[*mark] -= 1;
            }
        }
        for &(token, mark) in &self.marks.tokens {
            if missing[mark] <= 0 {
                next.forbid(token);
            }
        }
        if missing.iter().any(|&count| count > 0) {
            next.forbid(EOS);
            self.marks.ends.iter().for_each(|&end| next.forbid(end));
        }
    }
}
