//! CTranslate2's models of every version of the format become the same model, and what a variable says is done or
//! refused by its name. The older files are made from a fixture of the newest version, as older converters wrote them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::error::Result;
use attentive_convert::files::{Dtype, ctranslate2};
use attentive_convert::{ImportOptions, import};
use attentive_model::ModelDir;
use attentive_model::config::ModelConfig;

/// A number format, a shape and the bytes.
type Variable = (Dtype, Vec<usize>, Vec<u8>);

/// A `model.bin` to be written in another version.
#[derive(Clone)]
struct File {
    fixture: PathBuf,
    spec: &'static str,
    revision: u32,
    variables: BTreeMap<String, Variable>,
    aliases: BTreeMap<String, String>,
    /// Files beside the model that are left out.
    without: &'static [&'static str],
}

impl File {
    fn of_fixture(kind: &str) -> Self {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/ctranslate2")
            .join(kind);
        let file = ctranslate2::read(&fixture.join("model.bin")).expect("a fixture");
        let variables = file.tensors.iter().map(|(name, tensor)| {
            let variable = (tensor.dtype, tensor.shape.clone(), tensor.bytes().to_vec());
            (name.to_owned(), variable)
        });
        Self {
            fixture,
            spec: "TransformerSpec",
            revision: file.revision,
            variables: variables.collect(),
            aliases: file.aliases.clone(),
            without: &["expected.json"],
        }
    }

    fn with(mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Self {
        let variable = (dtype, shape.to_vec(), bytes.to_vec());
        self.variables.insert(name.to_owned(), variable);
        self
    }

    /// Special tokens are variables before version 6, which has `config.json`.
    fn with_tokens(mut self) -> Self {
        for (name, text) in [
            ("unk_token", "<unk>"),
            ("bos_token", "<s>"),
            ("eos_token", "</s>"),
        ] {
            self = self.with(name, Dtype::I8, &[text.len()], text.as_bytes());
        }
        for name in ["with_source_bos", "with_source_eos", "with_target_bos"] {
            self = self.with(name, Dtype::I8, &[], &[0]);
        }
        self.without = &["expected.json", "config.json"];
        self
    }

    /// Before revision 5, both stacks had one number of heads, one activation and one place of the norms.
    fn with_old_revision(mut self, revision: u32) -> Self {
        self.revision = revision;
        for name in ["num_heads", "pre_norm", "activation"] {
            let value = self.variables.remove(&format!("encoder/{name}"));
            self.variables.remove(&format!("decoder/{name}"));
            self.variables
                .insert(name.to_owned(), value.expect("a variable"));
        }
        for name in [
            "alibi",
            "alibi_use_positive_positions",
            "scale_alibi",
            "alignment_heads",
        ] {
            self.variables.remove(&format!("decoder/{name}"));
        }
        self.variables.remove("encoder/multi_query_attention");
        self
    }

    /// Before version 3, what has two names is there twice.
    fn without_aliases(mut self) -> Self {
        for (alias, name) in std::mem::take(&mut self.aliases) {
            let copy = self.variables[&name].clone();
            self.variables.insert(alias, copy);
        }
        self
    }

    fn bytes(&self, version: u32) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        let string = |text: &str| {
            let length = (text.len() as u16 + 1).to_le_bytes();
            [&length, text.as_bytes(), &[0]].concat()
        };
        if version >= 2 {
            bytes.extend(string(self.spec));
            bytes.extend(self.revision.to_le_bytes());
        }
        bytes.extend((self.variables.len() as u32).to_le_bytes());
        for (name, (dtype, shape, data)) in &self.variables {
            bytes.extend(string(name));
            bytes.push(shape.len() as u8);
            bytes.extend(shape.iter().flat_map(|size| (*size as u32).to_le_bytes()));
            let (kind, size) = if version >= 4 {
                let kinds = [
                    Dtype::F32,
                    Dtype::I8,
                    Dtype::I16,
                    Dtype::I32,
                    Dtype::F16,
                    Dtype::BF16,
                ];
                let code = kinds.iter().position(|kind| kind == dtype).expect("a kind");
                (code as u8, data.len())
            } else {
                (dtype.size() as u8, data.len() / dtype.size())
            };
            bytes.push(kind);
            bytes.extend((size as u32).to_le_bytes());
            bytes.extend(data);
        }
        if version >= 3 {
            bytes.extend((self.aliases.len() as u32).to_le_bytes());
            for (alias, name) in &self.aliases {
                bytes.extend(string(alias));
                bytes.extend(string(name));
            }
        }
        bytes
    }

