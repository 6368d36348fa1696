//! From a model directory to translations on the CPU, as a program that uses the library does it.

use std::sync::Arc;

use attentive_model::config::{Autoregression, TransformerConfig};
use attentive_model::{ModelDir, Shortlist, Tokenizers, fake_dir};
use attentive_runtime::cpu::{Compute, CpuModel, quantize};
use attentive_runtime::search::{Next, Request, SearchModel, SearchOptions};
use attentive_runtime::translator::WithPrefix;
use attentive_runtime::{Translation, Translator, TranslatorOptions};
use attentive_text::special::{BOS, EOS, PAD, source_ids};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fake_dir::write(folder.path()).expect("written");
    folder
}

fn shared_between_threads<T: Send + Sync>(value: T) -> T {
    value
}

fn lines(count: usize) -> Vec<String> {
    let letter = |place: usize| char::from(b'a' + (place % 26) as u8).to_string();
    let line = |i: usize| (0..1 + i * 7 % 11).map(move |word| letter(i * 3 + word * i));
    (0..count)
        .map(|i| line(i).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn a_directory_is_all_that_a_translator_needs() {
    let model = model();
    let translator = shared_between_threads(Translator::open(model.path()).expect("a model"));
    let translations = translator.translate(&["a b c", "", "d"]);
    assert_eq!(translations.len(), 3);
    assert!(!translations[0].text.is_empty() && translations[1].text.is_empty());
    assert!(translations[0].score < 0.0);
    let both = std::thread::scope(|scope| {
        let translate = || translator.translate(&["a b c", "", "d"]);
        [scope.spawn(translate), scope.spawn(translate)].map(|thread| thread.join().expect("done"))
    });
    assert_eq!(both, [translations.clone(), translations]);
}

#[test]
fn neither_batches_nor_threads_nor_order_change_a_bit_in_f32() {
    let model = model();
    let mut lines = lines(24);
    for search in [SearchOptions::greedy(), SearchOptions::beam(4)] {
        let translate = |lines: &[String], threads, batch_sentences| -> Vec<Translation> {
            let options = TranslatorOptions {
                search: search.clone(),
                threads: Some(threads),
                batch_sentences: Some(batch_sentences),
                alignments: true,
                ..Default::default()
            };
            let translator = Translator::open_with(model.path(), Compute::F32, options);
            translator.expect("a model").translate(lines)
        };
        let expected = translate(&lines, 1, 1);
        for (threads, batch) in [(1, 64), (2, 64), (3, 5)] {
            assert_eq!(translate(&lines, threads, batch), expected);
        }
        lines.reverse();
        let mut backwards = translate(&lines, 2, 9);
        backwards.reverse();
        assert_eq!(backwards, expected);
        lines.reverse();
    }
}

#[test]
fn alignments_name_words_that_are_there() {
    let model = model();
    let options = TranslatorOptions {
        alignments: true,
        ..Default::default()
    };
    let translator = Translator::open_with(model.path(), Compute::F32, options).expect("a model");
    for (line, translation) in lines(20).iter().zip(translator.translate(&lines(20))) {
        let links = translation.alignment.expect("asked for");
        let (src, tgt) = (line.split(' ').count(), translation.text.split(' ').count());
        assert!(links.iter().all(|&(i, j)| i < src && j < tgt), "{links:?}");
    }
}

#[test]
fn a_quantized_directory_translates_as_int8_from_the_original() {
    let model = model();
    let small = model.path().join("int8");
    quantize(model.path(), &small).expect("quantized");
    let translate = |path: &std::path::Path, compute| {
        let translator = Translator::open_with(path, compute, TranslatorOptions::default());
        translator.expect("a model").translate(&lines(30))
    };
    assert_eq!(
        translate(&small, Compute::Auto),
        translate(model.path(), Compute::Int8)
    );
    let _ = translate(model.path(), Compute::Auto);
}

/// A shortlist for the model: with every source token so many target tokens, in no order of meaning.
fn shortlist(model: &std::path::Path, targets: u32) -> Arc<Shortlist> {
    let tokenizers = Tokenizers::load(model).expect("tokenizers");
    let vocab = tokenizers.tgt.vocab_size() as u32;
    let list = |source: u32| (0..targets).map(|i| (source * 7 + i) % vocab).collect();
    let lists: Vec<Vec<u32>> = (0..vocab).map(list).collect();
    Arc::new(Shortlist::of_lists(&tokenizers, [], lists))
}

#[test]
fn a_shortlist_of_everything_changes_nothing() {
    let model = model();
    let everything = shortlist(model.path(), 30);
    for (compute, search) in [
        (Compute::Int8, SearchOptions::greedy()),
        (Compute::Int8, SearchOptions::beam(4)),
        (Compute::F32, SearchOptions::greedy()),
        (Compute::F32, SearchOptions::beam(4)),
    ] {
        let translate = |shortlist: Option<&Arc<Shortlist>>| {
            let options = TranslatorOptions {
                search: search.clone(),
                shortlist: shortlist.cloned(),
                ..Default::default()
            };
            let translator = Translator::open_with(model.path(), compute, options);
            translator.expect("a model").translate(&lines(24))
        };
        let (without, with) = (translate(None), translate(Some(&everything)));
        if compute == Compute::Int8 {
            assert_eq!(with, without);
        }
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with.text, without.text);
            assert!((with.score - without.score).abs() < 1e-4);
        }
    }
}

