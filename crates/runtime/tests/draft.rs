//! Draft and verify: whatever the draft, what is found is what greedy search finds.

use std::sync::Arc;

use attentive_model::config::{Autoregression, TransformerConfig};
use attentive_model::{ModelDir, Shortlist, fake_dir};
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::draft::{self, Draft, ModelDraft, Proposals};
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{
    LengthLimit, NoRepeatedNgrams, Request, SearchModel, SearchOptions, search,
};
use attentive_runtime::{Translator, TranslatorOptions};
use attentive_text::special::{BOS, EOS, PAD};
use proptest::prelude::*;

const VOCAB: usize = 9;

/// Proposes these tokens, over and over, whatever it is asked for.
#[derive(Debug)]
struct Stubborn(Vec<u32>);

impl Draft for Stubborn {
    fn begin<'a>(&'a self, _: &Request) -> Box<dyn Proposals + 'a> {
        Box::new(Repeated(self.0.iter().cycle()))
    }

    fn most(&self) -> usize {
        8
    }
}

struct Repeated<'a>(std::iter::Cycle<std::slice::Iter<'a, u32>>);

impl Proposals for Repeated<'_> {
    fn propose(&mut self, _: &[u32], count: usize, proposal: &mut Vec<u32>) {
        proposal.extend(self.0.by_ref().take(count + 2));
    }
}

/// A draft that proposes its guesses however unsure it is.
fn guessing<M>(model: M, position_limit: Option<usize>) -> ModelDraft<M> {
    ModelDraft::new(model, position_limit).with_least_probability(0.0)
}

fn greedy(ngram: Option<usize>, min_length: usize, limit: usize) -> SearchOptions {
    SearchOptions {
        no_repeat_ngram: ngram,
        min_length,
        max_length: LengthLimit {
            ratio: 0.0,
            extra: limit,
            cap: None,
        },
        ..SearchOptions::greedy()
    }
}

fn assert_same<M: SearchModel>(
    model: &M,
    request: &Request,
    options: &SearchOptions,
    draft: &dyn Draft,
) -> draft::Acceptance {
    let (found, acceptance) = draft::search(model, request, options, draft);
    let expected = search(model, &[request], options).remove(0);
    assert_eq!(vec![found], expected, "{draft:?}");
    assert!(acceptance.accepted <= acceptance.proposed);
    acceptance
}

proptest! {
    #[test]
    fn any_draft_gives_what_greedy_search_gives(
        seed: u64,
        other: u64,
        guesses in prop::collection::vec(0..VOCAB as u32 + 3, 1..40),
        prefix in prop::collection::vec(3..VOCAB as u32, 0..6),
        ngram in prop::option::of(1usize..4),
        own_ngram in prop::option::of(1usize..4),
        min_length in 0usize..12,
        limit in 1usize..30,
        restricted: bool,
    ) {
        let model = FakeModel::random(VOCAB, seed);
        let mut request = Request { prefix, ..Request::new(vec![4, 5, EOS]) };
        if let Some(n) = own_ngram {
            request.constraints.push(Arc::new(NoRepeatedNgrams(n)));
        }
        if restricted {
            request.candidates = Some([EOS, 4, 6, 7].into());
        }
        let options = greedy(ngram, min_length, limit);
        let drafts: [&dyn Draft; 4] = [
            &Stubborn(guesses),
            &guessing(FakeModel::random(VOCAB, seed), None),
            &guessing(FakeModel::random(VOCAB, other), None).with_most(7),
            &guessing(FakeModel::random(VOCAB, seed), Some(5)),
        ];
        for draft in drafts {
            assert_same(&model, &request, &options, draft);
        }
    }
}

#[test]
fn a_draft_that_is_always_right_saves_steps_and_one_that_never_is_costs_none() {
    let source: Vec<u32> = (0..24).map(|i| 3 + i % 6).chain([EOS]).collect();
    let (model, request) = (FakeModel::copying(VOCAB), Request::new(source));
    let options = SearchOptions::greedy();
    let right = guessing(FakeModel::copying(VOCAB), None).with_most(8);
    let right = assert_same(&model, &request, &options, &right);
    assert_eq!(right.accepted, right.proposed);
    assert!(right.steps <= 6, "{right:?}");

    let unsure = ModelDraft::new(FakeModel::random(VOCAB, 1), None).with_least_probability(0.9);
    assert_eq!(assert_same(&model, &request, &options, &unsure).proposed, 0);

    // Never the token at its place, and never one that cannot follow.
    let wrong = FakeModel::new(VOCAB, |source, target| {
        let right = source.get(target.len()).copied().unwrap_or(EOS);
        let mut row = vec![-9.0; VOCAB];
        row[if right == 3 { 4 } else { 3 }] = -0.1;
        row
    });
    let wrong = assert_same(&model, &request, &options, &guessing(wrong, None));
    assert_eq!((wrong.accepted, wrong.steps), (0, 25));

    for token in [BOS, EOS, PAD, VOCAB as u32, u32::MAX] {
        let none = assert_same(&model, &request, &options, &Stubborn(vec![token]));
        assert_eq!((none.proposed, none.steps), (0, 25), "{token}");
    }
}

