//! Image models with the real program: a ViT is trained, classifies, is measured and shown, with merged tokens too; one of
//! Hugging Face classifies as transformers does; a diffusion model draws; bad input is refused.

mod program;

use std::path::Path;

use program::{Folder, attentive};
use serde_json::Value;

const DATA: &str = r#"
[data]
images = "images"
labels = "labels"
val_images = "images"
val_labels = "labels"
"#;

const VIT: &str = r#"
[model]
family = "vit"
preset = "tiny"
image_size = 16
d_model = 8
d_ff = 16
heads = 2
layers = 2
resize = "bilinear"
labels = ["dark", "bright"]
[training]
max_steps = 4
batch_size = 4
[schedule]
kind = "constant"
learning_rate = 0.01
"#;

const DIFFUSION: &str = r#"
[model]
family = "diffusion"
preset = "tiny"
image_size = 16
widths = [8, 8]
heads = 2
timesteps = 20
[training]
max_steps = 4
batch_size = 4
[schedule]
kind = "constant"
learning_rate = 0.01
"#;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/vit");
    path.join(name).display().to_string()
}

/// A folder with eight images of two classes as IDX files.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut images = vec![0u8, 0, 8, 3, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0, 0, 16];
    images.extend((0..8 * 256).map(|at: usize| if at / 256 % 2 == 1 { 200 } else { 20 }));
    folder.file("images", images);
    folder.file("labels", [0u8, 0, 8, 1, 0, 0, 0, 8, 0, 1, 0, 1, 0, 1, 0, 1]);
    folder
}

fn trained(text: &str) -> (Folder, String) {
    let folder = folder();
    folder.file("recipe.toml", format!("{DATA}{text}"));
    let (recipe, run) = (folder.path("recipe.toml"), folder.path("run"));
    let dir = format!("data.dir={}", folder.path(""));
    attentive(&["train", &recipe, "--out", &run, "--set", &dir]).good();
    (folder, run)
}

#[test]
fn a_vit_is_trained_classifies_and_is_measured_shown_and_described() {
    let (folder, run) = trained(VIT);
    let (images, labels) = (folder.path("images"), folder.path("labels"));
    let png = fixture("large.png");
    let classes = attentive(&["classify", "--model", &run, &png, &images]).good();
    let lines: Vec<&str> = classes.lines().collect();
    assert_eq!(lines.len(), 9, "{classes}");
    assert!(
        lines[0].starts_with(&png) && lines[1].contains("images[1]\t"),
        "{classes}"
    );
    let json = attentive(&["classify", "--model", &run, &png, "--json", "--merge", "2"]).good();
    let json: Value = serde_json::from_str(&json).unwrap();
    let [dark, bright] = ["dark", "bright"].map(|name| json["probabilities"][name].as_f64());
    assert!((dark.unwrap() + bright.unwrap() - 1.0).abs() < 1e-5);
    for merge in ["0", "4", "0,4"] {
        let arguments = [
            "evaluate", "--model", &run, "--images", &images, "--labels", &labels, "--merge",
            merge, "--json",
        ];
        let measured: Value = serde_json::from_str(&attentive(&arguments).good()).unwrap();
        assert_eq!(measured["images"], 8);
        assert!((0.0..=100.0).contains(&measured["accuracy"].as_f64().unwrap()));
    }
    for (more, shown) in [
        (&["--mean"][..], "layer 2, mean"),
        (&["--rollout", "--layer", "1"], "rollout to layer 1"),
        (&["--merge", "3"], "layer 2: 10 tokens"),
        (&["--merge", "0,3"], "layer 2: 13 tokens"),
        (&[], "layer 1, head 2"),
    ] {
        let picture = folder.path("picture.svg");
        let mut arguments = vec![
            "attention",
            "--model",
            &run,
            "--image",
            &png,
            "--out",
            &picture,
        ];
        arguments.extend(more);
        attentive(&arguments).good();
        let svg = std::fs::read_to_string(&picture).unwrap();
        assert!(svg.contains(shown), "{shown} is not in the picture");
    }
    let picture = folder.path("picture.png");
    attentive(&[
        "attention",
        "--model",
        &run,
        "--image",
        &png,
        "--out",
        &picture,
    ])
    .good();
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let curves = folder.path("curves.svg");
    attentive(&["plot", "training", &run, "--out", &curves]).good();
    let info = attentive(&["info", &run]).good();
    for part in ["vit", "patch_size 4", "accuracy"] {
        assert!(info.contains(part), "{info}");
    }
}

