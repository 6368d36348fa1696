//! A model directory: everything needed to translate, in files that other programs can read too.
//!
//! ```text
//! config.json         the architecture and "format": 1; "family" for another one than the Transformer
//! model.safetensors   the weights: f32, or int8 as `attentive quantize` writes them
//! tokenizer.json      one tokenizer for both languages (tokenizer.spm for a SentencePiece file),
//!                     or src.tokenizer.json and tgt.tokenizer.json
//! generation.json     how text is framed and searched, where that is not as usual (Generation); optional
//! ```
//!
//! `attentive-train` writes such directories (a checkpoint is one), `attentive-nn` builds a model
//! from one, and `attentive-runtime` translates with one. The files of an [`EmbeddedModel`]
//! are part of the program (`attentive-models`); opened, it is a model directory like any other.
//! [`ModelDir`] is the directory of a translation model; [`AnyModelDir`] that of a model of whichever family.

use std::fs;
use std::path::{Path, PathBuf};

use attentive_text::Tokenizer;
use attentive_text::tokenizer::FILE_EXTENSIONS;

use crate::config::{self, AnyConfig, ModelConfig, TransformerConfig};
use crate::durable;
use crate::error::{ModelError, Result};
use crate::generation::{self, Generation};
use crate::int8::Int8Weights;
use crate::shortlist::Shortlist;
use crate::weights::Weights;

/// A model directory whose config and tokenizers have been read and fit together.
#[derive(Debug, Clone)]
pub struct ModelDir {
    /// The directory itself (`RUN/best` or `RUN/last` if a training run was opened), or the name of
    /// an embedded model.
    pub path: PathBuf,
    /// The architecture.
    pub config: TransformerConfig,
    /// The tokenizers of both languages.
    pub tokenizers: Tokenizers,
    /// How text is framed, and how translations are usually searched for.
    pub generation: Generation,
    /// A folder in which whoever computes with the model may keep its weights in a form that loads faster.
    /// Nothing, unless somebody says so.
    pub cache: Option<PathBuf>,
    weights: WeightsFile,
    /// The shortlist of a model that is part of the program.
    embedded_shortlist: Option<&'static [u8]>,
}

/// The files of a model directory, as parts of the program.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedModel {
    /// What errors call it: `the built-in model de-en`.
    pub name: &'static str,
    /// `config.json`
    pub config: &'static [u8],
    /// `model.safetensors`; on a cache line, for the sake of speed.
    pub weights: &'static [u8],
    /// `tokenizer.json`
    pub tokenizer: &'static [u8],
    /// `generation.json`, if it has one.
    pub generation: Option<&'static [u8]>,
    /// The shortlist that `generation.json` names, if it names one.
    pub shortlist: Option<&'static [u8]>,
}

/// Where the weights of a model are.
#[derive(Debug, Clone, Copy)]
enum WeightsFile {
    InFolder,
    Embedded(&'static [u8]),
}

impl ModelDir {
    /// Opens a model directory, or the best (else the last) model of a training run.
    ///
    /// The weights are not read yet; see [`ModelDir::weights`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = resolve(path.as_ref())?;
        let config = config::read(&file(&path, CONFIG)?)?;
        let tokenizers = Tokenizers::load(&path)?;
        file(&path, WEIGHTS)?;
        let generation = Generation::read(&path, &config)?;
        let opened = Self::fitting(path, config, tokenizers, WeightsFile::InFolder)?;
        Ok(Self {
            generation,
            ..opened
        })
    }

    /// Whether a folder looks like a model directory or a training run of this program, and not like a model of
    /// another one.
    pub fn is_model(path: &Path) -> bool {
        resolve(path).is_ok_and(|path| config::has_format(&path.join(CONFIG)))
    }

