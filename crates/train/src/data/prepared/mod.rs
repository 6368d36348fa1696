//! A corpus that was prepared (`attentive prepare`): tokenized, in shards that are mapped and streamed, so that training
//! needs no more memory for a hundred million pairs than for a hundred thousand.
//!
//! ```text
//! DIR/prepare.json               what it is made from: settings of the recipe, fingerprints of the files
//! DIR/tokenizer.json             the vocabularies, as in a model directory
//! DIR/00000.pairs, 00001.pairs   the shards
//! DIR/manifest.json              written last: all of the above, what became of the lines, checksums of the shards
//! ```
//!
//! [`prepare`] writes it, [`shard`] is one file, [`stream`] the batches of an epoch. A recipe names the folder as
//! `data.prepared`; neighbor: [`crate::data::corpus`] reads corpora into memory where it does not.

pub mod prepare;
pub mod shard;
pub mod stream;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attentive_model::ModelError;
use attentive_model::directory::Tokenizers;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::corpus::Report;
use crate::data::fingerprint::CorpusFingerprint;
use crate::recipe::{Recipe, TokenizerSection};
use shard::{Key, Shard};

/// A prepared corpus, open for training.
#[derive(Debug)]
pub struct Prepared {
    folder: PathBuf,
    /// What was written last.
    pub manifest: Manifest,
    /// The vocabularies.
    pub tokenizers: Tokenizers,
    shards: Vec<Arc<Shard>>,
    /// Blocks and pairs before each shard, and all of them.
    first_blocks: Vec<usize>,
    first_pairs: Vec<usize>,
}

/// What a corpus was prepared from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    format: u32,
    settings: Settings,
    /// The files, held-out ones and those of the vocabulary included.
    pub corpus: CorpusFingerprint,
    /// What the vocabulary was learned from; nothing if it is that of `training.start_from`.
    pub vocabulary: Option<Sample>,
}

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it was prepared from.
    #[serde(flatten)]
    pub preparation: Preparation,
    /// What became of the lines.
    pub report: Report,
    /// In the order of the corpus.
    pub shards: Vec<ShardEntry>,
}

/// A shard in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// The file's name.
    pub name: String,
    /// BLAKE3 of its header, which holds those of its blocks.
    pub blake3: String,
}

/// What of a recipe decides what is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Settings {
    src: Vec<String>,
    tgt: Vec<String>,
    held_out: Vec<String>,
    vocab_src: Vec<String>,
    vocab_tgt: Vec<String>,
    max_length: usize,
    /// Nothing if the vocabularies are those of `training.start_from`.
    tokenizer: Option<TokenizerSection>,
}

/// The pairs that a vocabulary was learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How many they are.
    pub pairs: usize,
    /// Of how many.
    pub of: usize,
}