#[test]
fn a_vit_of_hugging_face_classifies_as_transformers_does() {
    let folder = Folder::new();
    let model = folder.path("vit");
    attentive(&["import", &fixture("model"), "--out", &model]).good();
    let expected = std::fs::read(fixture("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for (name, tolerance) in [("fits.png", 1e-5), ("large.png", 2e-3)] {
        let found = attentive(&["classify", "--model", &model, &fixture(name), "--json"]).good();
        let found: Value = serde_json::from_str(&found).unwrap();
        for (label, expected) in ["cat", "dog", "bird"]
            .iter()
            .zip(expected[name].as_array().unwrap())
        {
            let found = found["probabilities"][label].as_f64().unwrap();
            let expected = expected.as_f64().unwrap();
            assert!(
                (found - expected).abs() < tolerance,
                "{name} {label}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn a_diffusion_model_draws_by_its_seed() {
    let (folder, run) = trained(DIFFUSION);
    let draw = |name: &str, more: &[&str]| {
        let path = folder.path(name);
        let mut arguments = vec![
            "draw", "--model", &run, "--count", "2", "--steps", "3", "--out", &path,
        ];
        arguments.extend(more);
        attentive(&arguments).good();
        std::fs::read(&path).unwrap()
    };
    let sheet = draw("sheet.png", &[]);
    assert!(sheet.starts_with(b"\x89PNG"));
    assert_eq!(
        draw("again.png", &["--seed", "1", "--batch-size", "3"]),
        sheet
    );
    assert_ne!(draw("other.png", &["--seed", "2"]), sheet);
    assert_ne!(draw("merged.png", &["--merge", "0.5"]), sheet);
    draw("guided.png", &["--guidance", "2", "--class", "1"]);
    let idx = folder.path("drawn");
    attentive(&[
        "draw", "--model", &run, "--steps", "2", "--count", "3", "--idx", &idx,
    ])
    .good();
    let labels = std::fs::read(format!("{idx}-labels-idx1-ubyte")).unwrap();
    assert_eq!(labels[8..], [0, 0, 0, 1, 1, 1]);
    let images = std::fs::read(format!("{idx}-images-idx3-ubyte")).unwrap();
    assert_eq!(images.len(), 16 + 6 * 256);

    let sheet = folder.path("x.png");
    let bad = |more: &[&str], parts: &[&str]| {
        let mut arguments = vec!["draw", "--model", &run, "--out", &sheet];
        arguments.extend(more);
        attentive(&arguments).bad(2, parts);
    };
    bad(&["--class", "seven"], &["knows no class seven", "0, 1"]);
    bad(&["--steps", "21"], &["more than the 20"]);
    bad(&["--merge", "0.9"], &["0 to 0.75"]);
    attentive(&["classify", "--model", &run, &fixture("fits.png")])
        .bad(1, &["family `diffusion`", "attentive draw"]);
}

#[test]
fn bad_images_and_models_of_other_families_are_refused() {
    let (folder, run) = trained(&VIT.replace("bilinear", "never"));
    let text = folder.path("recipe.toml");
    let fake = folder.path("fake.png");
    folder.file("fake.png", "no picture");
    let (large, images) = (fixture("large.png"), folder.path("images"));
    for (image, parts) in [
        (&large, &["has 40 x 29 pixels", "reads 16 x 16"][..]),
        (&fake, &["fake.png cannot be read as a PNG"]),
        (&text, &["is not an IDX file of images"]),
        (
            &folder.path("nowhere.png"),
            &["nowhere.png", "No such file"],
        ),
    ] {
        attentive(&["classify", "--model", &run, image]).bad(1, parts);
    }
    let picture = folder.path("x.png");
    attentive(&[
        "attention",
        "--model",
        &run,
        "--image",
        &large,
        "--out",
        &picture,
    ])
    .bad(1, &["has 40 x 29 pixels"]);
    attentive(&[
        "attention",
        "--model",
        &run,
        "--image",
        &fixture("fits.png"),
    ])
    .bad(2, &["--out FILE.png"]);
    attentive(&[
        "attention",
        "--model",
        &run,
        "--image",
        &fixture("fits.png"),
        "--head",
        "9",
        "--out",
        &picture,
    ])
    .bad(2, &["no head 9", "1 to 2"]);
    attentive(&["classify", "--model", &run]).bad(2, &["there is no image"]);
    attentive(&["classify", "--model", &run, &images, "--merge", "99"])
        .bad(2, &["--merge 99", "at most 8"]);
    attentive(&["classify", "--model", &run, &images, "--merge", "1,2,3"])
        .bad(2, &["--merge names 3 layers", "the model has 2"]);
    attentive(&["evaluate", "--model", &run, "--images", &images]).bad(1, &["--labels"]);
    attentive(&["evaluate", "--model", &run, "--src", "a", "--ref", "b"]).bad(2, &["--images"]);
    attentive(&["translate", "--model", &run, "the"])
        .bad(1, &["family `vit`", "attentive classify"]);
    attentive(&["draw", "--model", &run, "--out", &picture])
        .bad(1, &["family `vit`", "`diffusion` is needed"]);
    assert!(!Path::new(&picture).exists());
}
