//! Models of Hugging Face and CTranslate2 with random weights say what they say there: the same log-probabilities, and
//! the same 200 sentences, greedy and with a beam. `fixtures/make_huggingface.py` made them.

use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, WeightKind, import};
use attentive_model::ModelDir;
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::{Method, Request, SearchModel};
use attentive_runtime::translator::{Repetition, Translator, TranslatorOptions};
use attentive_text::special::{BOS, EOS, PAD, SPECIALS};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a fixture")).expect("JSON")
}

fn sentences() -> Vec<String> {
    let text = fs::read_to_string(fixtures().join("sentences.txt")).expect("a fixture");
    text.lines().map(str::to_owned).collect()
}

fn imported(source: &Path, options: &ImportOptions) -> (tempfile::TempDir, ModelDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("model");
    import(source, &out, options).expect("it can be imported");
    let directory = ModelDir::open(out).expect("a model directory");
    (folder, directory)
}

/// The tokens of each sentence's translation.
fn translations(
    directory: &ModelDir,
    beam: usize,
    change: impl FnOnce(&mut TranslatorOptions),
) -> Vec<Vec<String>> {
    let mut options = TranslatorOptions::of(directory).expect("sound");
    options.repetition = Repetition::Allow;
    options.search.method = Method::of_beam(beam);
    options.tokens = true;
    change(&mut options);
    let translator = Translator::of_model(directory.clone(), Compute::F32, options).expect("sound");
    let found = translator.translate(&sentences());
    found
        .into_iter()
        .map(|found| found.tokens.unwrap_or_default())
        .collect()
}

fn same(name: &str, found: &[Vec<String>], expected: &[Vec<String>]) {
    assert_eq!(found.len(), expected.len());
    let wrong: Vec<_> = found
        .iter()
        .zip(expected)
        .enumerate()
        .filter(|(_, (a, b))| a != b)
        .collect();
    assert!(
        wrong.is_empty(),
        "{name}: {} differ, the first are {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(2)]
    );
}

fn check(name: &str, options: &ImportOptions) {
    let source = fixtures().join("huggingface").join(name);
    let expected = json(&source.join("expected.json"));
    let (_folder, directory) = imported(&source, options);
    let tokens: Vec<&str> = expected["tokens"]
        .as_array()
        .expect("tokens")
        .iter()
        .map(|t| t.as_str().expect("text"))
        .collect();
    let ids = |value: &Value| -> Vec<usize> {
        value
            .as_array()
            .expect("ids")
            .iter()
            .map(|id| id.as_u64().expect("a number") as usize)
            .collect()
    };

    let model = CpuModel::open(&directory, Compute::F32).expect("a model");
    let our_id = |side: &attentive_text::Tokenizer, id: usize| match tokens[id] {
        "<pad>" => PAD,
        "</s>" => EOS,
        "<s>" => side.id("<s>'").expect("a token"),
        token => side
            .id(token)
            .unwrap_or_else(|| panic!("{name}: no token {token}")),
    };
    for case in expected["probabilities"].as_array().expect("cases") {
        let (src, tgt) = (&directory.tokenizers.src, &directory.tokenizers.tgt);
        let source_text: Vec<u32> = match name {
            "marian-relu-separate" => {
                let vocabulary = json(&source.join("vocab.json"));
                let vocabulary = vocabulary.as_object().expect("a vocabulary");
                let spelling = |id: usize| {
                    vocabulary
                        .iter()
                        .find(|(_, n)| n.as_u64() == Some(id as u64))
                        .expect("a token")
                        .0
                };
                ids(&case["source"])
                    .into_iter()
                    .map(|id| src.id(spelling(id)).expect("a token"))
                    .collect()
            }
            _ => ids(&case["source"])
                .into_iter()
                .map(|id| our_id(src, id))
                .collect(),
        };
        let mut state = model.start(&[&Request::new(source_text)]);
        let target = ids(&case["target"]).into_iter().map(|id| our_id(tgt, id));
        let rows = case["rows"].as_array().expect("rows");
        for (token, row) in std::iter::once(BOS).chain(target).zip(rows) {
            let mut found = Vec::new();
            model.step(&mut state, &[token], &mut found);
            let row: Vec<f32> = row
                .as_array()
                .expect("a row")
                .iter()
                .map(|v| v.as_f64().expect("a number") as f32)
                .collect();
            // Where padding is not in the softmax there, it is neither here.
            let silent = found[PAD as usize] < -1e6;
            let pad = tokens
                .iter()
                .position(|token| *token == "<pad>")
                .expect("padding");
            let shift = if silent {
                (1.0 - row[pad].exp()).ln()
            } else {
                0.0
            };
            for (id, expected) in row
                .iter()
                .enumerate()
                .filter(|(id, _)| !silent || *id != pad)
            {
                let (found, expected) = (found[our_id(tgt, id) as usize], expected - shift);
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{name}: {:?} is {found}, not {expected}",
                    tokens[id]
                );
            }
        }
    }

    let spelled = |key: &str| -> Vec<Vec<String>> {
        let lists = expected[key].as_array().expect("sentences").iter();
        let spelling = |id: usize| match tokens[id] {
            token if SPECIALS.contains(&token) && token == "<unk>" => "<unk>".to_owned(),
            token => token.to_owned(),
        };
        let frame = |token: &String| {
            !(token.starts_with("__") && token.ends_with("__") || token == "de_DE")
        };
        lists
            .map(|list| ids(list).into_iter().map(spelling).filter(frame).collect())
            .collect()
    };
    let beam = expected["beam"].as_u64().expect("a number") as usize;
    same(
        &format!("{name}, greedy"),
        &translations(&directory, 1, |_| {}),
        &spelled("greedy"),
    );
    same(
        &format!("{name}, beam {beam}"),
        &translations(&directory, beam, |_| {}),
        &spelled("beams"),
    );
}