/// What can be wrong with a prepared corpus.
#[derive(Debug, thiserror::Error)]
pub enum PreparedError {
    /// Nothing was prepared.
    #[error(
        "{} holds no prepared corpus: `attentive prepare` with the same recipe and the same --set values writes it",
        .0.display()
    )]
    Missing(PathBuf),
    /// It was begun.
    #[error(
        "the corpus in {} is not prepared to its end: run `attentive prepare` again, which goes on where it stopped",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// The recipe asks for something else.
    #[error(
        "the corpus in {} was prepared differently:{}\nPrepare it anew in another folder (`data.prepared`), or undo \
         the change.",
        folder.display(),
        differences.iter().map(|one| format!("\n  {one}")).collect::<String>()
    )]
    Differs {
        /// Where it is.
        folder: PathBuf,
        /// One sentence per difference.
        differences: Vec<String>,
    },
    /// The vocabularies are not those of the model that training starts from or goes on with.
    #[error(
        "the corpus in {} was prepared with another vocabulary than that of the model: prepare it anew in another \
         folder (`data.prepared`), with `training.start_from` if the model is one to start from",
        .0.display()
    )]
    OtherVocabulary(PathBuf),
    /// A shard is not what it was.
    #[error(
        "{} is damaged: {problem}. Run `attentive prepare` again: it writes what is damaged anew and keeps the rest",
        shard.display()
    )]
    Damaged {
        /// The file.
        shard: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file beside the shards cannot be read.
    #[error("{} is no such file of `attentive prepare`, or damaged: {source}; remove the folder and prepare the corpus again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A later version of the program wrote it.
    #[error("{} has format {found}, and this program reads {FORMAT}: prepare the corpus again in another folder", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Longer sides than a shard can hold.
    #[error("`data.max_length` ({0}) is more than the {most} tokens that a prepared pair can have", most = shard::LONGEST)]
    TooLong(usize),
    /// A file is not what it was a moment ago.
    #[error("{0} changed while it was being prepared: run `attentive prepare` again")]
    ChangedMeanwhile(String),
    /// The folder holds something else.
    #[error(
        "{} is none of the files of a prepared corpus: name a folder of its own as `data.prepared`",
        .0.display()
    )]
    Foreign(PathBuf),
    /// Another process prepares the same corpus.
    #[error("another process is preparing the corpus in {}: wait for it, or stop it", .0.display())]
    Locked(PathBuf),
    /// The vocabularies.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Anything that the system refuses.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

const FORMAT: u32 = 1;
const PREPARATION: &str = "prepare.json";
const MANIFEST: &str = "manifest.json";

impl Prepared {
    /// Opens what was prepared for this recipe. Shards are checked by their headers here, and block by block when
    /// they are read.
    pub fn open(recipe: &Recipe) -> Result<Self, PreparedError> {
        let folder = PathBuf::from(&recipe.data.prepared);
        let Some(manifest) = read_json::<Manifest>(&folder.join(MANIFEST))? else {
            return Err(if folder.join(PREPARATION).exists() {
                PreparedError::Unfinished(folder)
            } else {
                PreparedError::Missing(folder)
            });
        };
        manifest.preparation.refuse_other(recipe, &folder)?;
        let tokenizers = Tokenizers::load(&folder)?;
        let key = manifest.preparation.key(&tokenizers);
        let shards = manifest
            .shards
            .par_iter()
            .map(|entry| {
                let path = folder.join(&entry.name);
                let shard = Shard::open(&path, &key)?;
                if shard.checksum() == entry.blake3 {
                    return Ok(Arc::new(shard));
                }
                let problem = "its checksum is not that of the manifest".to_owned();
                let shard = path;
                Err(PreparedError::Damaged { shard, problem })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            first_blocks: starts(shards.iter().map(|shard| shard.blocks())),
            first_pairs: starts(shards.iter().map(|shard| shard.header().pairs as usize)),
            folder,
            manifest,
            tokenizers,
            shards,
        })
    }

    /// Refuses vocabularies that are not those of the shards.
    pub fn refuse_other_vocabulary(&self, tokenizers: &Tokenizers) -> Result<(), PreparedError> {
        if fingerprints(tokenizers) == fingerprints(&self.tokenizers) {
            Ok(())
        } else {
            Err(PreparedError::OtherVocabulary(self.folder.clone()))
        }
    }

    /// Pairs in all shards.
    pub fn pairs(&self) -> usize {
        self.first_pairs.last().copied().unwrap_or(0)
    }

    /// Blocks in all shards.
    fn blocks(&self) -> usize {
        self.first_blocks.last().copied().unwrap_or(0)
    }

    fn shard(&self, shard: usize) -> &Arc<Shard> {
        &self.shards[shard]
    }

    fn first_block(&self, shard: usize) -> usize {
        self.first_blocks[shard]
    }

    fn first_pair(&self, shard: usize) -> usize {
        self.first_pairs[shard]
    }

