//! Reads files that other programs wrote: small ones of every format, and real models where they are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::files::{
    Tensors, ctranslate2, marian_bin, npz, safetensors, shortlist_bin, torch,
};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn expected(name: &str) -> Value {
    let text = fs::read_to_string(fixture("expected.json")).expect("the file is there");
    let mut all: Value = serde_json::from_str(&text).expect("valid JSON");
    all[name].take()
}

/// Names, number formats, shapes and every value.
fn compare(name: &str, tensors: &Tensors) {
    let expected = expected(name);
    let expected = expected["tensors"].as_object().expect("tensors");
    let mut names: Vec<&str> = expected.keys().map(String::as_str).collect();
    names.sort();
    assert_eq!(tensors.names().collect::<Vec<_>>(), names, "{name}");
    assert_eq!(tensors.path(), fixture(name));
    for (tensor_name, tensor) in tensors.iter() {
        let found = json!({
            "dtype": format!("{:?}", tensor.dtype),
            "shape": tensor.shape,
            "values": tensor.to_f32(),
        });
        let values = expected[tensor_name]["values"].as_array().expect("values");
        assert_eq!(tensor.len(), values.len(), "{name}: {tensor_name}");
        assert_eq!(found, expected[tensor_name], "{name}: {tensor_name}");
    }
}

#[test]
fn safetensors_are_read() {
    let name = "every_type.safetensors";
    compare(name, &safetensors::read(&fixture(name)).expect("valid"));
}

#[test]
fn both_kinds_of_pytorch_files_are_read_in_c_order() {
    for name in ["torch_zip.bin", "torch_stream.bin", "torch_protocol5.bin"] {
        compare(name, &torch::read(&fixture(name)).expect("valid"));
    }
}

#[test]
fn tensors_that_share_a_storage_share_its_memory() {
    for name in ["torch_zip.bin", "torch_stream.bin"] {
        let tensors = torch::read(&fixture(name)).expect("valid");
        let place = |name: &str| tensors.get(name).expect("it is there").bytes().as_ptr();
        assert_eq!(place("shared"), place("shared_again"), "{name}");
        assert_eq!(place("shared"), place("matrix"), "{name}");
        assert_eq!(place("part"), place("shared").wrapping_add(20), "{name}");
        assert_ne!(place("shared"), place("transposed"), "{name}");
    }
}

#[test]
fn checkpoints_of_fairseq_give_tensors_and_settings() {
    for name in ["fairseq_zip.pt", "fairseq_stream.pt"] {
        let (tensors, values) = torch::read_with_values(&fixture(name)).expect("valid");
        compare(name, &tensors);
        assert_eq!(values, expected(name)["values"], "{name}");
    }
}

/// The first versions of PyTorch could save a part of a storage as a storage.
#[test]
fn parts_of_storages_in_old_pytorch_files_are_read() {
    let mut file = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec();
    file.extend(b"\x80\x02M\xe9\x03.\x80\x02}.");
    // {"w": _rebuild_tensor(("storage", FloatStorage, "0", "cpu", 4, ("view", 1, 3)), 1, (2,), (1,))}
    file.extend(
        b"\x80\x02}U\x01wctorch._utils\n_rebuild_tensor\n((U\x07storagectorch\nFloatStorage\n",
    );
    file.extend(b"U\x010U\x03cpuK\x04U\x04viewK\x01K\x03\x87tQK\x01K\x02\x85K\x01\x85tRs.");
    file.extend(b"\x80\x02]U\x010a.");
    file.extend(4u64.to_le_bytes());
    file.extend(
        [10f32, 11.0, 12.0, 13.0]
            .iter()
            .flat_map(|value| value.to_le_bytes()),
    );
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("old.pt");
    fs::write(&path, file).expect("a temporary file");
    let tensors = torch::read(&path).expect("valid");
    assert_eq!(
        tensors.require("w", &[2]).expect("it fits").to_f32(),
        [12.0, 13.0]
    );
}

#[test]
fn stored_and_deflated_arrays_of_numpy_are_read() {
    for name in ["stored.npz", "deflated.npz", "zip64.npz"] {
        compare(name, &npz::read(&fixture(name)).expect("valid"));
    }
}

#[test]
fn marian_files_are_read_with_the_multipliers_of_int8() {
    for name in [
        "marian.bin",
        "bergamot.bin",
        "intgemm.bin",
        "bergamot.bin.gz",
    ] {
        let file = marian_bin::read(&fixture(name)).expect("valid");
        compare(name, &file.tensors);
        let mut multipliers = expected(name)["intgemm"].take();
        if multipliers.is_null() {
            multipliers = json!({});
        }
        assert_eq!(json!(file.intgemm), multipliers, "{name}");
    }
}

