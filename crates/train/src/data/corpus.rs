//! Text files (or a synthetic task) -> encoded sentence pairs.
//!
//! [`CorpusText::read`] reads what the recipe names, leaves out what is held out ([`crate::data::held_out`]) and
//! takes the text's fingerprint, [`CorpusText::train_tokenizers`] learns the vocabularies, [`CorpusText::encode`]
//! turns every line into numbers and reports what was left out. [`crate::data::mixture`] says which lines an
//! epoch sees how often. The pairs go to [`crate::data::batches`]. Where the recipe names a prepared corpus, its
//! training pairs are not read here but streamed ([`crate::data::prepared`]).

use std::path::PathBuf;
use std::sync::Arc;

use attentive_model::directory::{ModelDir, Tokenizers};
use attentive_text::lines::{is_blank, read_lines};
use attentive_text::parallel::ParallelCorpus;
use attentive_text::special::{UNK, source_ids, target_ids};
use attentive_text::tokenizer::Tokenizer;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::fingerprint::CorpusFingerprint;
use crate::data::held_out::HeldOut;
use crate::data::mixture::{Mixture, Visit};
use crate::data::prepared::Prepared;
use crate::data::synthetic;
use crate::error::{Result, TrainError};
use crate::recipe::Recipe;

/// A sentence pair as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Source tokens and `</s>`.
    pub src: Vec<u32>,
    /// `<s>`, target tokens, `</s>`.
    pub tgt: Vec<u32>,
}

/// Everything that the recipe's `[data]` names, as text.
#[derive(Debug, Clone, Default)]
pub struct CorpusText {
    /// Training lines; none where they were prepared.
    pub train: ParallelCorpus,
    /// Training pairs that were prepared.
    prepared: Option<Arc<Prepared>>,
    /// How often an epoch goes through them.
    mixture: Mixture,
    /// Training pairs that were left out because a side is held out.
    held_out: usize,
    /// Validation lines; without validation data, none.
    pub val: ParallelCorpus,
    /// Source lines that only the vocabulary is counted over.
    pub vocab_src: Vec<String>,
    /// Target lines that only the vocabulary is counted over.
    pub vocab_tgt: Vec<String>,
    /// Tells this text from any other.
    pub fingerprint: CorpusFingerprint,
}

/// The sentence pairs of a run as numbers.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// Training pairs as they stand in the files; see [`Corpus::of_epoch`]. None where they were prepared.
    pub train: Arc<Vec<Pair>>,
    /// Training pairs that were prepared.
    pub prepared: Option<Arc<Prepared>>,
    /// Training lines, if every epoch sees others, or other forms of them.
    train_text: Option<(ParallelCorpus, Mixture)>,
    /// Validation pairs.
    pub val: Vec<Pair>,
    /// Source lines of *all* validation pairs: BLEU leaves nothing out.
    pub val_src: Vec<String>,
    /// Target lines of all validation pairs.
    pub val_tgt: Vec<String>,
    /// What became of the training lines.
    pub train_report: Report,
    /// What became of the validation lines.
    pub val_report: Report,
    /// Tells the text from any other.
    pub fingerprint: CorpusFingerprint,
}

/// What became of the lines of a corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Pairs read.
    pub read: usize,
    /// Pairs left out because a side is held out (`data.held_out`).
    pub held_out: usize,
    /// Pairs left out because a side was empty.
    pub empty: usize,
    /// Pairs left out because a side had more than `data.max_length` tokens.
    pub too_long: usize,
    /// The first pair that was too long, counted from 1 over all files, and its longer side's tokens.
    pub first_too_long: Option<(usize, usize)>,
    /// Source tokens kept, `</s>` included.
    pub src_tokens: usize,
    /// Target tokens kept, `</s>` included.
    pub tgt_tokens: usize,
    /// Source tokens kept that are `<unk>`.
    pub src_unknown: usize,
    /// Target tokens kept that are `<unk>`.
    pub tgt_unknown: usize,
}

