//! Models of the hub with the real binary: pulled, listed, used, chained, removed.
//!
//! The server is that of `crates/hub/tests`, where all ways are tested in which a server can misbehave. The model
//! (tests/fixtures/opus_mt) has the files of an OPUS-MT model; its weights are random, so what it says makes no
//! sense, but is always the same.

#[path = "../crates/hub/tests/local_hub/mod.rs"]
mod local_hub;
mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use local_hub::{Answer, COMMIT, Files, LocalHub, Request, Server};
use program::{Folder, Ran, command};

const NAME: &str = "Helsinki-NLP/opus-mt-fr-en";
const FRENCH: &str = "où est la gare ? le chien court.";

fn model() -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opus_mt");
    let entries = fs::read_dir(folder).expect("the fixture is there");
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a plain name");
        (name, fs::read(entry.path()).expect("readable"))
    };
    entries
        .map(|entry| file(entry.expect("readable")))
        .collect()
}

/// A user with a home of their own, and the hub.
struct User {
    home: Folder,
    hub: LocalHub,
}

impl User {
    fn new() -> Self {
        Self::of(LocalHub::start(&[(NAME, model())]))
    }

    fn of(hub: LocalHub) -> Self {
        let home = Folder::new();
        Self { home, hub }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command
            .env("ATTENTIVE_MODELS_DIR", self.home.path("models"))
            .env("ATTENTIVE_CACHE", "")
            .env("HF_HOME", self.home.path("hf"))
            .env("HF_ENDPOINT", &self.hub.endpoint)
            .env_remove("HF_HUB_CACHE")
            .env_remove("HF_HUB_OFFLINE")
            .env_remove("HF_TOKEN")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(arguments))
    }

    /// Random weights repeat themselves.
    fn translate(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["translate", "--allow-repetition"], arguments].concat())
    }

    fn downloads_of_weights(&self) -> Vec<Request> {
        let weights = local_hub::sha256(&model()["model.safetensors"]);
        self.hub.downloads(&weights)
    }
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_model_is_pulled_listed_used_and_removed() {
    let user = User::new();
    let pulled = user.run(&["pull", "fr-en"]);
    assert!(
        pulled.stderr.contains(&format!("found {NAME} at 01234567")),
        "{pulled:?}"
    );
    let row = pulled.good();
    for part in [NAME, "fr to en", "f32", "apache-2.0", COMMIT] {
        assert!(row.contains(part), "{part} is not in {row}");
    }
    let list = json(&user.run(&["models", "--json"]).good());
    let names: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(names, ["de-en", "en-de", NAME]);
    assert_eq!(list[2]["from"], "fr");
    assert_eq!(list[2]["origin"], format!("{NAME}@{COMMIT}"));
    assert!(user.run(&["models"]).good().contains(row.trim_end()));

    let found = user.translate(&["--from", "fr", "--to", "en", "--scores", FRENCH]);
    assert_eq!(found.stderr, "", "a direct model needs no word");
    let found = found.good();
    for name in ["fr-en", NAME] {
        assert_eq!(
            user.translate(&["--model", name, "--scores", FRENCH])
                .good(),
            found
        );
    }
    assert_eq!(
        user.translate(&["--from", "fr", "--scores", FRENCH]).good(),
        found
    );
    let info = json(&user.run(&["info", "fr-en", "--json"]).good());
    assert_eq!(info["config"]["d_model"], 16);

    user.run(&["models", "remove", "fr-en"]).good();
    user.run(&["models", "remove", "fr-en"])
        .bad(1, &["no model `fr-en` was pulled"]);
    let gone = user.translate(&["--from", "fr", "--to", "en", FRENCH]);
    gone.bad(
        2,
        &[
            "no model translates from fr to en",
            "de-en, en-de",
            "`attentive pull fr-en`",
        ],
    );
    user.translate(&["--model", NAME, FRENCH])
        .bad(1, &["attentive pull"]);
}