fn fake_models() -> (tempfile::TempDir, ModelDir) {
    fake_models_with(Autoregression::SelfAttention)
}

fn fake_models_with(autoregression: Autoregression) -> (tempfile::TempDir, ModelDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configure = |config: &mut TransformerConfig| config.autoregression = autoregression;
    fake_dir::write_with(folder.path(), configure, |_, _| {}).expect("written");
    let dir = ModelDir::open(folder.path()).expect("a model");
    (folder, dir)
}

#[test]
fn the_cpu_model_verifies_to_the_last_bit() {
    verifies_to_the_last_bit(Autoregression::SelfAttention);
}

#[test]
fn a_recurrent_cpu_model_verifies_to_the_last_bit() {
    verifies_to_the_last_bit(Autoregression::Ssru);
}

fn verifies_to_the_last_bit(autoregression: Autoregression) {
    let (_folder, dir) = fake_models_with(autoregression);
    let open = |compute| CpuModel::open(&dir, compute).expect("a model");
    for compute in [Compute::F32, Compute::Int8] {
        let model = open(compute);
        let mut accepted = 0;
        for len in [1, 5, 16, 33] {
            let source = (0..len).map(|i| 4 + i * 5 % 26).chain([EOS]).collect();
            // Long enough for several pages, and never ending early.
            let options = greedy(Some(3), 45, 50);
            let request = Request::new(source);
            let same = guessing(open(compute), None).with_most(20);
            accepted += assert_same(&model, &request, &options, &same).accepted;
            let other = guessing(open(Compute::Int8), Some(40));
            assert_same(&model, &request, &options, &other);
            let lists = vec![vec![8, 9, 12]; dir.tokenizers.src.vocab_size()];
            let shortlist = Shortlist::of_lists(&dir.tokenizers, [5, 6, 7], lists);
            let limited = guessing(open(compute), None).with_shortlist(Arc::new(shortlist));
            assert_same(&model, &request, &options, &limited);
            assert_same(&model, &request, &options, &Stubborn(vec![5, 9, 4, 4]));
        }
        assert!(accepted > 50, "{accepted}");
    }
}

#[test]
fn a_translator_with_a_draft_says_the_same_and_refuses_what_drafts_cannot_do() {
    let (_folder, dir) = fake_models();
    let with = |search| {
        let options = TranslatorOptions {
            search,
            ..Default::default()
        };
        Translator::of_model(dir.clone(), Compute::F32, options).expect("a model")
    };
    let plain = with(SearchOptions::greedy());
    let drafted = with(SearchOptions::greedy())
        .with_draft_model(&dir, Compute::Int8, None)
        .expect("greedy");
    let lines = [
        "a b c d e f",
        "",
        "x",
        "q w e r t z u i o p a s d f g h j k l",
    ];
    for line in lines {
        assert_eq!(drafted.translate(&[line]), plain.translate(&[line]));
    }
    assert_eq!(drafted.translate(&lines), plain.translate(&lines));

    let beam = with(SearchOptions::beam(4)).with_draft_model(&dir, Compute::F32, None);
    assert!(beam.expect_err("a beam").to_string().contains("--beam 1"));
    let beam = drafted.with_options(TranslatorOptions::default());
    assert!(beam.expect_err("a beam").to_string().contains("greedy"));
}

#[test]
fn a_draft_with_another_tokenizer_is_refused_with_its_name() {
    use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
    let (_folder, dir) = fake_models();
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 1,
        lowercase: false,
    };
    let words: Vec<String> = ('b'..='{').map(String::from).collect();
    let other = Tokenizer::train(&options, &mut words.iter().map(String::as_str)).expect("words");
    let mut draft = dir.clone();
    draft.tokenizers.tgt = other;
    let options = TranslatorOptions {
        search: SearchOptions::greedy(),
        ..Default::default()
    };
    let translator = Translator::of_model(dir, Compute::F32, options).expect("a model");
    let refused = translator.with_draft_model(&draft, Compute::F32, None);
    let message = refused.expect_err("another tokenizer").to_string();
    let name = draft.path.display().to_string();
    assert!(
        message.contains(&name) && message.contains("the target"),
        "{message}"
    );
}
