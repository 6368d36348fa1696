//! Every option of a Marian model is honoured, or refused by its name: a model that would compute something else than
//! Marian does is worse than none.

use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, WeightKind, import};
use attentive_model::ModelDir;
use attentive_model::config::{Activation, NormPlacement, PositionKind};

/// A tensor as it lies in the file.
#[derive(Clone)]
struct Entry {
    name: String,
    kind: u64,
    shape: Vec<i32>,
    data: Vec<u8>,
}

/// A Marian `.bin` file, taken apart to be put together again with other contents.
struct MarianFile {
    folder: PathBuf,
    weights: &'static str,
    entries: Vec<Entry>,
}

const OPTIONS: &str = "special:model.yml";

impl MarianFile {
    fn post_norm() -> Self {
        Self::of_fixture("post-norm-bin", "model.bin")
    }

    fn bergamot() -> Self {
        Self::of_fixture("bergamot", "model.enpt.intgemm.alphas.bin")
    }

    fn of_fixture(name: &str, weights: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/marian")
            .join(name);
        let bytes = fs::read(folder.join(weights)).expect("a fixture");
        let mut at = 8;
        let mut word = || {
            let word = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
            at += 8;
            word as usize
        };
        let count = word();
        let heads: Vec<[usize; 4]> = (0..count)
            .map(|_| [word(), word(), word(), word()])
            .collect();
        let mut at = 16 + 32 * count;
        let mut take = |length: usize| {
            at += length;
            &bytes[at - length..at]
        };
        let names: Vec<String> = heads
            .iter()
            .map(|head| String::from_utf8(take(head[0])[..head[0] - 1].to_vec()).expect("a name"))
            .collect();
        let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        let shapes: Vec<Vec<i32>> = heads
            .iter()
            .map(|head| take(4 * head[2]).chunks(4).map(number).collect())
            .collect();
        let padding = u64::from_le_bytes(take(8).try_into().expect("8 bytes"));
        take(padding as usize);
        let entries = heads.iter().zip(names).zip(shapes);
        let entries = entries.map(|((head, name), shape)| Entry {
            name,
            kind: head[1] as u64,
            shape,
            data: take(head[3]).to_vec(),
        });
        Self {
            folder,
            weights,
            entries: entries.collect(),
        }
    }

    /// Changes or adds an option.
    fn option(mut self, key: &str, value: &str) -> Self {
        let entry = self.entries.iter_mut().find(|entry| entry.name == OPTIONS);
        let entry = entry.expect("the options");
        let end = entry.data.iter().position(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&entry.data[..end.expect("a NUL")]).into_owned();
        let others = text
            .lines()
            .filter(|line| !line.starts_with(&format!("{key}:")));
        let mut text: String = others.map(|line| format!("{line}\n")).collect();
        text.push_str(&format!("{key}: {value}\n\0"));
        entry.shape = vec![text.len() as i32];
        entry.data = text.into_bytes();
        self
    }

    /// Gives names to copies of tensors; what is renamed to nothing is left out.
    fn renamed(mut self, rename: impl Fn(&str) -> Vec<String>) -> Self {
        let of_entry = |entry: Entry| -> Vec<Entry> {
            let copy = |name| Entry {
                name,
                ..entry.clone()
            };
            rename(&entry.name).into_iter().map(copy).collect()
        };
        self.entries = self.entries.into_iter().flat_map(of_entry).collect();
        self
    }

    fn floats(mut self, name: &str, shape: [i32; 2]) -> Self {
        let count = shape[0] * shape[1];
        let values = (0..count).flat_map(|i| (i as f32 / 8.0).to_le_bytes());
        self.entries.push(Entry {
            name: name.to_owned(),
            kind: 0x404,
            shape: shape.to_vec(),
            data: values.collect(),
        });
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [1, self.entries.len() as u64]
            .map(u64::to_le_bytes)
            .concat();
        for entry in &self.entries {
            let sizes = [entry.name.len() + 1, entry.shape.len(), entry.data.len()];
            let [name, rank, data] = sizes.map(|size| size as u64);
            bytes.extend(
                [name, entry.kind, rank, data]
                    .map(u64::to_le_bytes)
                    .concat(),
            );
        }
        for entry in &self.entries {
            bytes.extend(entry.name.bytes().chain([0]));
        }
        for entry in &self.entries {
            bytes.extend(entry.shape.iter().flat_map(|size| size.to_le_bytes()));
        }
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(self.entries.iter().flat_map(|entry| &entry.data));
        bytes
    }