impl CorpusText {
    /// Reads every file of the recipe, or makes up its synthetic task.
    pub fn read(recipe: &Recipe) -> Result<Self> {
        let data = &recipe.data;
        let mut text = CorpusText::default();
        if let Some(settings) = &data.synthetic {
            let task = synthetic::generate(settings);
            (text.train.src, text.train.tgt) = task.train.into_iter().unzip();
            (text.val.src, text.val.tgt) = task.val.into_iter().unzip();
            text.fingerprint
                .add("data.synthetic", "training source", &text.train.src);
            text.fingerprint
                .add("data.synthetic", "training target", &text.train.tgt);
            text.fingerprint
                .add("data.synthetic", "validation source", &text.val.src);
            text.fingerprint
                .add("data.synthetic", "validation target", &text.val.tgt);
            return Ok(text);
        }
        if data.prepared.is_empty() {
            refuse_missing_files(recipe, |_| true)?;
            text.read_training(recipe)?;
        } else {
            refuse_missing_files(recipe, |list| list.starts_with("val_"))?;
            let prepared = Prepared::open(recipe)?;
            text.fingerprint = prepared.manifest.preparation.corpus.clone();
            text.prepared = Some(Arc::new(prepared));
        }
        let print = &mut text.fingerprint;
        for (src, tgt) in data.val_src.iter().zip(&data.val_tgt) {
            let paths = data.paths(&[src.clone(), tgt.clone()]);
            let read = read_pair(&paths, [src, tgt], "validation", print)?;
            append(&mut text.val, read);
        }
        text.read_vocabulary(recipe)?;
        Ok(text)
    }

    /// Reads the training lines, without those that are held out.
    fn read_training(&mut self, recipe: &Recipe) -> Result<()> {
        let (text, data) = (self, &recipe.data);
        let print = &mut text.fingerprint;
        let mut held_out = HeldOut::default();
        for (file, path) in data.held_out.iter().zip(data.paths(&data.held_out)) {
            let lines = read_lines(&path)?;
            print.add(file, "held-out", &lines);
            held_out.add(&lines);
        }
        for (number, (src, tgt)) in data.src.iter().zip(&data.tgt).enumerate() {
            let paths = data.paths(&[src.clone(), tgt.clone()]);
            let mut read = read_pair(&paths, [src, tgt], "training", print)?;
            text.held_out += held_out.remove_from(&mut read);
            append(&mut text.train, read);
            if let Some(&weight) = data.weights.get(number) {
                text.mixture.add(text.train.len(), weight);
            }
        }
        Ok(())
    }

    /// Reads the lines that only the vocabulary is counted over, unless it is known already.
    fn read_vocabulary(&mut self, recipe: &Recipe) -> Result<()> {
        if self.prepared.is_some() {
            return Ok(());
        }
        let (text, data) = (self, &recipe.data);
        let print = &mut text.fingerprint;
        let more = [
            (&data.vocab_src, &mut text.vocab_src, "vocabulary source"),
            (&data.vocab_tgt, &mut text.vocab_tgt, "vocabulary target"),
        ];
        for (files, lines, role) in more {
            for (file, path) in files.iter().zip(data.paths(files)) {
                let read = read_lines(&path)?;
                print.add(file, role, &read);
                lines.extend(read);
            }
        }
        Ok(())
    }

    /// Learns the recipe's vocabularies from the training lines, as often as the first epoch sees them, and the
    /// extra vocabulary lines; or takes those that were prepared.
    pub fn train_tokenizers(&self, recipe: &Recipe) -> Result<Tokenizers> {
        if let Some(prepared) = &self.prepared {
            return Ok(prepared.tokenizers.clone());
        }
        let visits = self
            .mixture
            .visits(self.train.len(), recipe.training.seed, 0);
        let src = || seen(&self.train.src, &visits, &self.vocab_src);
        let tgt = || seen(&self.train.tgt, &visits, &self.vocab_tgt);
        learn_tokenizers(recipe, src, tgt)
    }

    /// Turns every line into numbers; pairs with an empty or too long side are left out and counted.
    pub fn encode(self, recipe: &Recipe, tokenizers: &Tokenizers) -> Result<Corpus> {
        let longest = recipe.data.max_length;
        let (train, mut train_report) = encode_lines(&self.train, longest, tokenizers);
        train_report.read += self.held_out;
        train_report.held_out = self.held_out;
        let (val, val_report) = encode_lines(&self.val, longest, tokenizers);
        let checks = [
            (&train, &train_report, "training"),
            (&val, &val_report, "validation"),
        ];
        for (pairs, report, role) in checks {
            if pairs.is_empty() && report.read > 0 {
                return Err(TrainError::NothingLeft {
                    role,
                    report: report.clone(),
                    longest,
                });
            }
        }
        if let Some(prepared) = &self.prepared {
            prepared.refuse_other_vocabulary(tokenizers)?;
            train_report = prepared.manifest.report.clone();
        }
        let varies = !recipe.augmentation.is_off() || self.mixture != Mixture::default();
        Ok(Corpus {
            train: Arc::new(train),
            prepared: self.prepared,
            train_text: varies.then_some((self.train, self.mixture)),
            val,
            val_src: self.val.src,
            val_tgt: self.val.tgt,
            train_report,
            val_report,
            fingerprint: self.fingerprint,
        })
    }
}

