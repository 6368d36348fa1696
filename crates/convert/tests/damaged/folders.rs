//! Models of which one file is damaged: importing refuses them with a typed error and leaves nothing behind, or writes
//! a model that can be opened. Memory stays within a bound that the size of the folder gives.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use attentive_convert::error::ConvertError;
use attentive_convert::{ImportOptions, import};
use attentive_model::ModelDir;
use attentive_model::config::ModelConfig;
use tempfile::TempDir;

use crate::allocation::peak;
use crate::{FILES, KINDS, Random, damage};

/// Memory that a model may take besides some times its size: vocabularies, tries and what is written.
const CONSTANT: usize = 32 << 20;

/// A folder or a file of another program, and what importing needs.
struct Fixture {
    name: &'static str,
    files: Vec<(PathBuf, Vec<u8>)>,
    options: ImportOptions,
    /// What is named to the importer; nothing is the folder.
    source: &'static str,
}

impl Fixture {
    fn new(name: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name);
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.expect("a fixture").path();
            let name = PathBuf::from(path.file_name().expect("a name"));
            (name, fs::read(path).expect("a fixture"))
        };
        let mut files: Vec<_> = fs::read_dir(folder).expect("a fixture").map(read).collect();
        files.retain(|(name, _)| name != Path::new("expected.json"));
        files.sort();
        Self {
            name,
            files,
            options: ImportOptions::default(),
            source: "",
        }
    }

    fn with_languages(mut self, from: &str, to: &str) -> Self {
        self.options.source_language = Some(from.to_owned());
        self.options.target_language = Some(to.to_owned());
        self
    }

    /// A state dict with a mapping, a dictionary of fairseq and codes of subword-nmt.
    fn mapped() -> Self {
        let mut fixture = Self::new("huggingface/marian");
        fixture.name = "a mapping";
        let of = |fixture: &Self, file: &str| {
            let found = fixture
                .files
                .iter()
                .find(|(name, _)| name == Path::new(file));
            found.expect("a file").1.clone()
        };
        let config: serde_json::Value =
            serde_json::from_slice(&of(&fixture, "config.json")).expect("JSON");
        let number = |key: &str| config[key].as_u64().expect("a number");
        let mapping = format!(
            "names = \"fairseq\"\nprefix = \"model.\"\n[model]\nd_model = {}\nd_ff = {}\nheads = {}\n\
             encoder_layers = {}\ndecoder_layers = {}\nnorm = \"post\"\nactivation = \"swish\"\n\
             positions = \"sinusoidal_halves\"\n[vocabulary]\nsource = \"dict.en.txt\"\ntarget = \"dict.en.txt\"\n\
             tokenizer = \"subword-nmt\"\npieces = \"bpe.code\"\nstart = \"</s>\"\n[tensors]\n\
             source_embedding = \"model.shared.weight\"\ntarget_embedding = \"model.shared.weight\"\n",
            number("d_model"),
            number("encoder_ffn_dim"),
            number("encoder_attention_heads"),
            number("encoder_layers"),
            number("decoder_layers"),
        );
        let words = (4..number("vocab_size")).map(|id| format!("w{id} {}\n", 900 - id));
        fixture
            .files
            .retain(|(name, _)| name == Path::new("model.safetensors"));
        let codes = "#version: 0.2\nw 1\nw1 0</w>\nw1 2</w>\n";
        for (name, text) in [
            ("names.toml", mapping),
            ("dict.en.txt", words.collect()),
            ("bpe.code", codes.to_owned()),
        ] {
            fixture.files.push((name.into(), text.into_bytes()));
        }
        fixture
    }

    fn write(&self, folder: &Path) {
        for (name, bytes) in &self.files {
            fs::write(folder.join(name), bytes).expect("written");
        }
    }

    /// Imports the files of `folder`; says whether there is a model now.
    fn import(&self, what: &str, folder: &TempDir) -> Result<(), ConvertError> {
        let theirs = folder.path().join("theirs");
        let out = folder.path().join("ours");
        let source = theirs.join(self.source);
        let mut options = self.options.clone();
        if theirs.join("names.toml").is_file() {
            options.mapping = Some(theirs.join("names.toml"));
        }
        let size: usize = self.files.iter().map(|(_, bytes)| bytes.len()).sum();
        let run = AssertUnwindSafe(|| peak(|| import(&source, &out, &options)));
        let (result, peak) =
            catch_unwind(run).unwrap_or_else(|_| panic!("importing it panicked: {what}"));
        let limit = 8 * size + CONSTANT;
        assert!(
            peak <= limit,
            "{what}: {peak} bytes of memory, {limit} allowed"
        );
        match result {
            Ok(_) => {
                let model = ModelDir::open(&out).unwrap_or_else(|error| panic!("{what}: {error}"));
                let weights = model.weights().expect("weights");
                for tensor in model.config.tensors() {
                    let found = weights.tensor(&tensor.name).is_ok() || weights.is_int8();
                    assert!(found, "{what}: {} is missing", tensor.name);
                }
                let ids = model.tokenizers.src.encode("a dog and <unk>");
                model.tokenizers.tgt.decode(&ids);
                fs::remove_dir_all(out).expect("removed");
                Ok(())
            }
            Err(error) => {
                let message = error.to_string();
                assert!(
                    !out.exists(),
                    "{what}: something was left behind: {message}"
                );
                let folder = folder.path().display().to_string();
                let unpacked = self.source.ends_with(".argosmodel");
                assert!(
                    unpacked || message.contains(&folder),
                    "{what}: no file is named: {message}"
                );
                let letters = message.chars().count();
                let start: String = message.chars().take(300).collect();
                assert!(letters < 10_000, "{what}: {letters} letters: {start}");
                Err(error)
            }
        }
    }

    /// Damages one of the files in turn, in every way.
    fn damaged(&self) {
        let folder = tempfile::tempdir().expect("a folder");
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).expect("a folder");
        self.write(&theirs);
        self.import("as it is", &folder)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let (mut random, mut refused) = (Random(29), 0);
        for number in 0..FILES {
            let (name, bytes) = &self.files[number % self.files.len()];
            let kind = number / self.files.len() % KINDS.len();
            let mut file = bytes.clone();
            damage(kind, &mut random, &mut file);
            let path = theirs.join(name);
            fs::remove_file(&path).expect("removed");
            fs::write(&path, file).expect("written");
            let what = format!(
                "{} number {number}: {}: {}",
                self.name,
                name.display(),
                KINDS[kind]
            );
            if self.import(&what, &folder).is_err() {
                refused += 1;
            }
            fs::remove_file(&path).expect("removed");
            fs::write(&path, bytes).expect("written");
        }
        assert!(
            refused > FILES / 4,
            "{}: only {refused} of {FILES} were refused",
            self.name
        );
    }
}