#[test]
fn a_pulled_model_is_for_text_with_many_sentences() {
    let user = User::new();
    user.run(&["pull", "fr-en"]).good();
    let one = |text: &str| {
        user.translate(&["--model", "fr-en", "--whole-lines", text])
            .good()
            .trim_end()
            .to_owned()
    };
    let both = user.translate(&["--model", "fr-en", FRENCH]).good();
    let expected = format!("{} {}", one("où est la gare ?"), one("le chien court."));
    assert_eq!(both.trim_end(), expected);
    assert_ne!(one(FRENCH), expected, "a line is not two sentences");
}

#[test]
fn two_models_are_chained_through_english_sentence_by_sentence() {
    let user = User::new();
    user.run(&["pull", "fr-en"]).good();
    let chain = ["--from", "fr", "--to", "de"];
    let chained = user.translate(&[&chain[..], &["--json", FRENCH]].concat());
    let said = format!(
        "no model translates from fr to de directly: {NAME} is followed by en-de, through English"
    );
    assert!(chained.stderr.contains(&said), "{chained:?}");
    let chained = json(&chained.good());

    let line = |arguments: &[&str]| {
        json(
            &user
                .translate(&[arguments, &["--json", "--whole-lines"]].concat())
                .good(),
        )
    };
    let mut texts = (Vec::new(), Vec::new());
    let mut log_prob = 0.0;
    for sentence in ["où est la gare ?", "le chien court."] {
        let english = line(&["--model", "fr-en", sentence]);
        let text = english["text"].as_str().expect("text").to_owned();
        let german = line(&["--model", "en-de", &text]);
        log_prob += english["log_prob"].as_f64().expect("a number")
            + german["log_prob"].as_f64().expect("a number");
        texts.0.push(text);
        texts
            .1
            .push(german["text"].as_str().expect("text").to_owned());
    }
    assert_eq!(chained["pivot"], texts.0.join(" "));
    assert_eq!(chained["text"], texts.1.join(" "));
    assert!((chained["log_prob"].as_f64().expect("a number") - log_prob).abs() < 1e-3);

    let scored = user
        .translate(&[&chain[..], &["--scores", FRENCH]].concat())
        .good();
    let score = format!("{:.4}\t", chained["score"].as_f64().expect("a number"));
    assert!(scored.starts_with(&score), "{scored} {score}");
    let best = user
        .translate(&[&chain[..], &["--n-best", "2", FRENCH, ""]].concat())
        .good();
    assert_eq!(best.lines().count(), 3, "{best}");
    let quiet = user.translate(&[&chain[..], &["--quiet", FRENCH]].concat());
    // What the model makes of such English may be cut at its length limit, which is said in any case.
    let mut said = quiet.stderr.lines();
    assert!(
        said.all(|line| line.starts_with("warning: ") && line.contains("length limit")),
        "{}",
        quiet.stderr
    );

    user.translate(&[&chain[..], &["--shortlist", "x", FRENCH]].concat())
        .bad(2, &["--shortlist"]);
    let attention = user.run(&[&["attention", FRENCH], &chain[..]].concat());
    attention.bad(2, &["--model", NAME]);
    // Not from German through English to German, and not where a half is missing.
    user.translate(&["--from", "de", "--to", "fr", FRENCH])
        .bad(2, &["attentive pull de-fr"]);
}

/// The same model from English, into French and into Chinese in two scripts.
fn model_of_several_targets() -> Files {
    let mut files = model();
    let mut vocabulary: Value = serde_json::from_slice(&files["vocab.json"]).expect("JSON");
    let tokens = vocabulary.as_object_mut().expect("a vocabulary");
    let taken = [
        ("c", ">>fra<<"),
        ("g", ">>cmn_Hans<<"),
        ("h", ">>cmn_Hant<<"),
    ];
    for (old, new) in taken {
        let id = tokens.remove(old).expect("a token");
        tokens.insert(new.to_owned(), id);
    }
    files.insert("vocab.json".to_owned(), vocabulary.to_string().into());
    let config = r#"{"source_lang": "en", "target_lang": "mul"}"#;
    files.insert("tokenizer_config.json".to_owned(), config.into());
    files
}

