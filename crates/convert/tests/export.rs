//! Models written for other programs: refused where these cannot express them, and read back as they were.
//!
//! What the other programs themselves make of the files is checked by `tests/peers/check_exports.py`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use attentive_convert::export::{ExportFormat, export};
use attentive_convert::{ImportOptions, WeightKind, import};
use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, ModelConfig, NormPlacement, PositionKind, Preset,
    TransformerConfig, Tying,
};
use attentive_model::directory::{ModelDir, Tokenizers};
use attentive_model::fake_dir;
use attentive_text::special::{BOS, PAD, SPECIALS};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

const TEXT: [&str; 4] = [
    "ein kleiner Hund rennt über die Wiese",
    "two men are sitting on a bench",
    "die Frau liest ein Buch im Garten",
    "a girl in a red dress is jumping",
];

fn tokenizer() -> Tokenizer {
    let options = TokenizerOptions {
        kind: TokenizerKind::Unigram,
        vocab_size: 300,
        min_frequency: 1,
        lowercase: false,
    };
    Tokenizer::train(&options, &mut TEXT.into_iter()).expect("enough text")
}

type Change = fn(&mut TransformerConfig);

/// A small model that `change` makes another one of.
fn model(folder: &Path, change: Change) -> ModelDir {
    let tokenizer = tokenizer();
    let mut config = small(tokenizer.vocab_size());
    change(&mut config);
    let tokenizers = Tokenizers::shared(tokenizer);
    fake_dir::write_model(folder, &config, &tokenizers, |_, _| {}).expect("writable");
    ModelDir::open(folder).expect("just written")
}

fn small(vocab: usize) -> TransformerConfig {
    let mut config = Preset::Tiny.config(vocab, vocab);
    (config.d_model, config.d_ff, config.heads, config.kv_heads) = (16, 24, 2, 2);
    (config.encoder_layers, config.decoder_layers) = (2, 1);
    (config.max_positions, config.tying) = (40, Tying::All);
    config
}

fn pegasus(_: &mut TransformerConfig) {}

fn bart(config: &mut TransformerConfig) {
    config.norm = NormPlacement::Post;
    config.embedding_norm = EmbeddingNorm::LayerNorm;
    config.positions = PositionKind::Learned;
    config.activation = Activation::Gelu;
}

fn marian(config: &mut TransformerConfig) {
    config.norm = NormPlacement::Post;
    config.activation = Activation::Swish;
    config.positions = PositionKind::SinusoidalHalves;
}

/// Exports, imports, and compares everything that a model directory holds.
fn comes_back(format: ExportFormat, change: Change) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = model(&folder.path().join("ours"), change);
    returns(format, &model, folder.path());
}

