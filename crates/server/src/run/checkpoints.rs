//! The checkpoints of a run: which there are, which `best` and `last` point to, and what each looked at in a fixed
//! sentence.
//!
//! Training removes old checkpoints, so what they looked at is kept here. The sentence is one of the validation samples,
//! with its reference as the target: then all maps have the same rows and columns.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use attentive_model::ModelDir;
use attentive_pictures::from_model::Target;
use attentive_pictures::record::Record;
use attentive_runtime::cpu::{Compute, CpuModel};
use serde_json::{Value, json};

use super::log::Sample;

/// The checkpoints that there are and were.
#[derive(Debug)]
pub(super) struct Checkpoints {
    folder: PathBuf,
    best: Option<PathBuf>,
    last: Option<PathBuf>,
    /// By step and batch.
    known: BTreeMap<(u64, u64), Known>,
}

#[derive(Debug)]
struct Known {
    name: String,
    written: Option<SystemTime>,
    attention: Attention,
}

#[derive(Debug)]
enum Attention {
    /// Not looked at yet.
    Unknown,
    /// This is it.
    Seen(Arc<Record>),
    /// It cannot be looked at: it has vanished, or the sentence does not suit it.
    None,
}

/// A checkpoint that is to be looked at.
pub(super) struct Job {
    position: (u64, u64),
    folder: PathBuf,
    samples: Vec<Sample>,
    record: Option<Record>,
}

/// More maps than a slider has places are not kept; of older ones every second goes.
const MOST_MAPS: usize = 200;

impl Checkpoints {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            best: None,
            last: None,
            known: BTreeMap::new(),
        }
    }

    /// Reads which checkpoints there are. True if `best` or `last` points elsewhere than before.
    pub fn look(&mut self) -> bool {
        let entries = fs::read_dir(self.folder.join("checkpoints"));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Its name is its last change: until then it is hidden, and the manifest is written last.
            let manifest = fs::metadata(entry.path().join("manifest.json"));
            let (Some(position), Ok(manifest)) = (position(&name), manifest) else {
                continue;
            };
            let written = manifest.modified().ok();
            // A run that was continued from an older checkpoint comes past the same steps again.
            let known = self.known.get(&position);
            if known.is_none_or(|known| known.written != written) {
                let new = Known {
                    name,
                    written,
                    attention: Attention::Unknown,
                };
                self.known.insert(position, new);
            }
        }
        let target = |link: &str| fs::read_link(self.folder.join(link)).ok();
        let (best, last) = (target("best"), target("last"));
        let moved = (&best, &last) != (&self.best, &self.last);
        (self.best, self.last) = (best, last);
        moved
    }

    /// The links count as moved the next time.
    pub fn forget_links(&mut self) {
        (self.best, self.last) = (None, None);
    }

    /// What is still to be looked at, the newest first.
    pub fn wanted(&self, samples: &[Sample]) -> Vec<Job> {
        if samples.is_empty() {
            return Vec::new();
        }
        let unknown = |(position, known): (&(u64, u64), &Known)| {
            matches!(known.attention, Attention::Unknown).then(|| Job {
                position: *position,
                folder: self.folder.join("checkpoints").join(&known.name),
                samples: samples.to_vec(),
                record: None,
            })
        };
        self.known.iter().rev().filter_map(unknown).collect()
    }

    /// Keeps what a job has found.
    pub fn keep(&mut self, done: Job) {
        if let Some(known) = self.known.get_mut(&done.position) {
            let record = done.record.map(Arc::new);
            known.attention = record.map_or(Attention::None, Attention::Seen);
        }
        let seen = |known: &Known| matches!(known.attention, Attention::Seen(_));
        if self.known.values().filter(|known| seen(known)).count() > MOST_MAPS {
            let older = self.known.values_mut().filter(|known| seen(known));
            for known in older.take(MOST_MAPS / 2).step_by(2) {
                known.attention = Attention::None;
            }
        }
    }

    /// What a checkpoint looked at.
    pub fn record(&self, name: &str) -> Option<Arc<Record>> {
        match &self.known.get(&position(name)?)?.attention {
            Attention::Seen(record) => Some(Arc::clone(record)),
            Attention::Unknown | Attention::None => None,
        }
    }

    /// All of them, the oldest first.
    pub fn list(&self) -> Value {
        let points_to = |link: &Option<PathBuf>, name: &str| {
            let target = link.as_deref().and_then(Path::file_name);
            target.is_some_and(|target| target == name)
        };
        let one = |((step, _), known): (&(u64, u64), &Known)| {
            json!({
                "name": known.name,
                "step": step,
                "best": points_to(&self.best, &known.name),
                "last": points_to(&self.last, &known.name),
                "attention": matches!(known.attention, Attention::Seen(_)),
            })
        };
        self.known.iter().map(one).collect()
    }
}

