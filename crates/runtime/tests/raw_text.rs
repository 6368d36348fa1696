//! Lines of raw text, with fake models: what goes in whole comes out whole.

use std::io::{BufRead, Cursor};

use attentive_model::directory::Tokenizers;
use attentive_model::fake_dir;
use attentive_runtime::TranslatorOptions;
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{Finish, Request, SearchModel, SearchOptions};
use attentive_runtime::translator::{Lines, Repetition, Translation, Translator, WithPrefix};
use attentive_text::special::{EOS, decoder_input};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

/// Knows every byte, so that a model that copies gives back every text.
fn tokenizers() -> Tokenizers {
    let options = TokenizerOptions {
        kind: TokenizerKind::Bpe,
        vocab_size: 300,
        min_frequency: 1,
        lowercase: false,
    };
    let text = "Ein Hund rennt. Zwei Katzen schlafen! Wer ist da? ein hund rennt zwei katzen";
    let tokenizer = Tokenizer::train(&options, &mut [text].into_iter()).expect("some words");
    Tokenizers::shared(tokenizer)
}

fn raw_text() -> TranslatorOptions {
    TranslatorOptions {
        lines: Lines::RawText,
        ..Default::default()
    }
}

fn copying(options: TranslatorOptions) -> Translator<FakeModel> {
    let tokenizers = tokenizers();
    let model = FakeModel::copying(tokenizers.tgt.vocab_size());
    Translator::new(model, tokenizers, options).expect("sound options")
}

/// A model that has its own mind about every sentence.
fn random(options: TranslatorOptions) -> Translator<FakeModel> {
    let tokenizers = tokenizers();
    let model = FakeModel::random(tokenizers.tgt.vocab_size(), 3);
    let options = TranslatorOptions {
        search: SearchOptions {
            n_best: 3,
            ..SearchOptions::beam(4)
        },
        tokens: true,
        ..options
    };
    Translator::new(model, tokenizers, options).expect("sound options")
}

fn texts(translations: &[Translation]) -> Vec<&str> {
    translations.iter().map(|line| line.text.as_str()).collect()
}

const SENTENCES: [&str; 13] = [
    "Tippe `echo Hallo. Welt` ein.",
    "Ein Hund rennt.",
    "Zwei Katzen schlafen!",
    "Wer ist da?",
    "ohne Punkt",
    "EIN HUND RENNT!",
    "ÜBER ALLEN GIPFELN",
    "Siehe https://example.org/Weg?a=B&c=1 an.",
    "Schön 😀 oder?",
    "Schreib an Max.Muster@example.org, ja?",
    "42.",
    "👍🏽👩‍👩‍👧",
    "3,5 + 4 = 7,5",
];

/// Lines of any sentences with any gaps.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let gap = prop::sample::select(vec![" ", "  ", "\t", " \u{a0}"]);
    let sentence = (prop::sample::select(SENTENCES.to_vec()), gap);
    let line = prop::collection::vec(sentence, 0..5).prop_map(|parts| {
        let line: String = parts
            .into_iter()
            .map(|(text, gap)| format!("{text}{gap}"))
            .collect();
        line.trim_end().to_owned()
    });
    prop::collection::vec(line, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_model_that_copies_gives_back_every_line(lines in lines()) {
        let found = copying(raw_text()).translate(&lines);
        prop_assert_eq!(texts(&found), lines);
    }

    #[test]
    fn any_text_gives_one_answer_for_each_line(lines in prop::collection::vec(".{0,40}", 0..4)) {
        let translator = copying(raw_text());
        let together = translator.translate(&lines);
        prop_assert_eq!(together.len(), lines.len());
        for (line, answer) in lines.iter().zip(together) {
            prop_assert_eq!(line.trim().is_empty(), answer.text.trim().is_empty(), "{:?}", line);
            prop_assert_eq!(translator.translate(&[line]), vec![answer]);
        }
    }

    #[test]
    fn a_plain_sentence_is_translated_as_without_all_this(
        words in prop::collection::vec("[a-zäöüß]{1,6}", 1..6),
        end in prop::sample::select(vec!["", ".", "!", "?"]),
    ) {
        let line = words.join(" ") + end;
        prop_assert_eq!(
            random(raw_text()).translate(&[&line]),
            random(TranslatorOptions::default()).translate(&[&line])
        );
    }

    #[test]
    fn a_stream_answers_as_all_lines_at_once(lines in lines(), window in 1usize..5) {
        let translator = random(TranslatorOptions { window, ..raw_text() });
        let text = lines.join("\n");
        let mut streamed = Vec::new();
        let input = Cursor::new(text.clone()).lines();
        let ended = translator.translate_stream(input, |line, answer| {
            streamed.push((line, answer));
            Ok(())
        });
        prop_assert!(ended.is_ok());
        let lines: Vec<&str> = text.lines().collect();
        let expected = translator.translate(&lines);
        let expected: Vec<_> = lines.iter().map(|line| (*line).to_owned()).zip(expected).collect();
        prop_assert_eq!(streamed, expected);
    }
}