#[test]
fn of_a_model_of_several_targets_to_chooses_the_language() {
    const SEVERAL: &str = "Helsinki-NLP/opus-mt-en-mul";
    let user = User::of(LocalHub::start(&[(SEVERAL, model_of_several_targets())]));
    let row = user.run(&["pull", SEVERAL]).good();
    assert!(row.contains("en to cmn_Hans, cmn_Hant, fra"), "{row}");
    let list = json(&user.run(&["models", "--json"]).good());
    assert_eq!(list[2]["from"], "en");
    assert_eq!(list[2]["targets"].as_array().map(Vec::len), Some(3));

    let text = "the cat is here .";
    let with_token = |token: &str| {
        let line = format!("{token} {text}");
        let ran = user.translate(&["--model", SEVERAL, "--whole-lines", "--json", &line]);
        assert!(
            ran.stderr.contains("choose one with --to") && ran.stderr.contains(">>cmn_Hans<<"),
            "{ran:?}"
        );
        json(&ran.good())["log_prob"].clone()
    };
    let chosen = |arguments: &[&str]| {
        let ran = user.translate(&[arguments, &["--whole-lines", "--json", text]].concat());
        assert!(!ran.stderr.contains("choose one"), "{arguments:?}: {ran:?}");
        json(&ran.good())["log_prob"].clone()
    };
    for (to, token) in [
        ("fr", ">>fra<<"),
        ("zh", ">>cmn_Hans<<"),
        ("zh-Hant", ">>cmn_Hant<<"),
    ] {
        let expected = with_token(token);
        assert_eq!(chosen(&["--from", "en", "--to", to]), expected, "{to}");
        assert_eq!(chosen(&["--model", SEVERAL, "--to", to]), expected, "{to}");
    }
    assert_ne!(with_token(">>fra<<"), with_token(">>cmn_Hans<<"));
    let none = user.translate(&["--from", "en", "--to", "es", text]);
    none.bad(2, &[format!("there are de-en, en-de, {SEVERAL};").as_str()]);
    user.translate(&["--model", SEVERAL, "--to", "es", text])
        .bad(
            2,
            &["does not translate into es", "cmn_Hans, cmn_Hant, fra"],
        );
    // The first half of a chain is built in.
    let chained = user.translate(&["--from", "de", "--to", "fr", "Guten Morgen."]);
    assert!(chained.stderr.contains("through English"), "{chained:?}");
    chained.good();
}

#[test]
fn the_text_decides_among_the_languages_of_all_models() {
    let user = User::new();
    user.run(&["pull", "fr-en"]).good();
    let german = "Wo ist der Bahnhof und wann fährt der nächste Zug?";
    for (text, model) in [(german, "de-en"), (FRENCH, "fr-en")] {
        let expected = user.translate(&["--model", model, text]).good();
        for arguments in [&["--to", "en"][..], &[]] {
            let ran = user.translate(&[arguments, &[text]].concat());
            assert_eq!(ran.stderr, "", "{arguments:?}");
            assert_eq!(ran.good(), expected, "{arguments:?}");
        }
    }
    // From French through English, or from English.
    let ran = user.translate(&["--to", "de", FRENCH]);
    assert!(ran.stderr.contains("through English"), "{ran:?}");
}

#[test]
fn two_processes_fetch_once_and_both_succeed() {
    let slow = |request: &Request, answer: &mut Answer| {
        if request.server == Server::Storage && request.range.is_none() {
            answer.cut = Some(answer.body.len() / 2);
            thread::sleep(Duration::from_millis(300));
        }
    };
    let user = User::of(LocalHub::with_change(&[(NAME, model())], slow));
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = user.command(&["pull", "fr-en"]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the binary starts")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("the binary ends");
        assert!(output.status.success(), "{output:?}");
    }
    let firsts = user
        .downloads_of_weights()
        .into_iter()
        .filter(|request| request.range.is_none());
    assert_eq!(firsts.count(), 1, "one of them began");
    user.translate(&["--from", "fr", "--to", "en", FRENCH])
        .good();
}