fn returns(format: ExportFormat, model: &ModelDir, folder: &Path) {
    let [theirs, back] = ["theirs", "back"].map(|name| folder.join(name));
    export(model, format, &theirs).expect("this can be expressed");
    import(&theirs, &back, &ImportOptions::default()).expect("what we wrote we read");
    let back = ModelDir::open(&back).expect("just written");
    assert_eq!(back.config, model.config);
    let [before, after] = [model, &back].map(|dir| dir.weights().expect("there"));
    for tensor in model.config.tensors() {
        let name = &tensor.name;
        let [before, after] = [&before, &after].map(|weights| {
            let values = weights.tensor(name).expect("there").1;
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert!(before == after, "{name} has changed");
    }
    for text in TEXT.into_iter().chain(["Über  alles, <s> é", ""]) {
        let [before, after] = [model, &back].map(|dir| dir.tokenizers.src.encode(text));
        assert_eq!(before, after, "{text:?}");
        let decoded = [model, &back].map(|dir| dir.tokenizers.tgt.decode(&before));
        assert_eq!(decoded[0], decoded[1], "{text:?}");
    }
}

fn marian_with_tied_output(config: &mut TransformerConfig) {
    marian(config);
    config.tying = Tying::Output;
}

fn marian_untied(config: &mut TransformerConfig) {
    marian(config);
    config.tying = Tying::None;
}

const ALL: [Change; 5] = [
    pegasus,
    marian,
    bart,
    marian_with_tied_output,
    marian_untied,
];

#[test]
fn a_model_comes_back_from_hugging_face_to_the_last_bit() {
    for change in ALL {
        comes_back(ExportFormat::HuggingFace, change);
    }
}

#[test]
fn a_model_comes_back_from_ctranslate2_to_the_last_bit() {
    for change in ALL {
        comes_back(ExportFormat::Ctranslate2, change);
    }
}

fn marian_decoder(config: &mut TransformerConfig) {
    config.norm = NormPlacement::Post;
    config.positions = PositionKind::TimingSignal;
    config.norm_epsilon = 1e-6;
    config.dropout = 0.0; // It is for training.
    config.max_positions = 1024;
    config.decoder_layers = 2;
}

fn marian_decoder_pre(config: &mut TransformerConfig) {
    marian_decoder(config);
    config.norm = NormPlacement::Pre;
    config.activation = Activation::Swish;
}

fn marian_decoder_ssru(config: &mut TransformerConfig) {
    marian_decoder(config);
    config.autoregression = Autoregression::Ssru;
    config.tying = Tying::Output;
}

fn marian_decoder_ssru_pre(config: &mut TransformerConfig) {
    marian_decoder_pre(config);
    config.autoregression = Autoregression::Ssru;
}

fn marian_decoder_gelu(config: &mut TransformerConfig) {
    marian_decoder(config);
    config.activation = Activation::GeluSigmoid;
    config.tying = Tying::None;
}

/// A model as Marian's are: the start is a vector of zeros, and neither it nor `<blank>` is ever said.
fn model_for_marian(folder: &Path, change: Change) -> ModelDir {
    let words = TEXT.iter().flat_map(|line| line.split(' '));
    let words: BTreeSet<&str> = words.collect();
    let vocabulary = SPECIALS.into_iter().chain(words).map(str::to_owned);
    let tokenizer = Tokenizer::spaces(vocabulary.collect()).expect("a vocabulary");
    let vocab = tokenizer.vocab_size();
    let mut config = small(vocab);
    change(&mut config);
    let width = config.d_model;
    let tokenizers = Tokenizers::shared(tokenizer);
    fake_dir::write_model(folder, &config, &tokenizers, |name, values| {
        for id in [BOS, PAD].map(|id| id as usize) {
            match name {
                "embeddings.projection_bias" => values[id] = -1e9,
                "embeddings.target.weight" | "embeddings.source.weight" => {
                    values[id * width..][..width].fill(0.0);
                }
                // The output layer stands input by input.
                "embeddings.projection" => {
                    let column = values.iter_mut().skip(id).step_by(vocab);
                    column.for_each(|value| *value = 0.0);
                }
                _ => {}
            }
        }
    })
    .expect("writable");
    ModelDir::open(folder).expect("just written")
}

#[test]
fn a_model_comes_back_from_marian() {
    for change in [
        marian_decoder,
        marian_decoder_pre,
        marian_decoder_ssru,
        marian_decoder_ssru_pre,
        marian_decoder_gelu,
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let model = model_for_marian(&folder.path().join("ours"), change);
        returns(ExportFormat::Marian, &model, folder.path());
    }
}

#[test]
fn a_model_of_bergamot_goes_to_marian_and_comes_back_with_its_sentencepiece_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ours = folder.path().join("ours");
    let bergamot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/marian/bergamot");
    let options = ImportOptions {
        weights: WeightKind::F32,
        ..ImportOptions::default()
    };
    import(&bergamot, &ours, &options).expect("a fixture");
    let model = ModelDir::open(&ours).expect("just written");
    returns(ExportFormat::Marian, &model, folder.path());
}

#[test]
fn what_a_format_cannot_express_is_refused_by_name_and_leaves_nothing() {
    let ssru: Change = |config| config.autoregression = Autoregression::Ssru;
    let separate: Change = |config| config.tying = Tying::None;
    let exact: Change = |config| {
        config.positions = PositionKind::TimingSignal;
        config.activation = Activation::Gelu;
    };
    let timing: Change = |config| config.positions = PositionKind::TimingSignal;
    for (format, change, expected) in [
        (ExportFormat::HuggingFace, ssru, "an SSRU decoder"),
        (ExportFormat::Ctranslate2, ssru, "an SSRU decoder"),
        (ExportFormat::Onnx, ssru, "an SSRU decoder"),
        (ExportFormat::HuggingFace, separate, "one shared matrix"),
        (
            ExportFormat::Marian,
            pegasus,
            "another formula than the timing signal",
        ),
        (ExportFormat::Marian, exact, "the exact GELU"),
        (
            ExportFormat::Marian,
            timing,
            "a start token `<s>` with a vector of its own",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let model = model(&folder.path().join("ours"), change);
        let error = export(&model, format, &folder.path().join("theirs")).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains(format.name()), "{error}");
        let left: Vec<_> = fs::read_dir(folder.path())
            .expect("there")
            .flatten()
            .collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn a_folder_that_is_there_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = model(&folder.path().join("ours"), pegasus);
    let out = folder.path().join("theirs");
    fs::create_dir(&out).expect("a writable folder");
    let error = export(&model, ExportFormat::Onnx, &out).expect_err("it is there");
    assert!(error.to_string().contains("exists already"), "{error}");
}
