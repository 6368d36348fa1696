//! Text to text with fake models: order, batches, empty and overlong lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use attentive_model::Generation;
use attentive_model::config::{PositionKind, Preset};
use attentive_model::directory::Tokenizers;
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{Finish, LengthLimit, Request, SearchModel, SearchOptions};
use attentive_runtime::translator::{
    Repetition, Translation, Translator, TranslatorOptions, WithPrefix,
};
use attentive_text::special::{BOS, EOS, PAD, decoder_input};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

const WORDS: &str = "a b c d e f g h i j k l m n o p q r s t u v w x y z";

fn tokenizers() -> Tokenizers {
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 1,
        lowercase: false,
    };
    let tokenizer = Tokenizer::train(&options, &mut [WORDS].into_iter()).expect("26 words");
    Tokenizers::shared(tokenizer)
}

fn vocab() -> usize {
    tokenizers().tgt.vocab_size()
}

fn copying(options: TranslatorOptions) -> Translator<FakeModel> {
    Translator::new(FakeModel::copying(vocab()), tokenizers(), options).expect("sound options")
}

fn texts(translations: &[Translation]) -> Vec<&str> {
    translations
        .iter()
        .map(|translation| translation.text.as_str())
        .collect()
}

#[test]
fn every_line_gets_its_translation_in_its_place_whatever_the_batches() {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let lines: Vec<String> = (0..40)
        .map(|n| words[n % 7..n % 7 + 1 + n * 5 % 17].join(" "))
        .collect();
    for batch_tokens in [0, 1, 10, 50, 2048] {
        let translator = copying(TranslatorOptions {
            batch_tokens,
            ..Default::default()
        });
        assert_eq!(
            texts(&translator.translate(&lines)),
            lines,
            "{batch_tokens}"
        );
    }
}

#[test]
fn batched_matches_single() {
    let lines = ["a b c", "d", "e f g h i j", "", "k l", "a b c"];
    for search in [
        SearchOptions::greedy(),
        SearchOptions {
            n_best: 3,
            ..SearchOptions::beam(4)
        },
        SearchOptions {
            n_best: 2,
            ..SearchOptions::sample(Default::default())
        },
    ] {
        let options = TranslatorOptions {
            search,
            ..Default::default()
        };
        let model = FakeModel::random(vocab(), 5);
        let translator = Translator::new(model, tokenizers(), options).expect("sound options");
        let single: Vec<_> = lines
            .iter()
            .flat_map(|line| translator.translate(&[line]))
            .collect();
        assert_eq!(translator.translate(&lines), single);
    }
}

#[test]
fn the_model_sees_every_source_with_its_end_and_nothing_else() {
    let model = FakeModel::new(vocab(), |source, _| {
        assert_eq!(source.iter().filter(|&&token| token == EOS).count(), 1);
        assert_eq!(source.last(), Some(&EOS));
        assert!(source.len() > 1 && !source.contains(&BOS) && !source.contains(&PAD));
        let mut row = vec![f32::NEG_INFINITY; vocab()];
        row[EOS as usize] = 0.0;
        row
    });
    let translator = Translator::new(model, tokenizers(), Default::default()).expect("sound");
    translator.translate(&["a", "b c d", "</s> e", " ", "<s>"]);
    assert_eq!(translator.model().rows_fed(), 4);
}

#[test]
fn empty_and_blank_lines_stay_empty_and_cost_nothing() {
    let translator = copying(TranslatorOptions::default());
    let translations = translator.translate(&["", "  \t ", "\u{3000}"]);
    assert_eq!(texts(&translations), ["", "", ""]);
    assert_eq!(translator.model().rows_fed(), 0);
    assert!(
        translations
            .iter()
            .all(|t| t.truncated.is_none() && t.alternatives.is_empty())
    );
    assert!(translator.translate::<&str>(&[]).is_empty());
}

#[test]
fn an_overlong_line_is_translated_in_pieces_and_nothing_is_lost() {
    let translator = copying(TranslatorOptions {
        max_source_tokens: 5,
        ..Default::default()
    });
    let lines = ["a b c d", "a b c d e", WORDS];
    let translations = translator.translate(&lines);
    assert_eq!(texts(&translations), lines);
    assert!(translations.iter().all(|found| found.truncated.is_none()));
    let clauses = vec!["a b c"; 200].join(" ");
    assert_eq!(translator.translate(&[&clauses])[0].text, clauses);
}

#[test]
fn words_that_the_vocabulary_lacks_are_counted() {
    let translations = copying(Default::default()).translate(&["a b", "a grün b blau"]);
    assert_eq!(translations[0].unknown, 0);
    assert_eq!(translations[1].unknown, 2);
}