impl Corpus {
    /// The training pairs as an epoch sees them: always the same, unless the recipe gives files weights
    /// (`data.weights`) or lines other forms (`[augmentation]`).
    pub fn of_epoch(&self, recipe: &Recipe, tokenizers: &Tokenizers, epoch: u64) -> Arc<Vec<Pair>> {
        let Some((text, mixture)) = &self.train_text else {
            return self.train.clone();
        };
        let (augmentation, seed) = (&recipe.augmentation, recipe.training.seed);
        let form = |visit: Visit, src: &str, tgt: &str| {
            let mut random = visit.random(seed, epoch);
            let (src, tgt) = augmentation.vary(src, tgt, &mut random);
            (
                augmentation.encode(&tokenizers.src, &src, &mut random),
                augmentation.encode(&tokenizers.tgt, &tgt, &mut random),
            )
        };
        // What is too long in its new form is missing in this epoch only, and not worth a report.
        let visits = mixture.visits(text.len(), seed, epoch);
        Arc::new(encode(text, &visits, recipe.data.max_length, form).0)
    }
}

impl Report {
    /// Pairs kept.
    pub fn kept(&self) -> usize {
        self.read - self.held_out - self.empty - self.too_long
    }

    /// Adds what became of the lines after these.
    pub fn add(&mut self, next: &Report) {
        if let Some((line, tokens)) = next.first_too_long {
            let before = self.read - self.held_out;
            self.first_too_long.get_or_insert((before + line, tokens));
        }
        self.read += next.read;
        self.held_out += next.held_out;
        self.empty += next.empty;
        self.too_long += next.too_long;
        self.src_tokens += next.src_tokens;
        self.tgt_tokens += next.tgt_tokens;
        self.src_unknown += next.src_unknown;
        self.tgt_unknown += next.tgt_unknown;
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let kept = self.kept();
        let (src, tgt) = (self.src_tokens, self.tgt_tokens);
        write!(
            f,
            "{kept} of {} pairs, {src} source and {tgt} target tokens",
            self.read
        )?;
        if self.held_out > 0 {
            write!(f, "; {} left out as held out", self.held_out)?;
        }
        if self.empty > 0 {
            write!(f, "; {} left out with an empty side", self.empty)?;
        }
        if let Some((line, tokens)) = self.first_too_long {
            write!(
                f,
                "; {} left out as too long, first pair {line} with {tokens} tokens",
                self.too_long
            )?;
        }
        if self.src_unknown + self.tgt_unknown > 0 {
            let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
            let (src, tgt) = (share(self.src_unknown, src), share(self.tgt_unknown, tgt));
            write!(
                f,
                "; <unk> is {src:.1}% of the source and {tgt:.1}% of the target"
            )?;
        }
        Ok(())
    }
}

/// Whether all files of these lists of the recipe are there: a user with a wrong `data.dir` should hear so once, not
/// once per file.
pub fn refuse_missing_files(recipe: &Recipe, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let data = &recipe.data;
    let mut missing: Vec<PathBuf> = data
        .lists()
        .into_iter()
        .filter(|(list, _)| wanted(list))
        .flat_map(|(_, files)| data.paths(files))
        .filter(|path| !path.exists())
        .collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(TrainError::MissingFiles {
        missing,
        dir: data.dir.clone(),
    })
}

fn read_pair(
    paths: &[PathBuf],
    names: [&str; 2],
    role: &str,
    print: &mut CorpusFingerprint,
) -> Result<ParallelCorpus> {
    let read = ParallelCorpus::read(&paths[..1], &paths[1..])?;
    print.add(names[0], &format!("{role} source"), &read.src);
    print.add(names[1], &format!("{role} target"), &read.tgt);
    Ok(read)
}

fn append(corpus: &mut ParallelCorpus, more: ParallelCorpus) {
    corpus.src.extend(more.src);
    corpus.tgt.extend(more.tgt);
}