    /// The shard of a block, and which of its blocks it is.
    fn shard_of_block(&self, block: usize) -> (usize, usize) {
        let shard = self.first_blocks.partition_point(|&first| first <= block) - 1;
        (shard, block - self.first_blocks[shard])
    }

    /// Where a pair is: shard, block of the shard, place in the block.
    fn place(&self, pair: usize) -> (usize, usize, usize) {
        let shard = self.first_pairs.partition_point(|&first| first <= pair) - 1;
        let within = pair - self.first_pairs[shard];
        (
            shard,
            within / shard::BLOCK_PAIRS,
            within % shard::BLOCK_PAIRS,
        )
    }
}

impl Preparation {
    /// What everything written belongs to.
    fn key(&self, tokenizers: &Tokenizers) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in [to_json(&self.settings), to_json(&self.corpus)] {
            hasher.update(&part);
        }
        for fingerprint in fingerprints(tokenizers) {
            hasher.update(fingerprint.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// Refuses a recipe that asks for something else.
    fn refuse_other(&self, recipe: &Recipe, folder: &Path) -> Result<(), PreparedError> {
        if self.format != FORMAT {
            let (path, found) = (folder.join(MANIFEST), self.format);
            return Err(PreparedError::Format { path, found });
        }
        let mut asked = Settings::of(recipe);
        if asked.tokenizer.is_none() {
            // The vocabularies are compared themselves, when those of the model are known.
            asked.tokenizer.clone_from(&self.settings.tokenizer);
        }
        let differences = self.settings.differences(&asked);
        if differences.is_empty() {
            return Ok(());
        }
        let folder = folder.to_owned();
        Err(PreparedError::Differs {
            folder,
            differences,
        })
    }
}

impl Settings {
    fn of(recipe: &Recipe) -> Self {
        let data = &recipe.data;
        let learned = recipe.training.learns_vocabulary();
        Self {
            src: data.src.clone(),
            tgt: data.tgt.clone(),
            held_out: data.held_out.clone(),
            vocab_src: data.vocab_src.clone(),
            vocab_tgt: data.vocab_tgt.clone(),
            max_length: data.max_length,
            tokenizer: learned.then(|| recipe.tokenizer.clone()),
        }
    }

    fn differences(&self, asked: &Self) -> Vec<String> {
        let keys = |settings: &Self| {
            let mut keys = Vec::new();
            for (key, value) in object(settings) {
                match value {
                    Value::Object(inner) => {
                        keys.extend(inner.into_iter().map(|(k, v)| (format!("{key}.{k}"), v)));
                    }
                    value if key == "tokenizer" => keys.push((key, value)),
                    value => keys.push((format!("data.{key}"), value)),
                }
            }
            keys
        };
        let (before, now) = (keys(self), keys(asked));
        let value = |side: &[(String, Value)], key: &str| {
            let found = side.iter().find(|(name, _)| name == key);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.to_string())
        };
        let mut names: Vec<&String> = before.iter().chain(&now).map(|(key, _)| key).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .map(|key| (key, value(&before, key), value(&now, key)))
            .filter(|(_, before, now)| before != now)
            .map(|(key, before, now)| {
                format!("`{key}`: {before} when it was prepared, {now} in the recipe")
            })
            .collect()
    }
}

impl PreparedError {
    /// What to do with an error of the system.
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn fingerprints(tokenizers: &Tokenizers) -> [String; 2] {
    [tokenizers.src.fingerprint(), tokenizers.tgt.fingerprint()]
}

/// What comes before each, and all together.
fn starts(sizes: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(sizes.scan(0, |before, size| {
        *before += size;
        Some(*before)
    }));
    starts
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, PreparedError> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(PreparedError::io("read", path))?,
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| PreparedError::Json {
            path: path.to_owned(),
            source,
        })
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default() // Plain values always have a JSON form.
}

fn object(value: &impl Serialize) -> serde_json::Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(keys)) => keys,
        _ => serde_json::Map::new(),
    }
}
