//! The folder of pulled models: what is in it is complete, and what is not complete is not in it.

use std::fs;
use std::path::Path;

use attentive_hub::store::Source;
use attentive_hub::{HubError, ModelName, Store};
use attentive_model::fake_dir;

fn source(name: &str, commit: &str) -> Source {
    Source {
        name: name.parse().expect("a sound name"),
        commit: commit.to_owned(),
        license: Some("mit".to_owned()),
    }
}

fn name(name: &str) -> ModelName {
    name.parse().expect("a sound name")
}

fn fake(folder: &Path) -> Result<(), HubError> {
    Ok(fake_dir::write(folder)?)
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::at(folder.path().join("not/yet/there"));
    (folder, store)
}

fn names(store: &Store) -> Vec<String> {
    let list = store.list().expect("readable");
    list.iter().map(|(name, _)| name.to_string()).collect()
}

#[test]
fn a_model_is_found_by_its_name_and_by_its_languages_until_it_is_removed() {
    let (_folder, store) = store();
    assert_eq!(names(&store), [""; 0]);
    for model in ["Helsinki-NLP/opus-mt-tc-big-fr-en", "me/my-model"] {
        store
            .install(&source(model, "1"), || {}, fake)
            .expect("installed");
    }
    assert_eq!(
        names(&store),
        ["Helsinki-NLP/opus-mt-tc-big-fr-en", "me/my-model"]
    );
    let found = store
        .find(&name("fr-en"))
        .expect("readable")
        .expect("there");
    assert_eq!(found.name.to_string(), "Helsinki-NLP/opus-mt-tc-big-fr-en");
    let mine = store
        .find(&name("me/my-model"))
        .expect("readable")
        .expect("there");
    assert_eq!(
        (mine.languages, mine.license.as_deref()),
        (None, Some("mit"))
    );
    assert!(store.find(&name("en-fr")).expect("readable").is_none());

    let removed = store.remove(&name("fr-en")).expect("there");
    assert_eq!(removed, found.name);
    assert!(!found.folder.exists());
    assert_eq!(names(&store), ["me/my-model"]);
    let message = store
        .remove(&name("me/my-modell"))
        .expect_err("a misspelling")
        .to_string();
    assert!(message.contains("did you mean me/my-model?"), "{message}");
    let message = store
        .remove(&name("fr-en"))
        .expect_err("removed")
        .to_string();
    assert!(message.contains("no model `fr-en` was pulled"), "{message}");
}

#[test]
fn a_model_that_cannot_be_converted_leaves_nothing_and_the_one_that_was_there() {
    let (_folder, store) = store();
    let failing = |folder: &Path| {
        fake(folder)?;
        let reason = "no".to_owned();
        Err::<(), _>(HubError::NoModel {
            repository: reason.clone(),
            reason,
        })
    };
    store
        .install(&source("a/b", "1"), || {}, failing)
        .expect_err("it fails");
    assert_eq!(names(&store), [""; 0]);
    store
        .install(&source("a/b", "1"), || {}, fake)
        .expect("installed");
    store
        .install(&source("a/b", "2"), || {}, failing)
        .expect_err("it fails");
    let kept = store.find(&name("a/b")).expect("readable").expect("there");
    assert_eq!(kept.origin.as_deref(), Some("a/b@1"));
    let entries = fs::read_dir(store.folder()).expect("there").count();
    assert_eq!(entries, 2, "the model and the lock");
}

#[test]
fn a_newer_commit_replaces_an_older_one_and_the_same_does_nothing() {
    let (_folder, store) = store();
    assert!(
        store
            .install(&source("a/b", "1"), || {}, fake)
            .expect("installed")
            .is_some()
    );
    assert!(
        store
            .install(&source("a/b", "1"), || {}, fake)
            .expect("there")
            .is_none()
    );
    assert!(
        store
            .install(&source("a/b", "2"), || {}, fake)
            .expect("installed")
            .is_some()
    );
    let found = store.find(&name("a/b")).expect("readable").expect("there");
    assert_eq!(found.origin.as_deref(), Some("a/b@2"));
}

#[test]
fn what_an_interrupted_process_left_is_removed_and_never_listed() {
    let (_folder, store) = store();
    store
        .install(&source("a/b", "1"), || {}, fake)
        .expect("installed");
    let left = store.folder().join(".tmp-x");
    fs::create_dir(&left).expect("writable");
    fs::write(left.join("config.json"), "{}").expect("writable");
    assert_eq!(names(&store), ["a/b"]);
    store
        .install(&source("c/d", "1"), || {}, fake)
        .expect("installed");
    assert!(!left.exists());
}

#[test]
fn a_damaged_model_is_told_in_its_place_and_can_be_removed_or_pulled_again() {
    let (_folder, store) = store();
    for model in ["a/b", "c/d"] {
        store
            .install(&source(model, "1"), || {}, fake)
            .expect("installed");
    }
    let folder = store.folder().join("a--b");
    fs::write(folder.join("generation.json"), "{").expect("writable");
    let list = store.list().expect("readable");
    assert!(list[0].1.is_err() && list[1].1.is_ok());
    assert!(
        store
            .install(&source("a/b", "1"), || {}, fake)
            .expect("repaired")
            .is_some()
    );
    fs::remove_file(folder.join("model.safetensors")).expect("there");
    store.find(&name("a/b")).expect_err("no weights");
    store.remove(&name("a/b")).expect("whatever it holds");
}