/// The lines of one side as often as they are visited, and more lines.
fn seen<'a>(
    lines: &'a [String],
    visits: &'a [Visit],
    more: &'a [String],
) -> impl Iterator<Item = &'a str> {
    let visited = visits.iter().map(|visit| &lines[visit.line]);
    visited.chain(more).map(String::as_str)
}

/// Learns the recipe's vocabularies from lines of each side, or takes those of the model that it names.
pub fn learn_tokenizers<'a, S, T>(
    recipe: &Recipe,
    src: impl Fn() -> S,
    tgt: impl Fn() -> T,
) -> Result<Tokenizers>
where
    S: Iterator<Item = &'a str>,
    T: Iterator<Item = &'a str>,
{
    let options = recipe.tokenizer.options();
    if !recipe.tokenizer.from_model.is_empty() {
        let model = ModelDir::open(&recipe.tokenizer.from_model)?;
        if model.tokenizers.is_shared() != recipe.tokenizer.shared {
            return Err(TrainError::OtherSharing {
                model: model.path,
                shared: model.tokenizers.is_shared(),
            });
        }
        return Ok(model.tokenizers);
    }
    if recipe.tokenizer.shared {
        let shared = Tokenizer::train(&options, &mut src().chain(tgt()))?;
        return Ok(Tokenizers::shared(shared));
    }
    let src = Tokenizer::train(&options, &mut src())?;
    let tgt = Tokenizer::train(&options, &mut tgt())?;
    Ok(Tokenizers { src, tgt })
}

/// Encodes every pair of lines once, as it is.
pub fn encode_lines(
    text: &ParallelCorpus,
    longest: usize,
    tokenizers: &Tokenizers,
) -> (Vec<Pair>, Report) {
    let once = Mixture::default().visits(text.len(), 0, 0);
    encode(text, &once, longest, |_, src, tgt| {
        (tokenizers.src.encode(src), tokenizers.tgt.encode(tgt))
    })
}

/// Encodes the pair of lines of every visit with `tokens`.
fn encode(
    text: &ParallelCorpus,
    visits: &[Visit],
    longest: usize,
    tokens: impl Fn(Visit, &str, &str) -> (Vec<u32>, Vec<u32>) + Sync,
) -> (Vec<Pair>, Report) {
    let encoded: Vec<(Vec<u32>, Vec<u32>)> = visits
        .par_iter()
        .map(|&visit| {
            let (src, tgt) = (&text.src[visit.line], &text.tgt[visit.line]);
            if is_blank(src) || is_blank(tgt) {
                return Default::default();
            }
            tokens(visit, src, tgt)
        })
        .collect();
    let mut report = Report {
        read: encoded.len(),
        ..Report::default()
    };
    let mut pairs = Vec::with_capacity(encoded.len());
    for (index, (src, tgt)) in encoded.into_iter().enumerate() {
        if src.is_empty() || tgt.is_empty() {
            report.empty += 1;
            continue;
        }
        let longer = src.len().max(tgt.len());
        if longer > longest {
            report.too_long += 1;
            report.first_too_long.get_or_insert((index + 1, longer));
            continue;
        }
        let unknown = |tokens: &[u32]| tokens.iter().filter(|&&token| token == UNK).count();
        report.src_unknown += unknown(&src);
        report.tgt_unknown += unknown(&tgt);
        report.src_tokens += src.len() + 1;
        report.tgt_tokens += tgt.len() + 1;
        pairs.push(Pair {
            src: source_ids(src),
            tgt: target_ids(&tgt),
        });
    }
    (pairs, report)
}

#[cfg(test)]
mod tests {
    use attentive_text::special::{BOS, EOS};

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    /// A word-level recipe on `a.de` and `a.en` of the folder.
    fn recipe(dir: &tempfile::TempDir, overrides: &[&str]) -> Recipe {
        let text = format!(
            "[data]\ndir = {:?}\nsrc = \"a.de\"\ntgt = \"a.en\"\n[tokenizer]\nkind = \"word\"\n\
             vocab_size = 0\nmin_frequency = 1\nshared = false\n",
            dir.path()
        );
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        Recipe::from_toml_str("test", &text, &overrides).unwrap()
    }

    fn load(recipe: &Recipe) -> (Tokenizers, Corpus) {
        let text = CorpusText::read(recipe).unwrap();
        let tokenizers = text.train_tokenizers(recipe).unwrap();
        let corpus = text.encode(recipe, &tokenizers).unwrap();
        (tokenizers, corpus)
    }