#[test]
fn a_line_without_a_word_is_copied_and_costs_nothing() {
    let translator = random(raw_text());
    let lines = ["", "  ", "42", "😀", "1 + 1 = 2.", "https://example.org"];
    let found = translator.translate(&lines);
    let expected = ["", "", "42", "😀", "1 + 1 = 2.", "https://example.org"];
    assert_eq!(texts(&found), expected);
    assert_eq!(translator.model().rows_fed(), 0);
    assert!(
        found
            .iter()
            .all(|line| line.score == 0.0 && line.alternatives.is_empty())
    );
}

/// What the model is shown.
fn seen(line: &str) -> Vec<String> {
    use std::sync::{Arc, Mutex};
    let tokenizers = tokenizers();
    let (tgt, log) = (tokenizers.tgt.clone(), Arc::new(Mutex::new(Vec::new())));
    let (vocab, sources) = (tgt.vocab_size(), log.clone());
    let copying = FakeModel::copying(vocab);
    let model = FakeModel::new(vocab, move |source, target| {
        if target.is_empty() {
            let text = tgt.decode(&source[..source.len() - 1]);
            sources.lock().expect("no panic").push(text);
        }
        let (mut state, mut row) = (copying.start(&[&Request::new(source.to_vec())]), Vec::new());
        for token in decoder_input(target) {
            copying.step(&mut state, &[token], &mut row);
        }
        row
    });
    let options = TranslatorOptions {
        search: SearchOptions::greedy(),
        batch_sentences: Some(1),
        threads: Some(1),
        ..raw_text()
    };
    let translator = Translator::new(model, tokenizers, options).expect("sound options");
    assert_eq!(translator.translate(&[line])[0].text, line);
    let mut seen = log.lock().expect("no panic").clone();
    seen.sort();
    seen
}

#[test]
fn capitals_are_shown_to_the_model_in_lowercase() {
    assert_eq!(seen("EIN HUND RENNT!"), ["Ein hund rennt!"]);
    assert_eq!(seen("\"ÖLTANK\""), ["\"Öltank\""]);
    for as_it_is in ["OK", "EU!", "Ein HUND rennt.", "ABC", "日本語です"] {
        assert_eq!(seen(as_it_is), [as_it_is]);
    }
}

#[test]
fn each_sentence_is_shown_alone_and_what_is_kept_is_not_shown() {
    let shown = seen("Ein Hund rennt. Wer ist da? 42. Siehe https://example.org/Weg an!");
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown.contains(&"Ein Hund rennt.".to_owned()), "{shown:?}");
    assert!(!shown.concat().contains("example"), "{shown:?}");
}

#[test]
fn no_sentence_ends_within_code_or_an_address() {
    let shown = seen("Tippe `echo Hallo. Welt` ein.");
    assert_eq!(shown, ["Tippe \u{E000} ein."]);
    let shown = seen("Siehe <a title=\"Wer? Ich!\">hier</a>. Oder `ja. Nein`?");
    assert_eq!(shown, ["Oder \u{E000}?", "Siehe hier."]);
}

#[test]
fn scores_are_means_and_log_probabilities_sums_over_the_translated_sentences() {
    let translator = random(raw_text());
    let [first, second] = ["Ein Hund rennt.", "Wer ist da?"];
    let alone = random(TranslatorOptions::default()).translate(&[first, second]);
    let joined = &translator.translate(&[format!("{first} 42. {second}")])[0];
    let [a, b] = &alone[..] else {
        panic!("two lines")
    };
    assert_eq!(joined.text, format!("{} 42. {}", a.text, b.text));
    assert_eq!(joined.score, (a.score + b.score) / 2.0);
    assert_eq!(joined.log_prob, a.log_prob + b.log_prob);
    let tokens = |line: &Translation| line.tokens.clone().expect("asked for");
    assert_eq!(tokens(joined), [tokens(a), tokens(b)].concat());

    assert_eq!(joined.alternatives.len(), 2);
    for (rank, other) in joined.alternatives.iter().enumerate() {
        let (a, b) = (&a.alternatives[rank], &b.alternatives[rank]);
        assert_eq!(other.text, format!("{} 42. {}", a.text, b.text));
        assert_eq!(other.score, (a.score + b.score) / 2.0);
        assert!(other.score <= joined.score);
    }
}