#[test]
fn a_stream_is_answered_in_its_order_whatever_the_window() {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let lines: Vec<String> = (0..100)
        .map(|n| words[n % 9..n % 9 + n * 5 % 17].join(" "))
        .collect();
    for window in [1, 7, 1000] {
        let translator = copying(TranslatorOptions {
            window,
            ..Default::default()
        });
        let mut answers = Vec::new();
        let stream = lines.iter().map(Ok::<_, String>);
        let ended = translator.translate_stream(stream, |line, translation| {
            assert_eq!(*line, translation.text);
            answers.push(line);
            Ok(())
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(answers.len(), lines.len());
    }
}

#[test]
fn a_stream_is_read_no_further_than_a_window_ahead() {
    let translator = copying(TranslatorOptions {
        window: 10,
        ..Default::default()
    });
    let read = std::cell::Cell::new(0);
    let endless = std::iter::repeat_with(|| {
        read.set(read.get() + 1);
        Ok("a b")
    });
    let mut answered = 0;
    let ended = translator.translate_stream(endless, |_, _| {
        answered += 1;
        assert!(read.get() <= answered + 9);
        if answered == 25 {
            Err("enough")
        } else {
            Ok(())
        }
    });
    assert_eq!((ended, answered), (Err("enough"), 25));
}

#[test]
fn an_error_among_the_lines_ends_the_stream_and_loses_no_line_before_it() {
    let translator = copying(TranslatorOptions::default());
    let lines = [Ok("a"), Ok("b"), Err("unreadable"), Ok("c")];
    let mut answers = Vec::new();
    let ended = translator.translate_stream(lines, |_, translation| {
        answers.push(translation.text);
        Ok(())
    });
    assert_eq!(ended, Err("unreadable"));
    assert_eq!(answers, ["a", "b"]);
}

#[test]
fn translations_do_not_depend_on_threads_or_batches() {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let lines: Vec<String> = (0..60)
        .map(|n| words[n % 9..n % 9 + 1 + n * 5 % 12].join(" "))
        .collect();
    let translate = |threads, batch_sentences| {
        let options = TranslatorOptions {
            threads: Some(threads),
            batch_sentences: Some(batch_sentences),
            ..Default::default()
        };
        let model = FakeModel::random(vocab(), 5);
        let translator = Translator::new(model, tokenizers(), options).expect("sound options");
        translator.translate(&lines)
    };
    let expected = translate(1, 1);
    for (threads, batch_sentences) in [(1, 64), (2, 64), (2, 3), (5, 7)] {
        assert_eq!(translate(threads, batch_sentences), expected, "{threads}");
    }
}

#[test]
fn a_prefix_starts_the_translation_of_its_line_only() {
    let translator = copying(TranslatorOptions::default());
    let line = |text: &str, prefix: &str| WithPrefix {
        text: text.to_owned(),
        prefix: prefix.to_owned(),
    };
    let lines = [line("a b c", " x y "), line("a b c", ""), line("", "x")];
    let translations = translator.translate(&lines);
    assert_eq!(texts(&translations), ["x y c", "a b c", ""]);
}

/// Repeats "a b" for ever, unless it may not repeat it; then it ends.
fn repeating() -> FakeModel {
    FakeModel::from_probabilities(vocab(), |_, target| {
        vec![(4 + target.len() as u32 % 2, 0.9), (EOS, 0.1)]
    })
}

#[test]
fn a_translation_that_repeats_itself_is_searched_again_and_says_so() {
    let with = |repetition| {
        let options = TranslatorOptions {
            search: SearchOptions::greedy(),
            repetition,
            ..Default::default()
        };
        let translator = Translator::new(repeating(), tokenizers(), options).expect("sound");
        let repetitive_source = "a b c ".repeat(6);
        translator.translate(&["a b c d e f", &repetitive_source])
    };
    let blocked = with(Repetition::Block);
    assert!(blocked[0].repetition_blocked);
    assert_eq!(blocked[0].finished, Finish::EndOfSentence);
    assert_eq!(blocked[0].text.split(' ').count(), 4, "{}", blocked[0].text);
    assert!(
        !blocked[1].repetition_blocked,
        "its source repeats itself too"
    );
    assert_eq!(blocked[1].finished, Finish::LengthLimit);
    let allowed = with(Repetition::Allow);
    assert!(!allowed[0].repetition_blocked);
    assert_eq!(allowed[0].finished, Finish::LengthLimit);
}

#[test]
fn tokens_and_alignments_come_when_they_are_asked_for() {
    let plain = copying(TranslatorOptions::default()).translate(&["a b"]);
    assert_eq!((&plain[0].tokens, &plain[0].alignment), (&None, &None));
    let search = SearchOptions {
        n_best: 2,
        ..SearchOptions::beam(3)
    };
    let translator = copying(TranslatorOptions {
        search,
        tokens: true,
        alignments: true,
        max_source_tokens: 4,
        ..Default::default()
    });
    let asked = translator.translate(&["a b", "a b c d"]);
    assert_eq!(asked[0].tokens, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(asked[0].alignment, Some(vec![(0, 0), (1, 1)]));
    assert!(asked[0].alternatives[0].alignment.is_some());
    let in_pieces = vec![(0, 0), (1, 1), (2, 2), (3, 3)];
    assert_eq!(asked[1].alignment, Some(in_pieces));
}

/// Remembers the lengths of the sources in every batch.
struct Recording {
    model: FakeModel,
    batches: Mutex<Vec<Vec<usize>>>,
}

impl SearchModel for Recording {
    type State = <FakeModel as SearchModel>::State;

    fn vocab(&self) -> usize {
        self.model.vocab()
    }

    fn start(&self, requests: &[&Request]) -> Self::State {
        self.batches.lock().expect("not poisoned").push(
            requests
                .iter()
                .map(|request| request.source.len())
                .collect(),
        );
        self.model.start(requests)
    }

    fn step(&self, state: &mut Self::State, tokens: &[u32], log_probs: &mut Vec<f32>) {
        self.model.step(state, tokens, log_probs);
    }

    fn reorder(&self, state: &mut Self::State, rows: &[usize]) {
        self.model.reorder(state, rows);
    }
}

#[test]
fn a_batch_holds_similar_lengths_and_no_more_tokens_than_allowed_with_padding() {
    let model = Recording {
        model: FakeModel::copying(vocab()),
        batches: Mutex::default(),
    };
    let options = TranslatorOptions {
        batch_tokens: 9,
        threads: Some(1),
        ..Default::default()
    };
    let translator = Translator::new(model, tokenizers(), options).expect("sound options");
    translator.translate(&[
        "a",
        "a b c d e f g h i j",
        "a b",
        "b",
        "c",
        "a b c",
        "d",
        "e",
        "c d",
    ]);
    let batches = translator.model().batches.lock().expect("not poisoned");
    assert_eq!(
        *batches,
        [vec![11], vec![4, 3], vec![3, 2, 2], vec![2, 2, 2]]
    );
}

#[test]
fn all_callers_share_the_threads_of_a_translator() {
    let (searches, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let counters = Arc::new((searches, most));
    let (counted, copying) = (counters.clone(), FakeModel::copying(vocab()));
    let model = FakeModel::new(vocab(), move |source, target| {
        let now = counted.0.fetch_add(1, Ordering::SeqCst) + 1;
        counted.1.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_micros(200));
        let (mut state, mut row) = (copying.start(&[&Request::new(source.to_vec())]), Vec::new());
        for token in decoder_input(target) {
            copying.step(&mut state, &[token], &mut row);
        }
        counted.0.fetch_sub(1, Ordering::SeqCst);
        row
    });
    let options = TranslatorOptions {
        search: SearchOptions::greedy(),
        batch_sentences: Some(1),
        threads: Some(2),
        ..Default::default()
    };
    let translator = Translator::new(model, tokenizers(), options.clone()).expect("sound");
    let other = translator.with_options(options).expect("sound");
    std::thread::scope(|scope| {
        for caller in 0..6 {
            let translator = if caller < 3 { &translator } else { &other };
            scope.spawn(move || {
                let lines = ["a b", "c", "d e f", "g"];
                assert_eq!(texts(&translator.translate(&lines)), lines);
                assert_eq!(texts(&translator.translate(&lines[..1])), lines[..1]);
            });
        }
    });
    assert!(counters.1.load(Ordering::SeqCst) <= 2);
}

#[test]
fn an_engine_is_shared_unless_the_options_want_another_number_of_threads() {
    let with = |threads| TranslatorOptions {
        threads: Some(threads),
        ..Default::default()
    };
    let translator = copying(with(2));
    let same = translator.with_options(with(2)).expect("sound");
    let more = translator.with_options(with(3)).expect("sound");
    assert!(Arc::ptr_eq(translator.engine(), same.engine()));
    assert_eq!(more.engine().threads(), 3);
    let shared = more.with_engine(translator.engine().clone());
    assert_eq!(shared.engine().threads(), 2);
    assert_eq!(texts(&shared.translate(&["a", "b c"])), ["a", "b c"]);
}

#[test]
fn a_panic_of_the_model_reaches_the_caller_and_the_translator_lives_on() {
    let d = tokenizers().src.encode("d")[0];
    let model = FakeModel::from_probabilities(vocab(), move |source, _| {
        assert_ne!(source[0], d, "a model that cannot do this");
        vec![(EOS, 1.0)]
    });
    let options = TranslatorOptions {
        batch_sentences: Some(1),
        threads: Some(2),
        ..Default::default()
    };
    let translator = Translator::new(model, tokenizers(), options).expect("sound");
    for lines in [&["d"][..], &["a", "d", "b"]] {
        let translate = std::panic::AssertUnwindSafe(|| translator.translate(lines));
        assert!(std::panic::catch_unwind(translate).is_err());
        assert_eq!(texts(&translator.translate(&["a", "b"])), ["", ""]);
    }
}

#[test]
fn alternatives_are_the_next_best() {
    let search = SearchOptions {
        n_best: 3,
        ..SearchOptions::beam(5)
    };
    let translator = copying(TranslatorOptions {
        search,
        ..Default::default()
    });
    let translation = translator.translate(&["a b"]).remove(0);
    assert_eq!(translation.text, "a b");
    assert_eq!(translation.alternatives.len(), 2);
    assert!(
        translation
            .alternatives
            .iter()
            .all(|other| other.text != "a b")
    );
    assert!(translation.score >= translation.alternatives[0].score);
    assert!(translation.alternatives[0].score >= translation.alternatives[1].score);
}

#[test]
fn a_cut_translation_says_so() {
    let max_length = LengthLimit {
        cap: Some(2),
        ..Default::default()
    };
    let search = SearchOptions {
        max_length,
        ..SearchOptions::greedy()
    };
    let translator = copying(TranslatorOptions {
        search,
        ..Default::default()
    });
    let translation = translator.translate(&["a b c"]).remove(0);
    assert_eq!(
        (translation.text.as_str(), translation.finished),
        ("a b", Finish::LengthLimit)
    );
}

#[test]
fn a_model_for_another_vocabulary_is_refused() {
    let error = Translator::new(FakeModel::copying(29), tokenizers(), Default::default())
        .expect_err("26 words and 4 special tokens are 30");
    let message = error.to_string();
    assert!(
        message.contains("the target tokenizer has 30 tokens"),
        "{message}"
    );
    assert!(message.contains("the model expects 29"), "{message}");
}

#[test]
fn impossible_options_are_refused_all_at_once() {
    let search = SearchOptions {
        n_best: 9,
        ..SearchOptions::beam(4)
    };
    let options = TranslatorOptions {
        search,
        max_source_tokens: 1,
        ..Default::default()
    };
    let error = Translator::new(FakeModel::copying(vocab()), tokenizers(), options)
        .expect_err("impossible options");
    assert_eq!(
        error.to_string(),
        "`n_best` (9) must be at most the beam size (4)\n`max_source_tokens` (1) must be at least 2"
    );
}

#[test]
fn learned_positions_limit_both_lengths_and_sinusoids_none() {
    let mut config = Preset::Tiny.config(30, 30);
    let options = TranslatorOptions::default();
    assert_eq!(options.clone().within(config.position_limit()), options);
    (config.positions, config.max_positions) = (PositionKind::Learned, 64);
    let within = options.within(config.position_limit());
    assert_eq!(within.max_source_tokens, 64);
    assert_eq!(within.search.max_length.cap, Some(64));
    config.max_positions = 100;
    assert_eq!(within.clone().within(config.position_limit()), within);
}

#[test]
fn text_is_framed_as_the_model_says() {
    let plain = copying(TranslatorOptions::default());
    let [first, hidden] = ["a", "c"].map(|word| tokenizers().src.id(word).expect("a word"));
    let framed = |generation: Generation| {
        let translator = copying(TranslatorOptions::default()).framed(&generation);
        translator.translate(&["b c d"]).remove(0).text
    };
    assert_eq!(plain.translate(&["b c d"])[0].text, "b c d");
    let prefix = Generation {
        source_prefix: vec![first],
        ..Generation::default()
    };
    assert_eq!(
        framed(prefix.clone()),
        "a b c d",
        "the model copies what it reads"
    );
    let given = Generation {
        target_prefix: vec![first],
        ..prefix
    };
    assert_eq!(framed(given.clone()), "b c d", "what is given is no text");
    let less = Generation {
        hidden: vec![hidden],
        ..given
    };
    assert_eq!(framed(less), "b d", "nor is what is hidden");
}