impl Job {
    /// Looks at the first sample that suits the model.
    pub fn run(mut self) -> Self {
        self.record = self.look();
        self
    }

    fn look(&self) -> Option<Record> {
        let directory = ModelDir::open(&self.folder).ok()?;
        let model = CpuModel::open(&directory, Compute::Auto).ok()?;
        let look = |sample: &Sample| {
            let target = Target::Given(&sample.reference);
            Record::of(&model, &directory.tokenizers, &sample.source, target).ok()
        };
        self.samples.iter().find_map(look)
    }
}

/// `step-000123` is (123, 0), `step-000123-4` is (123, 4); nothing else is a checkpoint.
fn position(name: &str) -> Option<(u64, u64)> {
    let numbers = name.strip_prefix("step-")?;
    let (step, batch) = numbers.split_once('-').unwrap_or((numbers, "0"));
    Some((step.parse().ok()?, batch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use attentive_model::fake_dir;

    use super::*;

    fn sample() -> Vec<Sample> {
        vec![Sample {
            source: "a b c".into(),
            reference: "c b a".into(),
        }]
    }

    #[test]
    fn checkpoints_are_seen_when_they_are_complete_and_what_they_saw_outlives_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join("checkpoints").join(name);
        let mut checkpoints = Checkpoints::new(folder.path());
        assert!(!checkpoints.look());
        // Half-written ones: hidden, or without a manifest.
        fake_dir::write(path(".step-000010.tmp")).unwrap();
        fake_dir::write(path("step-000010")).unwrap();
        checkpoints.look();
        assert_eq!(checkpoints.list(), json!([]));
        fs::write(path("step-000010").join("manifest.json"), "{}").unwrap();
        checkpoints.look();
        assert!(checkpoints.wanted(&[]).is_empty());
        for job in checkpoints.wanted(&sample()) {
            checkpoints.keep(job.run());
        }
        let record = checkpoints.record("step-000010").expect("it was looked at");
        assert_eq!(record.target_text, "c b a");
        // The same step once more, by a run that went back.
        let manifest = fs::File::options()
            .write(true)
            .open(path("step-000010").join("manifest.json"));
        let earlier = SystemTime::UNIX_EPOCH;
        manifest.unwrap().set_modified(earlier).unwrap();
        checkpoints.look();
        assert!(checkpoints.record("step-000010").is_none());
        for job in checkpoints.wanted(&sample()) {
            checkpoints.keep(job.run());
        }
        fs::remove_dir_all(path("step-000010")).unwrap();
        assert!(!checkpoints.look());
        assert!(checkpoints.record("step-000010").is_some());
        assert!(checkpoints.wanted(&sample()).is_empty());
        // One that is damaged is no harm.
        fs::create_dir_all(path("step-000020-3")).unwrap();
        fs::write(path("step-000020-3").join("manifest.json"), "{}").unwrap();
        checkpoints.look();
        for job in checkpoints.wanted(&sample()) {
            checkpoints.keep(job.run());
        }
        let list = checkpoints.list();
        assert_eq!(list[1]["step"], 20);
        assert_eq!(
            (&list[0]["attention"], &list[1]["attention"]),
            (&json!(true), &json!(false))
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_that_move_are_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::new(folder.path());
        let link = |name: &str, target: &str| {
            let link = folder.path().join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(Path::new("checkpoints").join(target), link).unwrap();
        };
        link("last", "step-000010");
        assert!(checkpoints.look());
        assert!(!checkpoints.look());
        link("best", "step-000010");
        assert!(checkpoints.look());
        link("last", "step-000020");
        assert!(checkpoints.look());
        assert!(!checkpoints.look());
        checkpoints.forget_links();
        assert!(checkpoints.look());
    }
}