    #[test]
    fn sources_end_in_eos_and_targets_stand_between_bos_and_eos() {
        let dir = folder(&[
            ("a.de", "ein Hund\neine Katze\n"),
            ("a.en", "a dog\na cat\n"),
        ]);
        let (tokenizers, corpus) = load(&recipe(&dir, &[]));
        assert_eq!(corpus.train.len(), 2);
        let [first, _] = &corpus.train[..] else {
            panic!()
        };
        assert_eq!((first.src.len(), first.tgt.len()), (3, 4));
        assert_eq!((first.src[2], first.tgt[0], first.tgt[3]), (EOS, BOS, EOS));
        assert_eq!(tokenizers.src.decode(&first.src), "ein Hund");
        assert_eq!(tokenizers.tgt.decode(&first.tgt), "a dog");
        assert_eq!(
            (
                corpus.train_report.src_tokens,
                corpus.train_report.tgt_tokens
            ),
            (6, 6)
        );
    }

    #[test]
    fn empty_and_too_long_pairs_are_left_out_and_counted() {
        let dir = folder(&[
            ("a.de", "a\n\nb\nc\na b c d\n"),
            ("a.en", "A\nB\n \nC D E F G\nA\n"),
        ]);
        let (_, corpus) = load(&recipe(&dir, &["data.max_length=3"]));
        let report = &corpus.train_report;
        assert_eq!((report.read, report.empty, report.too_long), (5, 2, 2));
        assert_eq!(report.first_too_long, Some((4, 5)));
        assert_eq!(corpus.train.len(), 1);
        let shown = report.to_string();
        assert!(shown.contains("1 of 5 pairs"), "{shown}");
        assert!(shown.contains("2 left out with an empty side"), "{shown}");
        assert!(
            shown.contains("2 left out as too long, first pair 4 with 5 tokens"),
            "{shown}"
        );
    }

    #[test]
    fn a_line_of_white_space_is_empty_to_subwords_too() {
        let dir = folder(&[("a.de", "a b\n \na b\n"), ("a.en", "A B\nA\n\t\u{a0}\n")]);
        let subwords = ["tokenizer.kind=bpe", "tokenizer.vocab_size=260"];
        let (_, corpus) = load(&recipe(&dir, &subwords));
        let report = &corpus.train_report;
        assert_eq!((report.read, report.empty), (3, 2));
        assert_eq!(corpus.train.len(), 1);
    }

    #[test]
    fn a_pair_of_exactly_the_maximum_length_stays() {
        let dir = folder(&[("a.de", "a b c\n"), ("a.en", "a b c\n")]);
        assert_eq!(load(&recipe(&dir, &["data.max_length=3"])).1.train.len(), 1);
    }

    #[test]
    fn a_corpus_of_which_nothing_is_left_is_an_error_with_the_reason() {
        let dir = folder(&[("a.de", "a b c\n"), ("a.en", "a b c\n")]);
        let recipe = recipe(&dir, &["data.max_length=2"]);
        let text = CorpusText::read(&recipe).unwrap();
        let tokenizers = text.train_tokenizers(&recipe).unwrap();
        let message = text.encode(&recipe, &tokenizers).unwrap_err().to_string();
        assert!(
            message.contains("none of the 1 training pairs can be used"),
            "{message}"
        );
        assert!(message.contains("1 have more than 2 tokens"), "{message}");
    }

    #[test]
    fn unknown_words_are_counted() {
        let dir = folder(&[("a.de", "x y\nx z\n"), ("a.en", "x\nx\n")]);
        let (_, corpus) = load(&recipe(&dir, &["tokenizer.min_frequency=2"]));
        assert_eq!(
            (
                corpus.train_report.src_unknown,
                corpus.train_report.tgt_unknown
            ),
            (2, 0)
        );
        let shown = corpus.train_report.to_string();
        assert!(shown.contains("<unk> is 33.3% of the source"), "{shown}");
    }

