//! Glossaries with fake models: their terms are in the translations of sentences that have them, and nothing else
//! changes.

use std::sync::Arc;

use attentive_model::directory::Tokenizers;
use attentive_runtime::search::SearchOptions;
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::translator::{
    Chain, Lines, Phrase, Sentence, Translation, Translator, TranslatorOptions,
};
use attentive_text::{Glossary, Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

const WORDS: &str =
    "ein Hund rennt zwei Katzen schlafen a dog hound runs two cats sleep Hunde dogs Dog . !";

fn tokenizers(kind: TokenizerKind) -> Tokenizers {
    let options = TokenizerOptions {
        kind,
        vocab_size: if kind == TokenizerKind::Word { 0 } else { 300 },
        min_frequency: 1,
        lowercase: false,
    };
    Tokenizers::shared(Tokenizer::train(&options, &mut [WORDS].into_iter()).expect("words"))
}

/// A model that has its own mind about every sentence.
fn random(kind: TokenizerKind, options: TranslatorOptions) -> Translator<FakeModel> {
    let tokenizers = tokenizers(kind);
    let model = FakeModel::random(tokenizers.tgt.vocab_size(), 7);
    Translator::new(model, tokenizers, options).expect("sound")
}

fn with(pairs: &[(&str, &str)]) -> TranslatorOptions {
    TranslatorOptions {
        glossary: Some(Arc::new(Glossary::of_pairs(pairs.iter().copied()))),
        source_language: Some("de".to_owned()),
        target_language: Some("en".to_owned()),
        ..Default::default()
    }
}

fn has(found: &Translation, term: &str) -> bool {
    Phrase::new(term).is_in(&found.text)
}

const LINES: [&str; 4] = [
    "ein Hund rennt",
    "zwei Katzen schlafen",
    "",
    "Hund Katzen Hund",
];

#[test]
fn terms_are_in_the_translations_of_sentences_that_have_them() {
    for kind in [TokenizerKind::Word, TokenizerKind::Bpe] {
        for search in [
            SearchOptions::greedy(),
            SearchOptions::beam(2),
            SearchOptions::beam(5),
        ] {
            for lines in [Lines::Whole, Lines::RawText] {
                let options = TranslatorOptions {
                    search: search.clone(),
                    lines,
                    ..with(&[("Hund", "two hound cats"), ("Katzen", "cats")])
                };
                let found = random(kind, options).translate(&LINES);
                assert!(has(&found[0], "two hound cats"), "{kind:?} {found:?}");
                assert!(has(&found[1], "cats"), "{kind:?} {found:?}");
                assert_eq!(found[2].text, "");
                assert_eq!(
                    found[3].text.matches("wo hound cats").count(),
                    2,
                    "{kind:?} {found:?}"
                );
                assert!(found.iter().all(|one| one.missing_terms.is_empty()));
            }
        }
    }
}

#[test]
fn without_terms_in_the_sentence_no_bit_changes_and_batches_change_none_either() {
    let kind = TokenizerKind::Bpe;
    let plain = random(kind, TranslatorOptions::default()).translate(&LINES);
    let unused = random(kind, with(&[("Maus", "mouse"), ("zzz", "x")])).translate(&LINES);
    assert_eq!(plain, unused);
    let bound = random(kind, with(&[("Hund", "hound")]));
    let together = bound.translate(&LINES);
    for (line, found) in LINES.iter().zip(&together) {
        assert_eq!(bound.translate(&[line])[0], *found);
    }
    assert_eq!(plain[1], together[1]);
    assert_ne!(plain[0], together[0]);
}

#[test]
fn another_form_of_the_source_allows_other_forms_of_the_target() {
    let options = with(&[("Hund", "dog")]);
    let found = &random(TokenizerKind::Word, options).translate(&["zwei Hunde"])[0];
    assert!(has(found, "dogs") || has(found, "dog"), "{found:?}");
    assert!(found.missing_terms.is_empty());
}

#[test]
fn what_cannot_be_spelled_is_told_and_the_rest_is_required() {
    let options = with(&[("Hund", "zebra"), ("rennt", "sleep")]);
    let found = &random(TokenizerKind::Word, options).translate(&["ein Hund rennt"])[0];
    assert_eq!(found.missing_terms, ["zebra"]);
    assert!(has(found, "sleep"), "{found:?}");
}

#[test]
fn phrases_of_a_single_line_are_required_of_it() {
    let line = |phrases: &[&str]| Sentence {
        text: "ein Hund".to_owned(),
        prefix: "two".to_owned(),
        phrases: phrases.iter().copied().map(Phrase::new).collect(),
        ..Sentence::default()
    };
    let translator = random(TokenizerKind::Bpe, TranslatorOptions::default());
    let found = translator.translate(&[line(&["{x} y", "{x} y", "a"]), line(&[])]);
    assert!(found[0].text.starts_with("two"));
    assert_eq!(found[0].text.matches("{x} y").count(), 2, "{found:?}");
    assert!(!found[1].text.contains("{x}"));
}

#[test]
fn in_a_chain_terms_of_the_source_are_required_of_the_last_model() {
    let kind = TokenizerKind::Bpe;
    let first = random(kind, with(&[("Hund", "unused")]));
    let chain = Chain::new(first, random(kind, with(&[("Hund", "hound")]))).expect("sound");
    let found = chain.translate(&LINES);
    assert!(has(&found[0], "hound"), "{found:?}");
    let pivot = found[0].pivot.as_ref().expect("a pivot");
    assert!(!pivot.contains("unused"), "{pivot}");
    let plain = Chain::new(random(kind, with(&[])), random(kind, with(&[]))).expect("sound");
    assert_eq!(plain.translate(&LINES)[1], found[1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_terms_for_any_text_do_no_harm(
        terms in prop::collection::vec(("[a-d]{1,2}", prop_oneof!["\\PC{0,12}", "[a-d ]{0,60}"]), 0..4),
        text in "[a-d ]{0,20}",
        kind in prop::sample::select(vec![TokenizerKind::Word, TokenizerKind::Bpe]),
    ) {
        let pairs: Vec<(&str, &str)> = terms.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let found = random(kind, with(&pairs)).translate(&[&text]).remove(0);
        prop_assert!(found.log_prob.is_finite() && found.score.is_finite());
        prop_assert_eq!(found.text.is_empty() && found.log_prob == 0.0, text.trim().is_empty());
    }
}
