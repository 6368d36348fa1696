//! The cache of packed f32 weights: never seen in a translation, and never an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use attentive_model::directory::ModelDir;
use attentive_model::fake_dir;
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::{Request, SearchModel};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fake_dir::write(folder.path().join("model")).expect("a writable directory");
        Self { folder }
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache/attentive")
    }

    /// Log-probabilities of the model, loaded with this folder for its cache.
    fn says(&self, cache: Option<&Path>) -> Vec<u32> {
        let mut dir = ModelDir::open(self.model()).expect("a model directory");
        dir.cache = cache.map(Path::to_path_buf);
        let model = CpuModel::open(&dir, Compute::F32).expect("a sound model");
        let requests = [vec![5, 9, 4, 1], vec![7, 1]].map(Request::new);
        let mut state = model.start(&[&requests[0], &requests[1]]);
        let (mut all, mut row) = (Vec::new(), Vec::new());
        for tokens in [[0, 0], [6, 8], [20, 11]] {
            model.step(&mut state, &tokens, &mut row);
            all.extend(row.iter().map(|value| value.to_bits()));
        }
        all
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).into_iter().flatten();
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    /// The one file of the cache.
    fn file(&self) -> PathBuf {
        let [file] = &self.files()[..] else {
            panic!("not one file: {:?}", self.files());
        };
        file.clone()
    }
}

/// Changes a weight in the middle of the cache file: who maps it says something else.
fn mark(file: &Path) {
    let mut bytes = fs::read(file).expect("a file of the cache");
    let middle = bytes.len() / 2 / 4 * 4;
    bytes[middle..middle + 64].copy_from_slice(&7.5f32.to_le_bytes().repeat(16));
    fs::write(file, bytes).expect("a writable file");
}

#[test]
fn packed_weights_are_written_once_then_mapped_and_change_no_bit() {
    let place = Place::new();
    let plain = place.says(None);
    assert_eq!(
        place.files(),
        Vec::<PathBuf>::new(),
        "only if it is asked for"
    );
    let cache = place.cache();
    assert_eq!(place.says(Some(&cache)), plain);
    let file = place.file();
    let written = fs::metadata(&file).and_then(|data| data.modified()).ok();
    assert_eq!(place.says(Some(&cache)), plain);
    assert_eq!(
        fs::metadata(&file).and_then(|data| data.modified()).ok(),
        written
    );
    mark(&file);
    assert_ne!(place.says(Some(&cache)), plain, "it was not read");
}

#[test]
fn a_model_that_has_changed_is_packed_anew() {
    let place = Place::new();
    let cache = place.cache();
    let before = place.says(Some(&cache));
    mark(&place.file());
    // Another file of the same size and contents.
    fake_dir::write(place.model()).expect("a writable directory");
    assert_eq!(place.says(Some(&cache)), before);
    assert_eq!(place.says(Some(&cache)), before, "from the new file");
    place.file();
}

#[test]
fn a_damaged_a_cut_and_a_foreign_file_are_replaced() {
    let place = Place::new();
    let cache = place.cache();
    let plain = place.says(Some(&cache));
    let file = place.file();
    let whole = fs::read(&file).expect("a file of the cache");
    let other = Place::new();
    other.says(Some(&other.cache()));
    let foreign = fs::read(other.file()).expect("a file of the cache");
    let mut damaged = whole.clone();
    damaged[20] ^= 0x55;
    let cut = &whole[..whole.len() - 1];
    for bytes in [&b""[..], b"no tensors", cut, &damaged, &foreign] {
        fs::write(&file, bytes).expect("a writable file");
        assert_eq!(place.says(Some(&cache)), plain);
        assert_eq!(
            fs::metadata(&file).expect("a file").len(),
            whole.len() as u64
        );
        assert!(fs::read(place.file()).expect("a file of the cache") == whole);
    }
}

#[test]
fn without_a_folder_to_write_to_the_model_loads_all_the_same() {
    let place = Place::new();
    let plain = place.says(None);
    // A file where the folder should be: not even root can write there.
    let file = place.folder.path().join("file");
    fs::write(&file, b"").expect("a writable directory");
    assert_eq!(place.says(Some(&file)), plain);
    assert_eq!(place.says(Some(&file.join("below"))), plain);
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    let (plain, cache) = (place.says(None), place.cache());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(place.says(Some(&cache)), plain));
        }
    });
    place.file();
    assert_eq!(place.says(Some(&cache)), plain);
}

#[test]
fn only_the_newest_few_models_are_kept() {
    let place = Place::new();
    let cache = place.cache();
    for number in 0..12 {
        let name = place.folder.path().join(format!("model-{number}"));
        fake_dir::write(&name).expect("a writable directory");
        let mut dir = ModelDir::open(name).expect("a model directory");
        dir.cache = Some(cache.clone());
        CpuModel::open(&dir, Compute::F32).expect("a sound model");
    }
    assert_eq!(place.files().len(), 8);
}
