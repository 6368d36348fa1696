//! Models of Marian and Bergamot with random weights say what an independent decoder says: the same log-probabilities
//! and the same greedy translations. `fixtures/make_marian.py` made them; Marian's own translations with a real model
//! are in `real_models.rs`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, Imported, WeightKind, import};
use attentive_model::ModelDir;
use attentive_model::config::{Autoregression, FinalNorm, NormPlacement, PositionKind, Tying};
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::{Method, Request, SearchModel};
use attentive_runtime::translator::{Repetition, Translator, TranslatorOptions};
use attentive_text::Tokenizer;
use attentive_text::special::{BOS, EOS, UNK};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/marian")
        .join(name)
}

fn imported(source: &Path) -> (tempfile::TempDir, ModelDir, Imported) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("model");
    let options = ImportOptions {
        weights: WeightKind::F32,
        ..ImportOptions::default()
    };
    let imported = import(source, &out, &options).expect("it can be imported");
    let directory = ModelDir::open(out).expect("a model directory");
    (folder, directory, imported)
}

/// Holds a model to what `expected.json` says; the first two tokens there are `</s>` and `<unk>`.
fn check(name: &str, directory: &ModelDir, src_vocabulary: Option<&Path>) {
    let text = fs::read_to_string(fixture(name).join("expected.json")).expect("a fixture");
    let expected: Value = serde_json::from_str(&text).expect("JSON");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let spelled = |value: &Value| -> Vec<String> {
        let text = |token: &Value| token.as_str().expect("text").to_owned();
        list(value).iter().map(text).collect()
    };
    let numbers = |value: &Value| -> Vec<usize> {
        let number = |id: &Value| id.as_u64().expect("a number") as usize;
        list(value).iter().map(number).collect()
    };
    let tgt_tokens = spelled(&expected["tokens"]);
    let src_tokens = match src_vocabulary {
        None => tgt_tokens.clone(),
        Some(path) => {
            let entries = attentive_text::tokenizer::vocabulary_file::yml(path).expect("YAML");
            entries.into_iter().map(|(token, _)| token).collect()
        }
    };
    let our = |side: &Tokenizer, tokens: &[String], id: usize| match id {
        0 => EOS,
        1 => UNK,
        id => side.id(&tokens[id]).expect("a token of the vocabulary"),
    };
    let (src, tgt) = (&directory.tokenizers.src, &directory.tokenizers.tgt);

    let model = CpuModel::open(directory, Compute::F32).expect("a model");
    for case in list(&expected["probabilities"]) {
        let source = numbers(&case["source"]).into_iter();
        let source: Vec<u32> = source.map(|id| our(src, &src_tokens, id)).collect();
        let mut state = model.start(&[&Request::new(source)]);
        let target = numbers(&case["target"]).into_iter();
        let target = target.map(|id| our(tgt, &tgt_tokens, id));
        let rows = list(&case["rows"]);
        for (token, row) in std::iter::once(BOS).chain(target).zip(&rows) {
            let mut found = Vec::new();
            model.step(&mut state, &[token], &mut found);
            for (id, value) in list(row).iter().enumerate() {
                let expected = value.as_f64().expect("a number") as f32;
                let found = found[our(tgt, &tgt_tokens, id) as usize];
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{name}: {:?} is {found}, not {expected}",
                    tgt_tokens[id]
                );
            }
        }
    }

    let mut options = TranslatorOptions::of(directory).expect("sound");
    options.repetition = Repetition::Allow;
    options.search.method = Method::Greedy;
    options.tokens = true;
    let translator = Translator::of_model(directory.clone(), Compute::F32, options).expect("sound");
    let sentences = fs::read_to_string(fixture("../sentences.txt")).expect("a fixture");
    let expected: Vec<_> = list(&expected["greedy"]).iter().map(spelled).collect();
    let lines: Vec<&str> = sentences.lines().take(expected.len()).collect();
    for ((line, found), expected) in lines
        .iter()
        .zip(translator.translate(&lines))
        .zip(&expected)
    {
        assert_eq!(
            &found.tokens.unwrap_or_default(),
            expected,
            "{name}: {line}"
        );
    }
}

#[test]
fn a_bin_of_floats_with_every_spelling_of_a_yml_vocabulary_says_what_marian_would() {
    let (_folder, directory, imported) = imported(&fixture("post-norm-bin"));
    assert_eq!(imported.source_format, "Marian (bin)");
    let config = &directory.config;
    // Not the positions that Hugging Face has, and CTranslate2's converter writes: see docs/models.md.
    assert_eq!(config.positions, PositionKind::TimingSignal);
    assert_eq!(
        (config.norm, config.tying),
        (NormPlacement::Post, Tying::All)
    );
    let tokenizer = &directory.tokenizers.src;
    for token in [
        "it's",
        "say\"",
        "a:b",
        "back\\slash",
        "äöü",
        "€",
        "#1",
        "-",
        "yes",
    ] {
        assert!(tokenizer.id(token).is_some(), "{token} was read");
    }
    check("post-norm-bin", &directory, None);
}

#[test]
fn norms_before_the_sub_layers_and_two_vocabularies_say_what_marian_would() {
    let (_folder, directory, imported) = imported(&fixture("pre-norm-npz"));
    assert_eq!(imported.source_format, "Marian (npz)");
    let config = &directory.config;
    assert_eq!(
        (config.norm, config.tying),
        (NormPlacement::Pre, Tying::None)
    );
    assert_eq!(config.final_norm, FinalNorm::Auto);
    let vocabulary = fixture("pre-norm-npz").join("vocab.src.yml");
    check("pre-norm-npz", &directory, Some(&vocabulary));
}

#[test]
fn a_bergamot_model_says_the_same_plain_and_packed_with_gzip() {
    let source = fixture("bergamot");
    let (plain_folder, plain, imported_as) = imported(&source);
    assert_eq!(imported_as.source_format, "Bergamot");
    assert_eq!(
        imported_as.languages,
        Some(("en".to_owned(), "pt".to_owned()))
    );
    assert_eq!(plain.config.autoregression, Autoregression::Ssru);
    check("bergamot", &plain, None);

    let packed = tempfile::tempdir().expect("a folder");
    for name in [
        "model.enpt.intgemm.alphas.bin",
        "vocab.enpt.spm",
        "lex.50.50.enpt.s2t.bin",
    ] {
        let bytes = fs::read(source.join(name)).expect("a fixture");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).expect("packed");
        let bytes = encoder.finish().expect("packed");
        fs::write(packed.path().join(format!("{name}.gz")), bytes).expect("written");
    }
    let (packed_folder, _, imported_as) = imported(packed.path());
    assert_eq!(imported_as.source_format, "Bergamot");
    let files = |folder: &tempfile::TempDir| {
        let read = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("readable"))
        };
        let entries = fs::read_dir(folder.path().join("model")).expect("a folder");
        let mut files: Vec<_> = entries
            .map(|entry| read(entry.expect("readable")))
            .collect();
        files.retain(|(name, _)| name != "generation.json"); // It names the weights.
        files.sort();
        files
    };
    assert!(
        files(&plain_folder) == files(&packed_folder),
        "the same model"
    );
}