    /// What a directory, or the best model of a training run, says about generation; nothing else of it is read but its
    /// configuration.
    pub fn generation_of(path: impl AsRef<Path>) -> Result<Generation> {
        let path = resolve(path.as_ref())?;
        let config = config::read(&path.join(CONFIG))?;
        Generation::read(&path, &config)
    }

    /// Opens a model that is part of the program. Nothing is copied but what is copied from a
    /// directory, too.
    pub fn embedded(model: &EmbeddedModel) -> Result<Self> {
        let path = PathBuf::from(model.name);
        let config = config::parse(&path.join(CONFIG), model.config)?;
        let tokenizer = Tokenizer::from_bytes(model.tokenizer, path.join("tokenizer.json"))?;
        let weights = WeightsFile::Embedded(model.weights);
        let generation = model.generation.map_or_else(
            || Ok(Generation::default()),
            |bytes| Generation::parse(&path.join(generation::FILE), bytes, &config),
        )?;
        let directory = Self::fitting(path, config, Tokenizers::shared(tokenizer), weights)?;
        Ok(Self {
            generation,
            embedded_shortlist: model.shortlist,
            ..directory
        })
    }

    /// All parts together, if the tokenizers are the model's.
    fn fitting(
        path: PathBuf,
        config: TransformerConfig,
        tokenizers: Tokenizers,
        weights: WeightsFile,
    ) -> Result<Self> {
        tokenizers.must_fit((config.src_vocab, config.tgt_vocab), &path)?;
        Ok(Self {
            path,
            config,
            tokenizers,
            generation: Generation::default(),
            cache: None,
            weights,
            embedded_shortlist: None,
        })
    }

    /// Maps the weights file, or finds it in the program.
    pub fn weights(&self) -> Result<Weights> {
        let path = Self::weights_path(&self.path);
        match self.weights {
            WeightsFile::InFolder => Weights::open(path),
            WeightsFile::Embedded(bytes) => Weights::from_static(path, bytes),
        }
    }

