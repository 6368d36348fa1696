//! `attentive prepare` as a user meets it: killed and run again, then trained on.

mod program;

use std::fs;
use std::path::Path;

use program::{Folder, attentive, command};

#[test]
fn a_preparation_that_was_killed_goes_on_and_is_trained_on() {
    let folder = Folder::new();
    folder.copy_task("train", 400_000, 1);
    let recipe = folder.recipe();
    let arguments = |prepared: &str| {
        let set = format!("data.prepared={}", folder.path(prepared));
        ["prepare", &recipe, "--set", &set].map(str::to_owned)
    };
    attentive(&["prepare", &recipe]).bad(2, &["data.prepared"]);
    attentive(&[
        "train",
        &recipe,
        "--out",
        &folder.path("run"),
        "--set",
        "data.prepared=nowhere",
    ])
    .bad(
        1,
        &["nowhere holds no prepared corpus", "attentive prepare"],
    );

    let mut killed = command(&arguments("killed"))
        .spawn()
        .expect("the binary starts");
    while !Path::new(&folder.path("killed/00000.pairs")).exists() {
        std::thread::yield_now();
    }
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    assert!(!Path::new(&folder.path("killed/manifest.json")).exists());

    let again = attentive(&arguments("killed"));
    assert!(
        again.stderr.contains("of them were there, and are intact"),
        "{again:?}"
    );
    again.good();
    let told = attentive(&arguments("whole"));
    assert!(told.stderr.contains("400000 of 400000 pairs"), "{told:?}");
    told.good();
    let files = |name: &str| {
        let entries = fs::read_dir(folder.path(name)).expect("written");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("readable").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(files("killed"), files("whole"));
    assert!(files("whole").len() >= 7, "{:?}", files("whole"));
    for name in files("whole") {
        let read = |prepared: &str| {
            fs::read(Path::new(&folder.path(prepared)).join(&name)).expect("a file")
        };
        assert!(read("killed") == read("whole"), "{name:?}");
    }

    let set = format!("data.prepared={}", folder.path("whole"));
    let run = folder.path("run");
    attentive(&["train", &recipe, "--out", &run, "--set", &set]).good();
    let translated = attentive(&["translate", "-m", &run, "a b c"]).good();
    assert_eq!(translated, "a b c\n");
}