#[test]
fn every_version_of_ctranslate2_is_read() {
    for version in 1..=6 {
        let name = format!("ct2_v{version}.bin");
        let file = ctranslate2::read(&fixture(&name)).expect("valid");
        compare(&name, &file.tensors);
        let expected = expected(&name);
        assert_eq!(file.version, version);
        assert_eq!(file.spec, expected["spec"]);
        assert_eq!(file.revision, expected["revision"]);
        assert_eq!(json!(file.aliases), expected["aliases"]);
        for (alias, name) in &file.aliases {
            let place = |name| file.get(name).expect("it is there").bytes().as_ptr();
            assert_eq!(place(alias), place(name));
        }
    }
}

#[test]
fn shortlists_are_read() {
    for name in ["lex.s2t.bin", "lex.s2t.bin.gz"] {
        let list = shortlist_bin::read(&fixture(name)).expect("valid");
        let found = json!({
            "first": list.first, "best": list.best, "offsets": list.offsets, "ids": list.ids,
        });
        assert_eq!(found, expected(name), "{name}");
    }
}

#[test]
fn a_file_that_is_missing_or_a_folder_is_named() {
    let missing = safetensors::read(Path::new("no/such.safetensors")).expect_err("it is not there");
    assert!(
        missing
            .to_string()
            .starts_with("cannot open no/such.safetensors")
    );
    let folder = npz::read(&fixture("")).expect_err("a folder");
    let message = folder.to_string();
    assert!(
        message.contains("fixtures") && message.contains("it is not a file"),
        "{message}"
    );
}

/// The folder in an environment variable, or a line that says that a test needs it.
fn folder(variable: &str) -> Option<PathBuf> {
    let folder = env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: set {variable} to a folder of models");
    }
    folder
}

#[test]
fn a_model_that_marian_wrote_is_read() {
    let Some(models) = folder("ATTENTIVE_MODELS") else {
        return;
    };
    let path = models.join("marian-multi30k-de-en/model.npz");
    let tensors = npz::read(&path).expect("valid");
    assert_eq!(tensors.len(), 129);
    let embeddings = tensors.require("Wemb", &[8000, 256]).expect("it fits");
    let first = embeddings.to_f32()[0];
    assert_eq!(first.to_bits(), 0x3d36_a4ec);
    let yml = tensors.get("special:model.yml").expect("it is there");
    assert!(yml.bytes().starts_with(b"bert-train-type-embeddings"));
}

#[test]
fn a_model_of_firefox_and_its_shortlist_are_read() {
    let Some(models) = folder("ATTENTIVE_MODELS") else {
        return;
    };
    let folder = models.join("bergamot-enpt-tiny");
    let file = marian_bin::read(&folder.join("model.enpt.intgemm.alphas.bin")).expect("valid");
    assert_eq!(file.tensors.len(), 195);
    let tensors = &file.tensors;
    tensors.require("Wemb", &[32000, 256]).expect("as shaped");
    let wide = tensors.require("encoder_l1_ffn_W1", &[1536, 256]);
    let wide = wide.expect("transposed").to_f32();
    // A multiplier is 127 divided by the largest value, so that the largest is 127.
    assert!(wide.iter().any(|value| value.abs() == 127.0));
    // The same number is in the file twice, as f32 and as int8.
    let activation = tensors
        .get("none_QuantMultA")
        .expect("it is there")
        .to_f32()[0];
    let quantized = tensors
        .get("Wemb_QuantMultA")
        .expect("it is there")
        .to_f32()[0];
    assert_eq!(activation, quantized / file.intgemm["Wemb_QuantMultA"]);

    let list = shortlist_bin::read(&folder.join("lex.50.50.enpt.s2t.bin")).expect("valid");
    assert_eq!((list.first, list.best, list.offsets.len()), (50, 50, 32001));
    let lists = list.offsets.windows(2);
    let mut lists = lists.map(|ends| &list.ids[ends[0] as usize..ends[1] as usize]);
    assert!(lists.all(|ids| ids.len() <= 50 && ids.is_sorted() && ids.last() < Some(&32000)));
}

#[test]
fn models_of_hugging_face_and_fairseq_are_read() {
    let Some(models) = folder("ATTENTIVE_MODELS") else {
        return;
    };
    let bart = safetensors::read(&models.join("bart-g2p-us/model.safetensors")).expect("valid");
    assert_eq!(
        bart.get("model.shared.weight")
            .map(|tensor| tensor.shape[1]),
        Some(128)
    );
    let path = models.join("fairseq-latin2nqo/model.safetensors");
    assert!(!safetensors::read(&path).expect("valid").is_empty());
}

#[test]
fn a_model_of_ctranslate2_version_2_is_read() {
    let Some(data) = folder("ATTENTIVE_DATA") else {
        return;
    };
    let file = ctranslate2::read(&data.join("ct2-aren/model.bin")).expect("valid");
    assert_eq!(
        (file.version, file.spec.as_str(), file.revision),
        (2, "TransformerBase", 2)
    );
    assert_eq!(file.tensors.len(), 200);
    let embeddings = file.tensors.require("decoder/embeddings/weight", &[43, 32]);
    let first = embeddings.expect("it fits").to_f32()[0];
    assert_eq!(first.to_bits(), 0x3e1a_fa70);
}
