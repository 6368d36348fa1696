//! Weights in several files, and models of several target languages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, Imported, import};
use attentive_model::ModelDir;
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Repetition, Translator, TranslatorOptions};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/huggingface")
        .join(name)
}

/// A copy of a fixture.
fn copied(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(fixture(name)).expect("a fixture") {
        let path = entry.expect("a file").path();
        let to = folder.path().join(path.file_name().expect("a name"));
        fs::copy(&path, to).expect("copied");
    }
    folder
}

fn write_json(path: PathBuf, value: &Value) {
    fs::write(path, value.to_string()).expect("written");
}

fn imported(source: &Path, to: Option<&str>) -> Result<(tempfile::TempDir, Imported), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ImportOptions {
        target_language: to.map(str::to_owned),
        ..ImportOptions::default()
    };
    match import(source, &folder.path().join("model"), &options) {
        Ok(imported) => Ok((folder, imported)),
        Err(error) => {
            let left = fs::read_dir(folder.path()).expect("a folder").count();
            assert_eq!(left, 0, "nothing is left behind");
            Err(error.to_string())
        }
    }
}

fn weights(folder: &tempfile::TempDir) -> Vec<u8> {
    fs::read(folder.path().join("model/model.safetensors")).expect("weights")
}

/// Replaces `model.safetensors` by two files with every second tensor each, and an index.
fn split(folder: &Path) {
    let bytes = fs::read(folder.join("model.safetensors")).expect("weights");
    fs::remove_file(folder.join("model.safetensors")).expect("removed");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight")) as usize;
    let header: BTreeMap<String, Value> =
        serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let data = &bytes[8 + length..];
    let tensors = header.iter().filter(|(name, _)| *name != "__metadata__");
    let mut parts = [(BTreeMap::new(), Vec::new()), (BTreeMap::new(), Vec::new())];
    let mut map = BTreeMap::new();
    for (number, (name, info)) in tensors.enumerate() {
        let place = |i: usize| info["data_offsets"][i].as_u64().expect("a place") as usize;
        let (entries, own): &mut (BTreeMap<_, _>, Vec<u8>) = &mut parts[number % 2];
        let begin = own.len();
        own.extend_from_slice(&data[place(0)..place(1)]);
        let entry = json!({
            "dtype": info["dtype"], "shape": info["shape"], "data_offsets": [begin, own.len()],
        });
        entries.insert(name.clone(), entry);
        map.insert(
            name.clone(),
            format!("model-0000{}-of-00002.safetensors", number % 2 + 1),
        );
    }
    for (number, (entries, own)) in parts.into_iter().enumerate() {
        let header = serde_json::to_vec(&entries).expect("JSON");
        let bytes = [&(header.len() as u64).to_le_bytes()[..], &header, &own].concat();
        let name = format!("model-0000{}-of-00002.safetensors", number + 1);
        fs::write(folder.join(name), bytes).expect("written");
    }
    let index = json!({"metadata": {"total_size": data.len()}, "weight_map": map});
    write_json(folder.join("model.safetensors.index.json"), &index);
}

#[test]
fn weights_in_several_files_are_those_of_one() {
    let (whole, _) = imported(&fixture("marian"), None).expect("one file");
    let folder = copied("marian");
    split(folder.path());
    let (split, _) = imported(folder.path(), None).expect("two files");
    assert!(weights(&whole) == weights(&split), "the same weights");

    // PyTorch's own files have an index, too.
    let (whole, _) = imported(&fixture("marian-half"), None).expect("one file");
    let folder = copied("marian-half");
    let name = "pytorch_model-00001-of-00001.bin";
    let path = |name: &str| folder.path().join(name);
    fs::rename(path("pytorch_model.bin"), path(name)).expect("renamed");
    let map: BTreeMap<&str, &str> = [("final_logits_bias", name)].into();
    let index = |map: &BTreeMap<&str, &str>| {
        write_json(
            path("pytorch_model.bin.index.json"),
            &json!({"weight_map": map}),
        );
    };
    index(&map);
    let message = imported(folder.path(), None).expect_err("only one tensor is listed");
    assert!(message.contains("shared.weight"), "{message}");
    let names = attentive_convert::files::torch::read(&path(name)).expect("tensors");
    index(&names.names().map(|tensor| (tensor, name)).collect());
    let (listed, _) = imported(folder.path(), None).expect("all are listed");
    assert!(weights(&whole) == weights(&listed), "the same weights");
}

#[test]
fn an_index_that_leads_elsewhere_or_to_nothing_is_refused() {
    let folder = copied("marian");
    split(folder.path());
    let path = folder.path().join("model.safetensors.index.json");
    let good: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    for (file, expected) in [
        (json!("../model-00001-of-00002.safetensors"), "beside it"),
        (json!("/etc/passwd"), "beside it"),
        (json!("model.safetensors.index.json"), "beside it"),
        (json!(7), "beside it"),
        (json!("model-00003-of-00003.safetensors"), "cannot open"),
        (
            json!("model-00002-of-00002.safetensors"),
            "no tensor `final_logits_bias`",
        ),
    ] {
        let mut index = good.clone();
        index["weight_map"]["final_logits_bias"] = file;
        write_json(path.clone(), &index);
        let message = imported(folder.path(), None).expect_err("a wrong index");
        assert!(message.contains(expected), "{message}");
    }
    write_json(path, &json!({"weights": {}}));
    let message = imported(folder.path(), None).expect_err("no list");
    assert!(message.contains("no `weight_map`"), "{message}");
}

#[test]
fn of_several_targets_one_is_chosen_when_importing_or_all_are_noted() {
    let folder = copied("marian");
    let path = folder.path().join("vocab.json");
    let mut vocabulary: BTreeMap<String, u32> =
        serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    // The fixture has `>>pt<<` for itself; here two pieces become languages.
    let taken: Vec<String> = vocabulary
        .keys()
        .filter(|token| token.len() == 1)
        .take(2)
        .cloned()
        .collect();
    for (old, new) in taken.iter().zip([">>fra<<", ">>cmn_Hans<<"]) {
        let id = vocabulary.remove(old).expect("a token");
        vocabulary.insert(new.to_owned(), id);
    }
    write_json(path, &json!(vocabulary));

    let (all, said) = imported(folder.path(), None).expect("all of them");
    assert_eq!(said.targets, ["cmn_Hans", "fra", "pt"]);
    assert_eq!(said.languages, None);
    let (french, said) = imported(folder.path(), Some("fr")).expect("one of them");
    assert!(said.targets.is_empty());
    assert_eq!(said.languages, Some(("en".to_owned(), "fra".to_owned())));
    let message = imported(folder.path(), Some("de")).expect_err("not German");
    assert!(
        message.contains("\"de\"") && message.contains("cmn_Hans, fra, pt"),
        "{message}"
    );

    let say = |folder: &tempfile::TempDir, line: &str| {
        let directory = ModelDir::open(folder.path().join("model")).expect("a model");
        let mut options = TranslatorOptions::of(&directory).expect("sound");
        options.repetition = Repetition::Allow;
        options.tokens = true;
        let translator = Translator::of_model(directory, Compute::F32, options).expect("sound");
        translator.translate(&[line])[0].clone().log_prob
    };
    let line = "the dog runs under a tree";
    let chosen = say(&french, line);
    assert_eq!(chosen, say(&all, &format!(">>fra<< {line}")));
    assert_ne!(chosen, say(&all, &format!(">>pt<< {line}")));
    assert_ne!(chosen, say(&all, line));
}