#[test]
fn a_process_that_was_killed_leaves_a_download_that_goes_on() {
    let times = AtomicUsize::new(0);
    let half = model()["model.safetensors"].len() / 2;
    let weights = local_hub::sha256(&model()["model.safetensors"]);
    let stalling = move |request: &Request, answer: &mut Answer| {
        let is_weights = request.line.starts_with("GET ") && request.line.contains(&weights);
        if is_weights && times.fetch_add(1, Ordering::SeqCst) == 0 {
            answer.cut = Some(half);
            answer.stall = Duration::from_secs(60);
        }
    };
    let user = User::of(LocalHub::with_change(&[(NAME, model())], stalling));
    let mut child = user
        .command(&["pull", "fr-en"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let hash = local_hub::sha256(&model()["model.safetensors"]);
    let part = user.home.path(&format!(
        "hf/hub/models--Helsinki-NLP--opus-mt-fr-en/blobs/{hash}.incomplete"
    ));
    let began = Instant::now();
    while fs::metadata(&part).map_or(0, |part| part.len()) < half as u64 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the download does not begin"
        );
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it waits");
    child.wait().expect("it was killed");
    assert!(
        user.run(&["models"]).good().lines().count() == 2,
        "nothing is half there"
    );

    user.run(&["pull", "fr-en"]).good();
    let ranges: Vec<_> = user
        .downloads_of_weights()
        .iter()
        .map(|request| request.range)
        .collect();
    assert_eq!(ranges, [None, Some(half)]);
}

#[test]
fn what_cannot_be_pulled_is_refused_with_the_reason() {
    let user = User::new();
    user.run(&["pull", "../../etc"])
        .bad(2, &["../../etc", "ORGANIZATION/NAME"]);
    user.run(&["pull", "fr"]).bad(2, &["ORGANIZATION/NAME"]);
    user.run(&["pull", "fr-eng"])
        .bad(1, &["did you mean", NAME]);
    let mut command = user.command(&["pull", "fr-en"]);
    ran(command.env("HF_HUB_OFFLINE", "1")).bad(1, &["HF_HUB_OFFLINE", NAME]);
    let mut command = user.command(&["pull", "fr-en"]);
    ran(command.env("HF_ENDPOINT", "ftp://x")).bad(1, &["HF_ENDPOINT"]);
    user.run(&["models"]).good();

    // A file that is no model, though its checksum is right.
    user.hub.put(NAME, "model.safetensors", &[7; 5000]);
    user.run(&["pull", "fr-en"]).bad(1, &["model.safetensors"]);
    assert_eq!(user.run(&["models"]).good().lines().count(), 2);
}

#[test]
fn the_token_of_the_environment_opens_what_is_closed() {
    let closed = |request: &Request, answer: &mut Answer| {
        if request.server == Server::Hub
            && request.authorization.as_deref() != Some("Bearer secret")
        {
            *answer = Answer::status(401);
        }
    };
    let user = User::of(LocalHub::with_change(&[(NAME, model())], closed));
    user.run(&["pull", "fr-en"]).bad(1, &["HF_TOKEN"]);
    ran(user.command(&["pull", "fr-en"]).env("HF_TOKEN", "secret")).good();
    for request in user.hub.requests() {
        assert!(
            request.server == Server::Hub || request.authorization.is_none(),
            "{request:?}"
        );
    }
}

#[test]
fn a_damaged_model_is_said_so_and_pulled_again() {
    let user = User::new();
    user.run(&["pull", "fr-en"]).good();
    let weights = user
        .home
        .path("models/Helsinki-NLP--opus-mt-fr-en/model.safetensors");
    fs::write(&weights, b"x").expect("writable");
    let list = user.run(&["models"]);
    assert!(list.stderr.contains("is damaged"), "{list:?}");
    assert_eq!(list.good().lines().count(), 2);
    // The rest goes on.
    let other = user.translate(&["--from", "de", "--to", "en", "Hallo"]);
    assert!(other.stderr.contains("is left out"), "{other:?}");
    other.good();
    user.run(&["pull", "fr-en"]).good();
    user.translate(&["--from", "fr", "--to", "en", FRENCH])
        .good();
}