    #[test]
    fn validation_keeps_every_line_for_bleu() {
        let dir = folder(&[
            ("a.de", "a b\n"),
            ("a.en", "a b\n"),
            ("v.de", "a\na b a b\n\n"),
            ("v.en", "a\na b a b\nb\n"),
        ]);
        let overrides = [
            "data.val_src=v.de",
            "data.val_tgt=v.en",
            "data.max_length=2",
        ];
        let (_, corpus) = load(&recipe(&dir, &overrides));
        assert_eq!(
            (corpus.val.len(), corpus.val_src.len(), corpus.val_tgt.len()),
            (1, 3, 3)
        );
        assert_eq!(
            (corpus.val_report.empty, corpus.val_report.too_long),
            (1, 1)
        );
    }

    #[test]
    fn the_vocabulary_is_also_counted_over_the_extra_files() {
        let dir = folder(&[
            ("a.de", "x\n"),
            ("a.en", "x\n"),
            ("more.de", "y\n"),
            ("more.en", "z\n"),
        ]);
        let (alone, _) = load(&recipe(&dir, &[]));
        let overrides = ["data.vocab_src=more.de", "data.vocab_tgt=more.en"];
        let (more, corpus) = load(&recipe(&dir, &overrides));
        assert_eq!((alone.src.id("y"), alone.tgt.id("z")), (None, None));
        assert!(more.src.id("y").is_some() && more.tgt.id("z").is_some());
        assert_eq!((more.src.id("z"), more.tgt.id("y")), (None, None));
        assert_eq!(corpus.train.len(), 1);
    }

    #[test]
    fn a_shared_vocabulary_knows_both_sides() {
        let dir = folder(&[("a.de", "Hund\n"), ("a.en", "dog\n")]);
        let (tokenizers, _) = load(&recipe(&dir, &["tokenizer.shared=true"]));
        assert!(tokenizers.is_shared());
        assert!(tokenizers.src.id("dog").is_some() && tokenizers.tgt.id("Hund").is_some());
    }

    #[test]
    fn all_missing_files_are_named_at_once() {
        let dir = folder(&[("a.de", "x\n")]);
        let overrides = ["data.val_src=v.de", "data.val_tgt=v.en"];
        let message = CorpusText::read(&recipe(&dir, &overrides))
            .unwrap_err()
            .to_string();
        for file in ["a.en", "v.de", "v.en"] {
            assert!(message.contains(file), "{message}");
        }
        assert!(
            !message.contains("a.de\n") && message.contains("data.dir"),
            "{message}"
        );
    }