    /// The size of the weights file.
    pub fn weights_bytes(&self) -> Result<u64> {
        let path = Self::weights_path(&self.path);
        match self.weights {
            WeightsFile::InFolder => {
                let metadata = fs::metadata(&path).map_err(ModelError::io("read", &path))?;
                Ok(metadata.len())
            }
            WeightsFile::Embedded(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Writes a model directory: `tensors` are `(name, shape, values)`. The directory is made if it
    /// is missing; files of an earlier model in it are replaced.
    pub fn save<'a, C: ModelConfig>(
        path: impl AsRef<Path>,
        config: &C,
        tokenizers: &Tokenizers,
        tensors: impl IntoIterator<Item = (&'a str, &'a [usize], &'a [f32])>,
    ) -> Result<()> {
        let path = path.as_ref();
        save_all_but_weights(path, config, tokenizers)?;
        Weights::write(path.join(WEIGHTS), tensors)
    }

    /// As [`ModelDir::save`], with int8 weights.
    pub fn save_int8(
        path: impl AsRef<Path>,
        config: &TransformerConfig,
        tokenizers: &Tokenizers,
        weights: &Int8Weights,
    ) -> Result<()> {
        let path = path.as_ref();
        save_all_but_weights(path, config, tokenizers)?;
        Weights::write_mixed(path.join(WEIGHTS), weights.tensors())
    }

    /// Gives a directory for the same model with other weights what this one says about generation, the shortlist
    /// included.
    pub fn copy_generation(&self, to: &Path) -> Result<()> {
        if let (Some(name), Some(shortlist)) = (&self.generation.shortlist, self.shortlist()?) {
            let to = to.join(name);
            fs::write(&to, shortlist.to_bytes()).map_err(ModelError::io("write", &to))?;
        }
        self.generation.write(to)
    }

    /// Reads the shortlist that is used unless it is turned off, if the model has one.
    pub fn shortlist(&self) -> Result<Option<Shortlist>> {
        let Some(name) = &self.generation.shortlist else {
            return Ok(None);
        };
        let path = self.path.join(name);
        match self.embedded_shortlist {
            Some(bytes) => Shortlist::from_bytes(bytes, &path),
            None => Shortlist::open(&path),
        }
        .map(Some)
    }

    /// Where a directory's weights are.
    pub fn weights_path(path: &Path) -> PathBuf {
        path.join(WEIGHTS)
    }
}

/// The directory of a model of any family, without its weights.
#[derive(Debug, Clone)]
pub struct AnyModelDir {
    /// The directory itself (`RUN/best` or `RUN/last` if a training run was opened).
    pub path: PathBuf,
    /// The architecture.
    pub config: AnyConfig,
    /// What text is cut with, if the family reads text; a family with one vocabulary has one for both sides.
    pub tokenizers: Option<Tokenizers>,
}

impl AnyModelDir {
    /// Opens a model directory, or the best (else the last) model of a training run.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = resolve(path.as_ref())?;
        let config = config::read_any(&file(&path, CONFIG)?)?;
        let tokenizers = match config.vocabularies() {
            None => None,
            Some(sizes) => {
                let tokenizers = Tokenizers::load(&path)?;
                tokenizers.must_fit(sizes, &path)?;
                Some(tokenizers)
            }
        };
        file(&path, WEIGHTS)?;
        Ok(Self {
            path,
            config,
            tokenizers,
        })
    }

    /// Writes the directory of a model of a family without text: `tensors` are `(name, shape, values)`.
    pub fn save<'a, C: ModelConfig>(
        path: &Path,
        config: &C,
        tensors: impl IntoIterator<Item = (&'a str, &'a [usize], &'a [f32])>,
    ) -> Result<()> {
        fs::create_dir_all(path).map_err(ModelError::io("create", path))?;
        config::write(&path.join(CONFIG), config)?;
        Weights::write(path.join(WEIGHTS), tensors)
    }

    /// The configuration, if the model is of the family that is needed.
    pub fn config_of<C: ModelConfig>(&self) -> Result<&C> {
        C::of(&self.config).ok_or_else(|| ModelError::WrongFamily {
            path: self.path.join(CONFIG),
            found: self.config.family().name().to_string(),
            expected: C::FAMILY.name(),
        })
    }

    /// The tokenizer of a family with one vocabulary.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        let tokenizers = self.tokenizers.as_ref();
        let tokenizers =
            tokenizers.ok_or_else(|| not_a_model(&self.path, "it has no tokenizer".to_string()))?;
        Ok(&tokenizers.tgt)
    }
}

impl From<ModelDir> for AnyModelDir {
    fn from(directory: ModelDir) -> Self {
        Self {
            path: directory.path,
            config: directory.config.into(),
            tokenizers: Some(directory.tokenizers),
        }
    }
}

/// The tokenizers of the source and the target language.
#[derive(Debug, Clone)]
pub struct Tokenizers {
    /// Cuts the sources.
    pub src: Tokenizer,
    /// Puts the targets together.
    pub tgt: Tokenizer,
}

impl Tokenizers {
    /// One tokenizer for both languages.
    pub fn shared(tokenizer: Tokenizer) -> Self {
        Self {
            src: tokenizer.clone(),
            tgt: tokenizer,
        }
    }

    /// Whether both languages use one tokenizer.
    pub fn is_shared(&self) -> bool {
        self.src.fingerprint() == self.tgt.fingerprint()
    }

    /// Reads `tokenizer.json`, or `src.tokenizer.json` and `tgt.tokenizer.json`, from a directory; any of
    /// them may be a SentencePiece file instead, whose name ends in `.spm`.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let find = |name| tokenizer_files(dir, name).find(|path| path.is_file());
        let missing = |name| Err(not_a_model(dir, format!("{name}.json is missing")));
        match (find(SHARED), find(SRC), find(TGT)) {
            (Some(shared), None, None) => Ok(Self::shared(Tokenizer::load(shared)?)),
            (None, Some(src), Some(tgt)) => Ok(Self {
                src: Tokenizer::load(src)?,
                tgt: Tokenizer::load(tgt)?,
            }),
            (None, None, None) => missing(SHARED),
            (None, Some(_), None) => missing(TGT),
            (None, None, Some(_)) => missing(SRC),
            (Some(_), _, _) => Err(not_a_model(
                dir,
                format!("it holds both {SHARED}.json and a tokenizer for one language"),
            )),
        }
    }

