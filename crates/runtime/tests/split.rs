//! Lines in their sentences, searched for in any company: together they are what `translate` gives.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use attentive_model::directory::Tokenizers;
use attentive_runtime::TranslatorOptions;
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{Feed, Hypothesis, Load, Request, SearchOptions};
use attentive_runtime::translator::{
    First, Found, Lines, SplitLine, Translation, Translator, WithPrefix,
};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

fn translator(lines: Lines) -> Translator<FakeModel> {
    let options = TokenizerOptions {
        kind: TokenizerKind::Bpe,
        vocab_size: 300,
        min_frequency: 1,
        lowercase: false,
    };
    let text = "Ein Hund rennt. Zwei Katzen schlafen! Wer ist da? ein hund rennt zwei katzen";
    let tokenizer = Tokenizer::train(&options, &mut [text].into_iter()).expect("some words");
    let model = FakeModel::random(tokenizer.vocab_size(), 3);
    let options = TranslatorOptions {
        lines,
        search: SearchOptions {
            n_best: 3,
            ..SearchOptions::beam(4)
        },
        tokens: true,
        ..Default::default()
    };
    Translator::new(model, Tokenizers::shared(tokenizer), options).expect("sound options")
}

/// All sentences of all lines, two at a time, the last first.
struct Sentences<'a> {
    translator: &'a Translator<FakeModel>,
    lines: &'a [Arc<SplitLine>],
    waiting: VecDeque<((usize, usize), Request)>,
    begun: Vec<(usize, usize)>,
    firsts: HashMap<(usize, usize), First>,
    found: Vec<Vec<Option<Translation>>>,
    abandoned: Option<(usize, usize)>,
}

impl Feed for Sentences<'_> {
    type Request = Request;

    fn refill(&mut self, running: Load, joining: &mut Vec<(usize, Request)>) {
        while running.sentences + joining.len() < 2 {
            let Some((place, request)) = self.waiting.pop_back() else {
                return;
            };
            joining.push((self.begun.len(), request));
            self.begun.push(place);
        }
    }

    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
        let (line, sentence) = self.begun[number];
        let split = &self.lines[line];
        let first = self.firsts.remove(&(line, sentence));
        match self.translator.found(split, sentence, hypotheses, first) {
            Found::Translation(translation) => self.found[line][sentence] = Some(translation),
            Found::Again(request, first) => {
                self.firsts.insert((line, sentence), first);
                self.waiting.push_back(((line, sentence), request));
            }
        }
    }

    fn is_abandoned(&self, number: usize) -> bool {
        self.abandoned == Some(self.begun[number])
    }
}

fn searched(
    translator: &Translator<FakeModel>,
    lines: &[WithPrefix],
    abandoned: Option<(usize, usize)>,
) -> (Vec<Arc<SplitLine>>, Vec<Vec<Option<Translation>>>) {
    let split: Vec<Arc<SplitLine>> = lines
        .iter()
        .map(|l| Arc::new(translator.split(l)))
        .collect();
    let mut sentences = Sentences {
        translator,
        lines: &split,
        waiting: VecDeque::new(),
        begun: Vec::new(),
        firsts: HashMap::new(),
        found: split.iter().map(|line| vec![None; line.len()]).collect(),
        abandoned,
    };
    for (number, line) in split.iter().enumerate() {
        for sentence in 0..line.len() {
            match line.request(sentence) {
                Some(request) => sentences
                    .waiting
                    .push_back(((number, sentence), translator.request(request))),
                None => {
                    let Found::Translation(copied) =
                        translator.found(line, sentence, Vec::new(), None)
                    else {
                        panic!("a copy does not repeat itself");
                    };
                    sentences.found[number][sentence] = Some(copied);
                }
            }
        }
    }
    translator.search_feed(&mut sentences);
    let found = sentences.found;
    (split, found)
}

fn joined(split: &[Arc<SplitLine>], found: Vec<Vec<Option<Translation>>>) -> Vec<Translation> {
    let join = |(line, parts): (&Arc<SplitLine>, Vec<Option<Translation>>)| {
        line.join(parts.into_iter().map(|part| part.expect("found")).collect())
    };
    split.iter().zip(found).map(join).collect()
}

fn line() -> impl Strategy<Value = WithPrefix> {
    let piece = prop_oneof![
        Just("Ein Hund rennt. ".to_owned()),
        Just("ZWEI KATZEN SCHLAFEN! ".to_owned()),
        Just("42 % ".to_owned()),
        Just("Siehe https://example.org/a. ".to_owned()),
        "\\PC{0,12}",
    ];
    let text = prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat());
    let prefix = prop_oneof![Just(String::new()), Just("ein hund".to_owned())];
    (text, prefix).prop_map(|(text, prefix)| WithPrefix { text, prefix })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_sentences_of_lines_make_up_what_translate_gives(
        lines in prop::collection::vec(line(), 1..4),
        raw in any::<bool>(),
    ) {
        let translator = translator(if raw { Lines::RawText } else { Lines::Whole });
        let (split, found) = searched(&translator, &lines, None);
        prop_assert_eq!(joined(&split, found), translator.translate(&lines));
    }
}

#[test]
fn an_abandoned_sentence_leaves_and_the_others_are_found_as_if_it_had_never_been() {
    let translator = translator(Lines::RawText);
    let line = WithPrefix {
        text: "Ein Hund rennt. Zwei Katzen schlafen! Wer ist da? Ein Hund.".to_owned(),
        prefix: String::new(),
    };
    let lines = [line];
    let (_, all) = searched(&translator, &lines, None);
    for abandoned in 0..4 {
        let (_, found) = searched(&translator, &lines, Some((0, abandoned)));
        for sentence in 0..4 {
            if sentence == abandoned {
                assert_eq!(found[0][sentence], None);
            } else {
                assert_eq!(found[0][sentence], all[0][sentence]);
            }
        }
    }
}

#[test]
fn characters_of_a_finished_translation_are_counted_with_what_was_hidden() {
    let translator = translator(Lines::RawText);
    let line = translator.split(&"Siehe https://example.org/a bitte. GROSSE STRASSE!");
    assert_eq!(line.len(), 2);
    let hidden = "Siehe \u{E000} bitte.";
    assert_eq!(
        line.finished_chars(0, hidden),
        line.sentence(0).0.chars().count()
    );
    assert_eq!(line.finished_chars(0, "Siehe "), 6);
    assert_eq!(line.finished_chars(1, "Große"), "GROSSE".len());
}