#[test]
fn with_a_shortlist_a_translation_depends_on_its_line_alone_and_keeps_to_the_candidates() {
    let model = model();
    let tokenizers = Tokenizers::load(model.path()).expect("tokenizers");
    let few = shortlist(model.path(), 3);
    let mut lines = lines(24);
    for (compute, search) in [
        (Compute::Int8, SearchOptions::greedy()),
        (Compute::F32, SearchOptions::beam(4)),
    ] {
        let translate = |lines: &[String], threads, batch_sentences| {
            let options = TranslatorOptions {
                search: search.clone(),
                threads: Some(threads),
                batch_sentences: Some(batch_sentences),
                shortlist: Some(few.clone()),
                ..Default::default()
            };
            let translator = Translator::open_with(model.path(), compute, options);
            translator.expect("a model").translate(lines)
        };
        let expected = translate(&lines, 1, 1);
        for (threads, batch) in [(1, 64), (2, 64), (3, 5)] {
            assert_eq!(translate(&lines, threads, batch), expected);
        }
        lines.reverse();
        let mut backwards = translate(&lines, 2, 9);
        backwards.reverse();
        assert_eq!(backwards, expected);
        lines.reverse();
        for (line, translation) in lines.iter().zip(&expected) {
            let source = source_ids(tokenizers.src.encode(line));
            let allowed = few.candidates(&source, &[]);
            let produced = tokenizers.tgt.encode(&translation.text);
            assert!(
                produced.iter().all(|token| allowed.contains(token)),
                "{line}"
            );
        }
    }
}

#[test]
fn a_prefix_may_hold_what_the_shortlist_does_not() {
    let model = model();
    let options = TranslatorOptions {
        shortlist: Some(shortlist(model.path(), 1)),
        ..Default::default()
    };
    let translator = Translator::open_with(model.path(), Compute::Int8, options).expect("a model");
    let line = WithPrefix {
        text: "a b".to_owned(),
        prefix: "q x z".to_owned(),
    };
    let translation = &translator.translate(&[line])[0];
    assert!(
        translation.text.starts_with("q x z"),
        "{}",
        translation.text
    );
    assert!(translation.score.is_finite());
}

#[test]
fn the_shortlist_of_another_model_is_refused() {
    let model = model();
    let letters = Tokenizers::load(model.path()).expect("tokenizers");
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 1,
        lowercase: false,
    };
    let words = Tokenizer::train(&options, &mut ["a b c"].into_iter()).expect("words");
    let others = Tokenizers {
        src: words.clone(),
        tgt: letters.tgt,
    };
    let lists = vec![Vec::new(); words.vocab_size()];
    let options = TranslatorOptions {
        shortlist: Some(Arc::new(Shortlist::of_lists(&others, [], lists))),
        ..Default::default()
    };
    let opened = Translator::open_with(model.path(), Compute::Auto, options.clone());
    let message = opened.expect_err("another model").to_string();
    assert!(message.contains("belongs to another model"), "{message}");
    let translator = Translator::open(model.path()).expect("a model");
    assert!(translator.with_options(options).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_text_makes_it_panic(lines in prop::collection::vec(".{0,60}", 0..6)) {
        static MODEL: std::sync::OnceLock<Translator> = std::sync::OnceLock::new();
        let translator = MODEL.get_or_init(|| Translator::open(model().path()).expect("a model"));
        prop_assert_eq!(translator.translate(&lines).len(), lines.len());
    }
}

/// What importers write for tokens that another program lacks: a row of zeros, whose scale in int8 is 0, and a bias
/// that leaves it no probability.
#[test]
fn rows_of_zeros_with_a_bias_of_minus_a_billion_do_no_harm() {
    let absent = [BOS, PAD];
    for autoregression in [Autoregression::SelfAttention, Autoregression::Ssru] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (plain, small) = (folder.path().join("f32"), folder.path().join("int8"));
        let configure = |config: &mut TransformerConfig| config.autoregression = autoregression;
        let change = |name: &str, values: &mut [f32]| {
            for token in absent.map(|token| token as usize) {
                match name {
                    "embeddings.target.weight" => values[token * 32..][..32].fill(0.0),
                    "embeddings.projection_bias" => values[token] = -1e9,
                    _ => {}
                }
            }
        };
        fake_dir::write_with(&plain, configure, change).expect("written");
        quantize(&plain, &small).expect("quantized");
        for (path, compute) in [
            (&plain, Compute::F32),
            (&plain, Compute::Int8),
            (&small, Compute::Auto),
        ] {
            let dir = ModelDir::open(path).expect("a model");
            let model = CpuModel::open(&dir, compute).expect("a model");
            let mut limited = Request::new(vec![5, 6, EOS]);
            limited.candidates = Some([BOS, EOS, 7, 9].into());
            let mut state = model.start(&[&Request::new(vec![5, PAD, 6, EOS]), &limited]);
            let mut log_probs = Vec::new();
            for tokens in [[BOS; 2], [7, 9], [PAD, BOS]] {
                model.step(&mut state, &tokens, &mut log_probs);
                let (all, some) = log_probs.split_at_mut(model.vocab());
                let rows = [(all, None), (some, limited.candidates.as_deref())];
                for next in rows.map(|(row, candidates)| Next::new(row, candidates)) {
                    let sum: f64 = next.iter().map(|(_, l)| f64::from(l).exp()).sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{compute:?}: {sum}");
                    assert!(absent.iter().all(|&token| next.get(token) < -9e8));
                }
            }
        }
    }
}