#[test]
fn a_translation_that_was_cut_in_a_sentence_is_told_for_the_line() {
    let mut options = raw_text();
    options.search = SearchOptions::greedy();
    options.search.max_length.cap = Some(3);
    let joined = &copying(options).translate(&["Ja. Wunderliches?"])[0];
    assert_eq!(joined.finished, Finish::LengthLimit);
}

#[test]
fn two_hundred_clauses_are_translated_in_pieces_and_nothing_is_lost() {
    let clauses: Vec<String> = (0..200).map(|n| format!("der Hund {n} rennt")).collect();
    let line = format!("Heute {}.", clauses.join(", "));
    for max_source_tokens in [512, 40, 3] {
        for lines in [Lines::RawText, Lines::Whole] {
            let options = TranslatorOptions {
                max_source_tokens,
                lines,
                ..Default::default()
            };
            let found = &copying(options).translate(&[&line])[0];
            assert_eq!(found.text, line, "{max_source_tokens} {lines:?}");
            assert_eq!(
                (found.truncated, found.finished),
                (None, Finish::EndOfSentence)
            );
        }
    }
}

/// A model that ends everything with a period.
#[test]
fn a_period_that_the_model_puts_behind_a_piece_goes_away() {
    let tokenizers = tokenizers();
    let period = *tokenizers.tgt.encode("a.").last().expect("a token");
    let vocab = tokenizers.tgt.vocab_size();
    let model = FakeModel::from_probabilities(vocab, move |source, target| {
        let words = source.len() - 1;
        let ended = source[words - 1] == period;
        match source.get(target.len()) {
            Some(&EOS) if !ended => vec![(period, 1.0)],
            Some(&token) => vec![(token, 1.0)],
            None => vec![(EOS, 1.0)],
        }
    });
    let options = TranslatorOptions {
        max_source_tokens: 12,
        ..raw_text()
    };
    let translator = Translator::new(model, tokenizers, options).expect("sound");
    let line = "ein hund rennt und zwei katzen rennt und ein hund rennt.";
    assert_eq!(translator.translate(&[line])[0].text, line);
}

proptest! {
    #[test]
    fn a_model_that_copies_gives_back_any_line_however_short_its_sources_are(
        line in prop_oneof!["\\PC{0,60}", "[a-dA-D,;.!? ]{0,80}"],
        max_source_tokens in 6usize..40,
        lines in prop::sample::select(vec![Lines::RawText, Lines::Whole]),
    ) {
        let options = TranslatorOptions {
            max_source_tokens, lines, repetition: Repetition::Allow, ..Default::default()
        };
        let found = &copying(options).translate(&[&line])[0];
        prop_assert_eq!(found.truncated, None);
        // CAPITALS come back as capitals, and not every letter is told apart then (ß, SS).
        if line.chars().any(char::is_uppercase) {
            prop_assert_eq!(found.text.to_uppercase(), line.to_uppercase());
        } else if !line.trim().is_empty() {
            prop_assert_eq!(&found.text, &line);
        }
    }
}

#[test]
fn a_prefix_starts_the_line_as_it_was_given() {
    let translator = random(raw_text());
    for text in ["Ein Hund. Wer da?", "EIN HUND RENNT!", "42. Wer da?", "😀"] {
        let line = WithPrefix {
            text: text.to_owned(),
            prefix: "Das ist".to_owned(),
        };
        let found = &translator.translate(&[line])[0].text;
        assert!(found.starts_with("Das ist"), "{text}: {found}");
        assert_eq!(found.matches("Das ist").count(), 1, "{text}: {found}");
    }
}

/// Words of a line and of its translation that are linked, with a model that can say.
#[test]
fn links_count_the_words_of_the_whole_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fake_dir::write(folder.path()).expect("written");
    let options = TranslatorOptions {
        alignments: true,
        ..raw_text()
    };
    let translator = Translator::open(folder.path()).expect("a model");
    let translator = translator.with_options(options).expect("sound options");
    let alone = translator.translate(&["a b c!", "d e?"]);
    let joined = &translator.translate(&["a b c!  1 + 1!  d e?"])[0];
    let links = |line: &Translation| line.alignment.clone().expect("asked for");
    let words = |text: &str| text.split_whitespace().count();
    let first = words(&alone[0].text);
    let mut expected = links(&alone[0]);
    expected.extend((0..3).map(|word| (3 + word, first + word)));
    let second = links(&alone[1]).into_iter();
    expected.extend(second.map(|(src, tgt)| (6 + src, first + 3 + tgt)));
    assert_eq!(links(joined), expected);
}