    /// Refuses tokenizers of other sizes, source and target, than those of the model at `path`.
    fn must_fit(&self, (src, tgt): (usize, usize), path: &Path) -> Result<()> {
        for (side, tokenizer, model) in [
            ("the source", &self.src, src),
            ("the target", &self.tgt, tgt),
        ] {
            let tokenizer = tokenizer.vocab_size();
            if tokenizer != model {
                return Err(ModelError::VocabularyMismatch {
                    side,
                    path: Some(path.to_path_buf()),
                    tokenizer,
                    model,
                });
            }
        }
        Ok(())
    }

    /// Writes the tokenizers into a directory that exists, and removes files of another layout,
    /// which would make [`Tokenizers::load`] ambiguous.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        let wanted = if self.is_shared() {
            vec![(SHARED, &self.src)]
        } else {
            vec![(SRC, &self.src), (TGT, &self.tgt)]
        };
        let mut written = Vec::with_capacity(wanted.len());
        for (name, tokenizer) in wanted {
            let path = dir.join(format!("{name}.{}", tokenizer.file_extension()));
            durable::write(&path, &tokenizer.to_bytes()?)
                .map_err(ModelError::io("write", &path))?;
            written.push(path);
        }
        let all = [SHARED, SRC, TGT].into_iter();
        for path in all.flat_map(|name| tokenizer_files(dir, name)) {
            if path.exists() && !written.contains(&path) {
                fs::remove_file(&path).map_err(ModelError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// Where a tokenizer of this name may be.
fn tokenizer_files(dir: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    FILE_EXTENSIONS
        .map(|end| dir.join(format!("{name}.{end}")))
        .into_iter()
}

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// Names of tokenizers, without the extension.
const SHARED: &str = "tokenizer";
const SRC: &str = "src.tokenizer";
const TGT: &str = "tgt.tokenizer";

fn save_all_but_weights<C: ModelConfig>(
    path: &Path,
    config: &C,
    tokenizers: &Tokenizers,
) -> Result<()> {
    fs::create_dir_all(path).map_err(ModelError::io("create", path))?;
    config::write(&path.join(CONFIG), config)?;
    tokenizers.save(path)
}

/// The model directory that `path` means: itself, or the best or last model of a training run.
fn resolve(path: &Path) -> Result<PathBuf> {
    if path.join(CONFIG).is_file() {
        return Ok(path.to_path_buf());
    }
    if !path.is_dir() {
        let found = if path.exists() {
            "it is a file"
        } else {
            "there is no such directory"
        };
        return Err(not_a_model(path, found.to_string()));
    }
    for name in ["best", "last"] {
        let model = path.join(name);
        if model.is_dir() {
            return Ok(model);
        }
        // A link whose checkpoint was deleted; taking another model instead would be a surprise.
        if model.is_symlink() {
            return Err(not_a_model(path, format!("its `{name}` points to nothing")));
        }
    }
    Err(not_a_model(
        path,
        format!("it has neither {CONFIG} nor `best` nor `last`"),
    ))
}

/// The path of a file that a model directory must have.
fn file(dir: &Path, name: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    if !path.is_file() {
        return Err(not_a_model(dir, format!("{name} is missing")));
    }
    Ok(path)
}

fn not_a_model(path: &Path, found: String) -> ModelError {
    ModelError::NotAModel {
        path: path.to_path_buf(),
        found,
    }
}