#[test]
fn damaged_folders_of_hugging_face_are_refused_or_imported() {
    Fixture::new("huggingface/marian").damaged();
}

#[test]
fn damaged_folders_of_hugging_face_with_pickles_are_refused_or_imported() {
    Fixture::new("huggingface/marian-half").damaged();
}

#[test]
fn damaged_folders_of_models_of_many_languages_are_refused_or_imported() {
    Fixture::new("huggingface/m2m100")
        .with_languages("en", "de")
        .damaged();
}

#[test]
fn damaged_folders_of_marian_are_refused_or_imported() {
    Fixture::new("marian/post-norm-bin").damaged();
    Fixture::new("marian/pre-norm-npz").damaged();
}

#[test]
fn damaged_folders_of_bergamot_are_refused_or_imported() {
    Fixture::new("marian/bergamot").damaged();
}

#[test]
fn damaged_folders_of_ctranslate2_are_refused_or_imported() {
    Fixture::new("ctranslate2/float32").damaged();
    Fixture::new("ctranslate2/int8").damaged();
}

#[test]
fn damaged_argos_packages_are_refused_or_imported() {
    let name = "translate-en_pt.argosmodel";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ctranslate2");
    let package = Fixture {
        name: "an Argos package",
        files: vec![(name.into(), fs::read(folder.join(name)).expect("a fixture"))],
        options: ImportOptions::default(),
        source: name,
    };
    package.damaged();
}

#[test]
fn damaged_mappings_dictionaries_and_codes_are_refused_or_imported() {
    Fixture::mapped().damaged();
}