    /// Imports the file with what lies beside it in the fixture.
    fn import(&self) -> attentive_convert::error::Result<(ModelDir, tempfile::TempDir)> {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("theirs");
        fs::create_dir(&source).expect("a folder");
        for entry in fs::read_dir(&self.folder).expect("a fixture") {
            let path = entry.expect("a file").path();
            fs::copy(&path, source.join(path.file_name().expect("a name"))).expect("copied");
        }
        fs::write(source.join(self.weights), self.bytes()).expect("written");
        let out = folder.path().join("ours");
        let options = ImportOptions {
            weights: WeightKind::F32,
            ..ImportOptions::default()
        };
        import(&source, &out, &options)?;
        Ok((ModelDir::open(&out).expect("just written"), folder))
    }
}

fn tensor(model: &ModelDir, name: &str) -> Vec<f32> {
    let weights = model.weights().expect("weights");
    weights.tensor(name).expect("a tensor").1
}

#[test]
fn every_option_that_we_lack_is_refused_by_its_name() {
    let post_norm: fn() -> MarianFile = MarianFile::post_norm;
    for (file, key, value, expected) in [
        (post_norm, "type", "s2s", "`type: s2s`"),
        (
            post_norm,
            "transformer-ffn-depth",
            "3",
            "`transformer-ffn-depth: 3`",
        ),
        (
            post_norm,
            "transformer-decoder-ffn-depth",
            "1",
            "`transformer-decoder-ffn-depth: 1`",
        ),
        (
            post_norm,
            "transformer-decoder-dim-ffn",
            "32",
            "`transformer-decoder-dim-ffn: 32`",
        ),
        (
            post_norm,
            "transformer-ffn-activation",
            "tanh",
            "`transformer-ffn-activation: tanh`",
        ),
        (
            post_norm,
            "transformer-decoder-autoreg",
            "average-attention",
            "`transformer-decoder-autoreg: average-attention`",
        ),
        (
            post_norm,
            "transformer-preprocess",
            "r",
            "`transformer-preprocess: \"r\"`",
        ),
        (
            post_norm,
            "transformer-postprocess",
            "hn",
            "`transformer-postprocess: \"hn\"`",
        ),
        (
            post_norm,
            "transformer-postprocess-emb",
            "r",
            "`transformer-postprocess-emb: r`",
        ),
        (
            post_norm,
            "transformer-postprocess-top",
            "h",
            "`transformer-postprocess-top: h`",
        ),
        (
            post_norm,
            "transformer-no-projection",
            "true",
            "`transformer-no-projection: true`",
        ),
        (
            post_norm,
            "transformer-rnn-projection",
            "true",
            "`transformer-rnn-projection: true`",
        ),
        (
            post_norm,
            "transformer-pool",
            "true",
            "`transformer-pool: true`",
        ),
        (
            post_norm,
            "transformer-no-bias",
            "true",
            "`transformer-no-bias: true`",
        ),
        (
            post_norm,
            "transformer-no-affine",
            "true",
            "`transformer-no-affine: true`",
        ),
        (
            post_norm,
            "transformer-disable-position-embeddings",
            "true",
            "`transformer-disable-position-embeddings: true`",
        ),
        (
            post_norm,
            "transformer-attention-mask",
            "alibi",
            "`transformer-attention-mask: alibi`",
        ),
        (
            post_norm,
            "transformer-alibi-shift",
            "true",
            "`transformer-alibi-shift: true`",
        ),
        (
            post_norm,
            "layer-normalization",
            "true",
            "`layer-normalization: true`",
        ),
        (post_norm, "right-left", "true", "`right-left: true`"),
        (
            post_norm,
            "input-types",
            "[sequence, class]",
            "`input-types: sequence class`",
        ),
        (post_norm, "factors-dim-emb", "8", "`factors-dim-emb: 8`"),
        (
            post_norm,
            "factors-combine",
            "concat",
            "`factors-combine: concat`",
        ),
        (post_norm, "lemma-dim-emb", "8", "`lemma-dim-emb: 8`"),
        (
            post_norm,
            "lemma-dependency",
            "re-embed",
            "`lemma-dependency: re-embed`",
        ),
        (post_norm, "ulr", "true", "`ulr: true`"),
        (
            post_norm,
            "embedding-normalization",
            "true",
            "`embedding-normalization: true`",
        ),
        (
            post_norm,
            "output-approx-knn",
            "[100, 1024]",
            "`output-approx-knn: 100 1024`",
        ),
        (
            post_norm,
            "transformer-tied-layers",
            "[1]",
            "`transformer-tied-layers: [1]` with `dec-depth: 2`",
        ),
        (
            post_norm,
            "transformer-train-positions",
            "true",
            "no tensor `Wpos`",
        ),
        (
            post_norm,
            "dim-vocabs",
            "[45, 44]",
            "`dim-vocabs: [45, 44]` beside tables of",
        ),
        (
            post_norm,
            "dim-vocabs",
            "[45, 45, 45]",
            "`dim-vocabs: [45, 45, 45]`",
        ),
        (
            MarianFile::bergamot,
            "dec-cell",
            "gru",
            "`transformer-decoder-autoreg: rnn` with `dec-cell: gru`",
        ),
        (
            MarianFile::bergamot,
            "dec-cell",
            "\"\"",
            "with `dec-cell: gru`",
        ),
    ] {
        let error = match file().option(key, value).import() {
            Ok(_) => panic!("`{key}: {value}` was accepted"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{key}: {value}: {error}");
        assert!(error.contains(file().weights), "the file is named: {error}");
    }
    let unasked = MarianFile::post_norm().floats("Wpos", [20, 8]).import();
    let message = unasked.expect_err("nobody reads the table").to_string();
    assert!(
        message.contains("a table `Wpos` without `transformer-train-positions: true`"),
        "{message}"
    );
}

#[test]
fn options_that_say_what_is_usual_change_nothing() {
    let (usual, _folder) = MarianFile::post_norm().import().expect("a fixture");
    for (key, value) in [
        ("factors-combine", "sum"),
        ("output-approx-knn", "[]"),
        ("dec-cell", "gru"),
        ("dim-vocabs", "[0, 0]"),
        ("transformer-tied-layers", "[1, 2]"),
        // Marian's Transformer does not read it, so that a model with it may have no table.
        ("transformer-train-position-embeddings", "true"),
    ] {
        let (model, _folder) = MarianFile::post_norm()
            .option(key, value)
            .import()
            .expect(key);
        assert_eq!(model.config, usual.config, "{key}: {value}");
    }
}

#[test]
fn tied_layers_are_those_of_the_decoder_only() {
    let file = MarianFile::post_norm().option("transformer-tied-layers", "[1, 1]");
    // Marian has no second decoder layer then.
    let file = file.renamed(|name| match name.starts_with("decoder_l2_") {
        true => Vec::new(),
        false => vec![name.to_owned()],
    });
    let (model, _folder) = file.import().expect("one decoder layer, twice");
    let of_layer = |stack: &str, layer: usize| {
        tensor(
            &model,
            &format!("{stack}.layers.{layer}.feed_forward.inner.weight"),
        )
    };
    assert_eq!(model.config.decoder_layers, 2);
    assert!(
        of_layer("decoder", 0) == of_layer("decoder", 1),
        "one layer"
    );
    assert!(
        of_layer("encoder", 0) != of_layer("encoder", 1),
        "two layers"
    );
}

#[test]
fn learned_positions_are_the_table_without_a_scale() {
    let file = MarianFile::post_norm().floats("Wpos", [20, 8]);
    let (model, _folder) = file
        .option("transformer-train-positions", "true")
        .import()
        .expect("a table with its option");
    assert_eq!(model.config.positions, PositionKind::Learned);
    assert_eq!(
        (model.config.max_positions, model.config.embedding_scale),
        (20, Some(1.0))
    );
    for side in ["source", "target"] {
        let table = tensor(&model, &format!("embeddings.{side}_positions.weight"));
        assert_eq!((table.len(), table[9]), (160, 9.0 / 8.0));
    }
}

#[test]
fn the_norm_before_an_ssru_has_the_name_of_the_cell() {
    let file = MarianFile::bergamot()
        .option("transformer-preprocess", "n")
        .option("transformer-postprocess", "da")
        .option("transformer-ffn-activation", "gelu");
    let file = file.renamed(|name| {
        let cell = name.replace("_rnn_ffn_ln_", "_rnn_ln_");
        vec![if name.contains("_ln_") {
            format!("{cell}_pre")
        } else {
            cell
        }]
    });
    let (model, _folder) = file.import().expect("a pre-norm SSRU");
    assert_eq!(model.config.norm, NormPlacement::Pre);
    assert_eq!(model.config.activation, Activation::GeluSigmoid);
    assert_eq!(tensor(&model, "decoder.layers.0.ssru_norm.weight").len(), 8);
}