    #[test]
    fn unequal_files_are_named_even_if_the_totals_agree() {
        let files = [
            ("a.de", "1\n2\n"),
            ("b.de", "3\n"),
            ("a.en", "1\n"),
            ("b.en", "2\n3\n"),
        ];
        let dir = folder(&files);
        let overrides = [
            "data.src=[\"a.de\", \"b.de\"]",
            "data.tgt=[\"a.en\", \"b.en\"]",
        ];
        let message = CorpusText::read(&recipe(&dir, &overrides))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("a.de") && message.contains("a.en"),
            "{message}"
        );
    }

    #[test]
    fn a_changed_corpus_is_told_by_file_and_side_and_a_moved_one_is_not() {
        let dir = folder(&[("a.de", "ein Hund\n"), ("a.en", "a dog\n")]);
        let before = CorpusText::read(&recipe(&dir, &[])).unwrap().fingerprint;
        let moved = folder(&[("a.de", "ein Hund\n"), ("a.en", "a dog\n")]);
        let same = CorpusText::read(&recipe(&moved, &[])).unwrap().fingerprint;
        assert_eq!(before.differences(&same), Vec::<String>::new());
        std::fs::write(moved.path().join("a.en"), "a cat\n").unwrap();
        let changed = CorpusText::read(&recipe(&moved, &[])).unwrap().fingerprint;
        let found = before.differences(&changed);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("training target file a.en"), "{found:?}");
    }

    /// Words of many cuts, and enough of them for a vocabulary.
    fn subword_recipe(dir: &tempfile::TempDir, overrides: &[&str]) -> Recipe {
        let mut all = vec![
            "tokenizer.kind=unigram",
            "tokenizer.vocab_size=300",
            "training.seed=7",
        ];
        all.extend(overrides);
        recipe(dir, &all)
    }

    #[test]
    fn every_epoch_sees_the_lines_in_other_forms_and_always_the_same_ones() {
        let lines = "Der Hund bellt.\nDer Hund schläft.\nDer Hund rennt.\n".repeat(20);
        let dir = folder(&[("a.de", &lines), ("a.en", &lines)]);
        let recipe = subword_recipe(&dir, &["augmentation.subword_dropout=0.3"]);
        let (tokenizers, corpus) = load(&recipe);
        let epoch = |number| corpus.of_epoch(&recipe, &tokenizers, number);
        assert_eq!(epoch(0), epoch(0));
        assert_ne!(epoch(0), epoch(1));
        assert_ne!(epoch(0), corpus.train);
        for (form, plain) in epoch(3).iter().zip(corpus.train.iter()) {
            assert_eq!(
                tokenizers.src.decode(&form.src),
                tokenizers.src.decode(&plain.src)
            );
            assert!(form.src.len() >= plain.src.len());
        }
        let other = subword_recipe(
            &dir,
            &["augmentation.subword_dropout=0.3", "training.seed=8"],
        );
        assert_ne!(epoch(0), corpus.of_epoch(&other, &tokenizers, 0));
    }

    #[test]
    fn the_forms_of_an_epoch_are_those_that_the_recipe_asks_for() {
        let dir = folder(&[
            ("a.de", "Tom läuft.\nTom rennt.\n"),
            ("a.en", "Tom runs.\nTom runs.\n"),
        ]);
        let recipe = subword_recipe(&dir, &["augmentation.lowercase=0.999999"]);
        let (tokenizers, corpus) = load(&recipe);
        let first = &corpus.of_epoch(&recipe, &tokenizers, 0)[0];
        assert_eq!(tokenizers.src.decode(&first.src), "tom läuft.");
        assert_eq!(tokenizers.tgt.decode(&first.tgt), "Tom runs.");
    }

    #[test]
    fn without_augmentation_every_epoch_is_the_corpus() {
        let dir = folder(&[("a.de", "Tom läuft.\n"), ("a.en", "Tom runs.\n")]);
        let recipe = subword_recipe(&dir, &[]);
        let (tokenizers, corpus) = load(&recipe);
        assert!(Arc::ptr_eq(
            &corpus.of_epoch(&recipe, &tokenizers, 4),
            &corpus.train
        ));
    }

    #[test]
    fn an_epoch_visits_files_by_their_weights_and_never_what_is_held_out() {
        let numbers = |word: &str| -> String {
            let lines = (0..400).map(|i| format!("{word} {i}\n"));
            lines.collect()
        };
        let dir = folder(&[
            ("a.de", &numbers("eins")),
            ("a.en", &numbers("one")),
            ("b.de", &numbers("zwei")),
            ("b.en", &numbers("two")),
            ("test.en", "Two 17!\nONE 5\n"),
        ]);
        let overrides = [
            "data.src=[\"a.de\", \"b.de\"]",
            "data.tgt=[\"a.en\", \"b.en\"]",
            "data.weights=[0.25, 2.0]",
            "data.held_out=test.en",
        ];
        let recipe = recipe(&dir, &overrides);
        let (tokenizers, corpus) = load(&recipe);
        assert_eq!(corpus.train.len(), 798);
        let report = corpus.train_report.to_string();
        assert!(report.contains("798 of 800 pairs"), "{report}");
        assert!(report.contains("2 left out as held out"), "{report}");
        let epoch = |number| -> Vec<String> {
            let pairs = corpus.of_epoch(&recipe, &tokenizers, number);
            let texts = pairs.iter().map(|pair| tokenizers.tgt.decode(&pair.tgt));
            texts.collect()
        };
        let first = epoch(0);
        let ones = first.iter().filter(|text| text.starts_with("one")).count();
        assert!((60..140).contains(&ones), "{ones}");
        assert_eq!(first.len() - ones, 2 * 399);
        assert_eq!(first, epoch(0));
        assert_ne!(first, epoch(1));
        assert!(!first.iter().any(|text| text == "two 17" || text == "one 5"));
    }

    #[test]
    fn a_synthetic_task_needs_no_files() {
        let text = "[data]\nsynthetic = { task = \"copy\", lines = 30, val_lines = 7 }\n[tokenizer]\n\
                    kind = \"word\"\nvocab_size = 0\nmin_frequency = 1\n";
        let (tokenizers, corpus) = load(&Recipe::from_toml_str("test", text, &[]).unwrap());
        assert_eq!(
            (corpus.train.len(), corpus.val.len(), corpus.val_src.len()),
            (30, 7, 7)
        );
        assert!(
            corpus
                .train
                .iter()
                .all(|pair| pair.src[..] == pair.tgt[1..])
        );
        assert!(tokenizers.src.vocab_size() <= 30);
    }
}