#[test]
fn marian_with_swish_and_one_vocabulary_says_what_transformers_says() {
    check("marian", &ImportOptions::default());
}

#[test]
fn marian_with_relu_and_two_vocabularies_says_what_transformers_says() {
    check("marian-relu-separate", &ImportOptions::default());
}

#[test]
fn marian_in_half_precision_in_the_old_file_format_says_what_transformers_says() {
    check("marian-half", &ImportOptions::default());
}

#[test]
fn marian_whose_end_is_not_the_first_token_says_what_transformers_says() {
    check("marian-end-inside", &ImportOptions::default());
}

#[test]
fn bart_says_what_transformers_says() {
    check("bart", &ImportOptions::default());
}

#[test]
fn m2m100_says_what_transformers_says_and_needs_its_languages() {
    let source = fixtures().join("huggingface/m2m100");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("model");
    let error = import(&source, &out, &ImportOptions::default()).expect_err("no languages");
    let remedy = "`attentive import FOLDER --from CODE --to CODE --out DIR`; --from is missing";
    assert!(error.to_string().contains(remedy), "{error}");
    assert!(!out.exists(), "nothing is half-written");
    let options = ImportOptions {
        source_language: Some("en".to_owned()),
        target_language: Some("de".to_owned()),
        ..ImportOptions::default()
    };
    check("m2m100", &options);
}

#[test]
fn mbart_says_what_transformers_says_and_its_first_version_is_refused() {
    let options = ImportOptions {
        source_language: Some("en_XX".to_owned()),
        target_language: Some("de_DE".to_owned()),
        ..ImportOptions::default()
    };
    check("mbart", &options);
    // The first tokenizer of mBART puts the language behind the source.
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(fixtures().join("huggingface/mbart")).expect("a fixture") {
        let path = entry.expect("a file").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let config = folder.path().join("tokenizer_config.json");
    fs::write(config, r#"{"tokenizer_class": "MBartTokenizer"}"#).expect("written");
    let out = folder.path().join("model");
    let message = import(folder.path(), &out, &options)
        .expect_err("refused")
        .to_string();
    assert!(message.contains("MBartTokenizer"), "{message}");
}

#[test]
fn an_argos_package_is_its_ctranslate2_model_with_languages() {
    let folder = fixtures().join("ctranslate2");
    let package = folder.join("translate-en_pt.argosmodel");
    let (_folder, directory) = imported(&package, &ImportOptions::default());
    let generation = &directory.generation;
    let languages = [&generation.source_language, &generation.target_language];
    assert_eq!(languages.map(Option::as_deref), [Some("en"), Some("pt")]);
    assert_eq!(generation.beam, Some(4));
    let (_other, model) = imported(&folder.join("float32"), &ImportOptions::default());
    let weights =
        |directory: &ModelDir| fs::read(ModelDir::weights_path(&directory.path)).expect("weights");
    assert!(weights(&directory) == weights(&model), "the same weights");
    let say = |directory: &ModelDir| translations(directory, 4, |_| {});
    same("argos", &say(&directory), &say(&model));

    // A package that lacks its description, or is cut off, is refused.
    let broken = tempfile::tempdir().expect("a folder");
    let path = broken.path().join("cut.argosmodel");
    let bytes = fs::read(&package).expect("a fixture");
    let out = broken.path().join("model");
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..cut]).expect("written");
        import(&path, &out, &ImportOptions::default()).expect_err("it is not whole");
        assert!(!out.exists());
    }
}

#[test]
fn ctranslate2_says_what_ctranslate2_says_in_every_number_format() {
    for kind in ["float32", "float16", "bfloat16", "int16", "int8"] {
        let source = fixtures().join("ctranslate2").join(kind);
        let expected = json(&source.join("expected.json"));
        let vocabulary = json(&source.join("shared_vocabulary.json"));
        let options = ImportOptions {
            weights: WeightKind::F32,
            ..ImportOptions::default()
        };
        let (_folder, directory) = imported(&source, &options);
        for (key, beam) in [("greedy", 1), ("beams", 4)] {
            let spelling = |id: &Value| {
                let token = &vocabulary[id.as_u64().expect("an id") as usize];
                token.as_str().expect("text").to_owned()
            };
            let tokens =
                |list: &Value| list.as_array().expect("ids").iter().map(spelling).collect();
            let expected: Vec<Vec<String>> = expected[key]
                .as_array()
                .expect("sentences")
                .iter()
                .map(tokens)
                .collect();
            let found = translations(&directory, beam, |options| {
                options.search.max_length.extra = 24
            });
            same(
                &format!("{kind}, beam {beam}"),
                &found[..expected.len()],
                &expected,
            );
        }
    }
}

#[test]
fn int8_weights_are_taken_over_as_they_are() {
    let source = fixtures().join("ctranslate2/int8");
    let (_folder, directory) = imported(&source, &ImportOptions::default());
    let weights = directory.weights().expect("weights");
    assert!(weights.is_int8());
    let float = ImportOptions {
        weights: WeightKind::F32,
        ..ImportOptions::default()
    };
    let (_other, float) = imported(&source, &float);
    let (_, scales) = weights
        .tensor("encoder.layers.0.feed_forward.inner.weight.scale")
        .expect("scales");
    let name = "encoder.layers.0.feed_forward.inner.weight";
    let (shape, values) = float
        .weights()
        .expect("weights")
        .tensor(name)
        .expect("a matrix");
    for (place, value) in values.iter().enumerate() {
        let steps = value / scales[place % shape[1]];
        assert!(
            (steps - steps.round()).abs() < 1e-3,
            "{steps} is no whole number"
        );
    }
}