    fn import(&self, version: u32) -> Result<(ModelDir, tempfile::TempDir)> {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("theirs");
        fs::create_dir(&source).expect("a folder");
        for entry in fs::read_dir(&self.fixture).expect("a fixture") {
            let path = entry.expect("a file").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            if !self.without.contains(&name) {
                fs::copy(&path, source.join(name)).expect("copied");
            }
        }
        fs::write(source.join("model.bin"), self.bytes(version)).expect("written");
        let out = folder.path().join("ours");
        import(&source, &out, &ImportOptions::default())?;
        Ok((ModelDir::open(&out).expect("just written"), folder))
    }
}

fn same(version: u32, found: &ModelDir, expected: &ModelDir) {
    assert_eq!(found.config, expected.config, "version {version}");
    assert_eq!(found.generation, expected.generation, "version {version}");
    let [found_weights, weights] = [found, expected].map(|model| model.weights().expect("there"));
    for tensor in expected.config.tensors() {
        let [found, expected] = [&found_weights, &weights].map(|weights| {
            let values = weights.tensor(&tensor.name).expect("there").1;
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert!(found == expected, "version {version}: {}", tensor.name);
    }
    for text in ["a dog runs", "one two"] {
        let [found, expected] = [found, expected].map(|model| model.tokenizers.src.encode(text));
        assert_eq!(found, expected, "version {version}: {text}");
    }
}

#[test]
fn every_version_of_the_format_becomes_the_same_model() {
    let newest = File::of_fixture("float32");
    let (expected, _folder) = newest.import(6).expect("a fixture");
    let v5 = newest.clone().with_tokens();
    let v4 = v5.clone().with_old_revision(4);
    let v3 = v5.clone().with_old_revision(3);
    let v2 = v5.clone().with_old_revision(2).without_aliases();
    let v1 = v5.clone().with_old_revision(1).without_aliases();
    for (version, file) in [(1, v1), (2, v2), (3, v3), (4, v4), (5, v5)] {
        let (found, _folder) = file.import(version).expect("an older version");
        same(version, &found, &expected);
    }
}

#[test]
fn the_oldest_models_have_as_many_heads_as_their_kind() {
    let mut oldest = File::of_fixture("float32")
        .with_tokens()
        .with_old_revision(1)
        .without_aliases();
    oldest.variables.remove("num_heads");
    let (model, _folder) = oldest.import(1).expect("a model of the base size");
    assert_eq!(model.config.heads, 8);
    oldest.spec = "TransformerSpec";
    let error = oldest
        .import(2)
        .expect_err("no number of heads")
        .to_string();
    assert!(error.contains("no `num_heads`"), "{error}");
}

#[test]
fn what_a_variable_turns_on_is_done_or_refused_by_its_name() {
    let file = || File::of_fixture("float32");
    let half = 0.5f32.to_le_bytes();
    for (name, dtype, bytes) in [
        ("decoder/scale_outputs", Dtype::F32, &half[..]),
        ("decoder/scale_outputs", Dtype::I8, &[7]),
        ("encoder/multi_query_attention", Dtype::I8, &[1]),
        ("decoder/num_heads_kv", Dtype::I16, &[1, 0]),
        ("decoder/alibi", Dtype::I8, &[1]),
        ("encoder/sliding_window", Dtype::I16, &[9, 0]),
    ] {
        let error = file().with(name, dtype, &[], bytes).import(6);
        let error = error.expect_err(name).to_string();
        assert!(error.contains(&format!("the variable `{name}`")), "{error}");
    }
    let one = 1.0f32.to_le_bytes();
    let (expected, _folder) = file().import(6).expect("a fixture");
    for (name, dtype, bytes) in [
        ("decoder/scale_outputs", Dtype::F32, &one[..]),
        ("decoder/scale_outputs", Dtype::I8, &[0]),
        ("encoder/multi_query_attention", Dtype::I8, &[0]),
    ] {
        let (model, _folder) = file().with(name, dtype, &[], bytes).import(6).expect(name);
        same(6, &model, &expected);
    }
}

#[test]
fn tables_without_numbers_are_refused_and_take_no_memory() {
    // With rows of nothing, a small file may claim any number of tokens.
    for shape in [[53, 0], [0, 8], [0, 0], [u32::MAX as usize, 0]] {
        let file = File::of_fixture("float32");
        let file = file.with("decoder/embeddings/weight", Dtype::F32, &shape, &[]);
        let error = file.import(6).expect_err("no numbers").to_string();
        assert!(
            error.contains("`decoder/embeddings/weight`"),
            "{shape:?}: {error}"
        );
        assert!(error.contains("model.bin"), "{shape:?}: {error}");
    }
    for kind in ["float32", "int8", "int16"] {
        let mut file = File::of_fixture(kind);
        for (name, (_, shape, data)) in &mut file.variables {
            if name.ends_with("/weight") && name.contains("layer_0") {
                (shape[1], *data) = (0, Vec::new());
            }
        }
        let error = file.import(6).expect_err("no numbers").to_string();
        assert!(error.contains("layer_0"), "{kind}: {error}");
    }
}
