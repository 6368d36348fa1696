//! Two translators one after the other, with fake models: every sentence goes through both.

use attentive_model::directory::Tokenizers;
use attentive_runtime::TranslatorOptions;
use attentive_runtime::search::SearchOptions;
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::translator::{Chain, Lines, Translator, WithPrefix};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

/// Knows every byte.
fn bytes() -> Tokenizers {
    let options = TokenizerOptions {
        kind: TokenizerKind::Bpe,
        vocab_size: 300,
        min_frequency: 1,
        lowercase: false,
    };
    let text = "Ein Hund rennt. Zwei Katzen schlafen! ein hund rennt zwei katzen";
    Tokenizers::shared(Tokenizer::train(&options, &mut [text].into_iter()).expect("some words"))
}

fn options(lines: Lines, n_best: usize) -> TranslatorOptions {
    TranslatorOptions {
        lines,
        search: SearchOptions {
            n_best,
            ..SearchOptions::beam(4)
        },
        ..Default::default()
    }
}

fn copying(tokenizers: Tokenizers, options: TranslatorOptions) -> Translator<FakeModel> {
    let model = FakeModel::copying(tokenizers.tgt.vocab_size());
    Translator::new(model, tokenizers, options).expect("sound options")
}

/// A model that has its own mind about every sentence.
fn random(seed: u64, options: TranslatorOptions) -> Translator<FakeModel> {
    let tokenizers = bytes();
    let model = FakeModel::random(tokenizers.tgt.vocab_size(), seed);
    Translator::new(model, tokenizers, options).expect("sound options")
}

const LINES: [&str; 5] = [
    "Ein Hund rennt.  Zwei Katzen schlafen!",
    "",
    "42. Siehe https://example.org/Weg?a=B an. 😀 EIN HUND!",
    "ohne Punkt",
    "42",
];

#[test]
fn two_models_that_copy_give_back_every_line() {
    let one = || copying(bytes(), options(Lines::RawText, 1));
    let chain = Chain::new(one(), one()).expect("sound options");
    for (line, found) in LINES.iter().zip(chain.translate(&LINES)) {
        assert_eq!(found.text, *line);
        // What no model saw has no pivot either.
        let pivot = found.pivot.unwrap_or_else(|| (*line).to_owned());
        assert_eq!(pivot, *line);
    }
}

#[test]
fn each_sentence_goes_through_both_and_scores_add_up() {
    let (whole, text) = (options(Lines::Whole, 3), options(Lines::RawText, 3));
    let (first, second) = (random(3, whole.clone()), random(4, whole.clone()));
    let chain = Chain::new(random(3, whole), random(4, text)).expect("sound options");

    let sentences = ["Ein Hund rennt.", "Zwei Katzen schlafen!"];
    let pivots = first.translate(&sentences);
    assert!(
        pivots.iter().all(|pivot| !pivot.text.trim().is_empty()),
        "{pivots:?}"
    );
    let targets: Vec<_> = pivots
        .iter()
        .map(|pivot| second.translate(&[&pivot.text]).remove(0))
        .collect();
    let found = chain.translate(&[sentences.join(" ")]).remove(0);
    assert_eq!(
        found.text,
        format!("{} {}", targets[0].text, targets[1].text)
    );
    assert_eq!(
        found.pivot,
        Some(format!("{} {}", pivots[0].text, pivots[1].text))
    );
    let log_prob: f64 = pivots
        .iter()
        .chain(&targets)
        .map(|part| part.log_prob)
        .sum();
    assert!((found.log_prob - log_prob).abs() < 1e-9);
    let score: f64 = pivots.iter().chain(&targets).map(|part| part.score).sum();
    assert!(
        (found.score - score / 2.0).abs() < 1e-9,
        "the mean of both sentences"
    );
    assert_eq!(found.alternatives.len(), 2, "those of the second model");
    let other = &targets[0].alternatives[0].text;
    assert!(found.alternatives[0].text.starts_with(other.as_str()));
}

#[test]
fn a_prefix_is_for_the_last_model_and_a_stream_keeps_its_order() {
    let first = copying(bytes(), options(Lines::RawText, 1));
    let second = random(4, options(Lines::RawText, 1));
    let chain = Chain::new(first, second).expect("sound options");
    let line = WithPrefix {
        text: "ein hund".to_owned(),
        prefix: "Hund".to_owned(),
    };
    let found = chain.translate(&[line]).remove(0);
    assert!(found.text.starts_with("Hund"), "{found:?}");
    assert_eq!(
        found.pivot.as_deref(),
        Some("ein hund"),
        "the first model is free"
    );

    let together = chain.translate(&LINES);
    let mut streamed = Vec::new();
    let lines = LINES.iter().map(|line| Ok::<_, ()>(*line));
    let answered = chain.translate_stream(lines, |line, translation| {
        streamed.push((line, translation));
        Ok(())
    });
    answered.expect("no errors");
    assert_eq!(
        streamed,
        LINES.into_iter().zip(together).collect::<Vec<_>>()
    );
}

/// A vocabulary of subwords or characters that has no marks.
fn letters() -> Tokenizers {
    let special = ["<s>", "</s>", "<blank>", "<unk>"].map(str::to_owned);
    let letters = (' '..='~').map(String::from);
    let vocabulary = special.into_iter().chain(letters).collect();
    Tokenizers::shared(Tokenizer::characters(vocabulary).expect("a sound vocabulary"))
}

#[test]
fn a_model_that_does_not_know_the_marks_reads_addresses_and_dates_as_text() {
    let line = "See https://example.org/a?b=1 on 2024-05-06 at noon.";
    let alone = copying(letters(), options(Lines::RawText, 1))
        .translate(&[line])
        .remove(0);
    assert_eq!((alone.text.as_str(), alone.unknown), (line, 0));
    // And so does a chain in which one of both does not.
    for (first, second) in [(letters(), bytes()), (bytes(), letters())] {
        let one = |tokenizers| copying(tokenizers, options(Lines::RawText, 1));
        let chain = Chain::new(one(first), one(second)).expect("sound options");
        let found = chain.translate(&[line]).remove(0);
        assert_eq!((found.text.as_str(), found.unknown), (line, 0));
    }
}
