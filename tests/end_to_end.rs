//! From nothing to translations with the real binary, the way a new user goes: make data, train,
//! look, translate, evaluate.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use program::{Folder, attentive, attentive_reading};

/// A run that has learned to copy, trained once for all tests of this file.
fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| {
        let data = Folder::new();
        data.copy_task("train", 2000, 1);
        data.copy_task("val", 20, 2);
        let run = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("end_to_end");
        let _ = fs::remove_dir_all(&run);
        let run = run.to_str().expect("a plain name").to_owned();
        let recipe = data.recipe();
        let arguments = [
            "train",
            &recipe,
            "--out",
            &run,
            "--set",
            "data.val_src=val.src",
            "--set",
            "data.val_tgt=val.tgt",
            "--set",
            "training.label_smoothing=0.0",
        ];
        let ran = attentive(&arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        for part in [
            "parameters",
            "step 10/200",
            "loss ",
            "tok/s",
            "validation",
            "output",
        ] {
            assert!(
                ran.stderr.contains(part),
                "{part:?} is not in: {}",
                ran.stderr
            );
        }
        run
    })
}

fn translate(arguments: &[&str]) -> String {
    attentive(&[&["translate", "--model", run()], arguments].concat()).good()
}

#[test]
fn a_trained_model_translates_its_arguments() {
    assert_eq!(translate(&["a b c", "d e"]), "a b c\nd e\n");
}

#[test]
fn every_line_gives_one_line_and_empty_lines_stay_empty() {
    let input = "a b c\n\n  \nd e\nf g a";
    let expected = "a b c\n\n\nd e\nf g a\n";
    let folder = Folder::new();
    let file = folder.file("in.txt", input);
    assert_eq!(translate(&["-i", &file]), expected);

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(input.as_bytes()).expect("in memory");
    let file = folder.file("in.gz", gzip.finish().expect("in memory"));
    assert_eq!(translate(&["-i", &file]), expected);

    let output = folder.path("out/in.out");
    assert_eq!(translate(&["-i", &file, "-o", &output]), "");
    assert_eq!(fs::read_to_string(output).expect("written"), expected);

    for arguments in [
        &["translate", "-m", run()][..],
        &["translate", "-m", run(), "-i", "-"],
    ] {
        let ran = attentive_reading(arguments, input.as_bytes());
        assert_eq!(ran.good(), expected);
    }
}

#[test]
fn thousands_of_lines_keep_their_order() {
    let letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let line = |i: usize| {
        format!(
            "{} {} {}",
            letters[i % 8],
            letters[i / 8 % 8],
            letters[i / 64 % 8]
        )
    };
    let input: String = (0..2500).map(|i| line(i) + "\n").collect();
    let arguments = ["translate", "-m", run(), "--beam", "1"];
    let output = attentive_reading(&arguments, input.as_bytes()).good();
    assert_eq!(output.lines().count(), 2500);
    // It has seen each line's first word at the first place; a model of this size may slip.
    let right = output
        .lines()
        .zip(input.lines())
        .filter(|(out, line)| out == line)
        .count();
    assert!(right >= 2250, "only {right} of 2500 lines are right");
}

#[test]
fn json_lines_have_source_text_and_score() {
    let output = translate(&["--json", "--n-best", "2", "a b", "", "z a"]);
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["line"], &lines[0]["source"]),
        (&1.into(), &"a b".into())
    );
    assert_eq!(lines[0]["text"], "a b");
    assert!(lines[0]["score"].as_f64().expect("a number") <= 0.0);
    assert_eq!(lines[0]["alternatives"].as_array().map(Vec::len), Some(1));
    assert_eq!(lines[1]["text"], "");
    assert_eq!(lines[2]["unknown"], 1);
}

#[test]
fn n_best_lists_are_numbered_and_sorted() {
    let output = translate(&["--n-best", "3", "a b", "c d e"]);
    let rows: Vec<Vec<&str>> = output
        .lines()
        .map(|line| line.split(" ||| ").collect())
        .collect();
    assert_eq!(
        rows.iter().map(|row| row[0]).collect::<Vec<_>>(),
        ["1", "1", "1", "2", "2", "2"]
    );
    assert_eq!((rows[0][1], rows[3][1]), ("a b", "c d e"));
    let score = |row: &Vec<&str>| row[2].parse::<f64>().expect("a score");
    assert!(
        rows[..3].is_sorted_by(|one, other| score(one) >= score(other)),
        "{output}"
    );
    let scored = translate(&["--scores", "a b"]);
    assert_eq!(scored, format!("{}\ta b\n", rows[0][2]));
}

#[test]
fn samples_depend_on_the_seed_alone() {
    let draw = |seed| {
        let arguments = [
            "--sample",
            "--temperature",
            "5",
            "--seed",
            seed,
            "a b c",
            "d e f g",
        ];
        translate(&arguments)
    };
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
}

#[test]
fn unknown_words_are_reported() {
    let ran = attentive(&["translate", "--model", run(), "a z b", "y z"]);
    assert!(
        ran.stderr
            .contains("3 words in 2 lines not in the vocabulary"),
        "{ran:?}"
    );
    let quiet = attentive(&["--quiet", "translate", "--model", run(), "a b"]);
    assert_eq!(
        (quiet.stderr.as_str(), quiet.stdout.as_str()),
        ("", "a b\n")
    );
}

#[test]
fn evaluation_gives_loss_perplexity_and_bleu() {
    let folder = Folder::new();
    folder.copy_task("test", 100, 3);
    let (src, tgt, hyp) = (
        folder.path("test.src"),
        folder.path("test.tgt"),
        folder.path("hyp"),
    );
    let arguments = [
        "evaluate",
        "--model",
        run(),
        "--src",
        &src,
        "--ref",
        &tgt,
        "-o",
        &hyp,
        "--threads",
        "2",
    ];
    let text = attentive(&arguments).good();
    for part in [
        "loss ",
        "perplexity ",
        "BLEU ",
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert_eq!(
        fs::read_to_string(&hyp).expect("written").lines().count(),
        100
    );

    let json = attentive(&[&arguments[..], &["--json", "--beam", "1"]].concat()).good();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&json["bleu"]["score"]) > 90.0, "{json}");
    assert!(number(&json["perplexity"]) < 1.5, "{json}");
    // The recipe has no label smoothing, so the loss is the cross-entropy.
    let (loss, perplexity) = (number(&json["loss"]), number(&json["perplexity"]));
    assert!((loss - perplexity.ln()).abs() < 1e-6, "{json}");
}

#[test]
fn info_shows_the_model_and_the_run() {
    let text = attentive(&["info", run()]).good();
    for part in [
        "parameters",
        "d_model 32",
        "word",
        "step 200",
        "best",
        "recipe.toml",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let json: Value =
        serde_json::from_str(&attentive(&["info", run(), "--json"]).good()).expect("JSON");
    assert_eq!(json["config"]["heads"], 2);
    assert_eq!(json["run"]["last"]["step"], 200);
    assert_eq!(json["run"]["recipe"]["training"]["max_steps"], 200);
    let best = format!("{}/best", run());
    assert!(attentive(&["info", &best]).good().contains("parameters"));
}

#[test]
fn a_finished_run_is_left_as_it_is() {
    let folder = Folder::new();
    folder.copy_task("train", 50, 1);
    let (recipe, run) = (folder.recipe(), folder.path("run"));
    let arguments = [
        "train",
        &recipe,
        "--out",
        &run,
        "--set",
        "training.max_steps=3",
    ];
    attentive(&arguments).good();
    let before = fs::read(format!("{run}/last/model.safetensors")).expect("written");
    let again = attentive(&arguments);
    assert!(again.stderr.contains("finished"), "{again:?}");
    assert_eq!(
        fs::read(format!("{run}/last/model.safetensors")).expect("there"),
        before
    );
}

#[test]
fn a_tokenizer_gives_back_what_it_was_given() {
    let folder = Folder::new();
    let text = "Ein Hund rennt über die Wiese.\nZwei Hunde rennen über die Straße.\n";
    let corpus = folder.file("corpus.txt", text.repeat(20));
    for kind in ["bpe", "unigram"] {
        let tokenizer = folder.path(&format!("{kind}.json"));
        let arguments = [
            "tokenizer",
            "train",
            &corpus,
            "--kind",
            kind,
            "--vocab-size",
            "300",
            "--out",
            &tokenizer,
        ];
        attentive(&arguments).good();
        let line = "Drei  Hunde 🐕 schlafen.\n\n";
        let encode = ["tokenizer", "encode", "-t", &tokenizer, "--ids"];
        let ids = attentive_reading(&encode, line.as_bytes()).good();
        assert_eq!(ids.lines().count(), 2);
        let decode = ["tokenizer", "decode", "-t", &tokenizer];
        assert_eq!(attentive_reading(&decode, ids.as_bytes()).good(), line);
        let pieces = attentive_reading(&encode[..4], b"Hunde rennen").good();
        assert!(pieces.contains("und"), "{pieces}");
    }
}

#[test]
fn a_sentencepiece_file_is_a_tokenizer() {
    let folder = Folder::new();
    let packed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../text/tests/fixtures/sentencepiece/unigram.model.gz"
    );
    let mut packed = flate2::read::GzDecoder::new(fs::File::open(packed).expect("a fixture"));
    let spm = folder.path("vocab.spm");
    let mut file = fs::File::create(&spm).expect("a writable folder");
    std::io::copy(&mut packed, &mut file).expect("written");
    let line = "The lazy dog 🐕 jumps.\n";
    let encode = ["tokenizer", "encode", "-t", &spm, "--ids"];
    let ids = attentive_reading(&encode, line.as_bytes()).good();
    let decode = ["tokenizer", "decode", "-t", &spm];
    assert_eq!(attentive_reading(&decode, ids.as_bytes()).good(), line);
    let pieces = attentive_reading(&encode[..4], line.as_bytes()).good();
    assert!(pieces.starts_with("▁The ▁"), "{pieces}");
    assert!(pieces.contains("<0xF0> <0x9F>"), "{pieces}");
}

#[test]
fn synthetic_data_is_the_same_for_the_same_seed() {
    let folder = Folder::new();
    let make = |name: &str, seed: &str| {
        let out = folder.path(name);
        attentive(&[
            "data",
            "synthetic",
            "reverse",
            "--lines",
            "20",
            "--seed",
            seed,
            "--out",
            &out,
        ])
        .good();
        let read = |end| fs::read_to_string(format!("{out}.{end}")).expect("written");
        (read("src"), read("tgt"))
    };
    let (src, tgt) = make("one", "7");
    assert_eq!((src.clone(), tgt.clone()), make("two", "7"));
    assert_ne!(src, make("three", "8").0);
    for (src, tgt) in src.lines().zip(tgt.lines()) {
        let backwards: Vec<&str> = src.split(' ').rev().collect();
        assert_eq!(backwards.join(" "), tgt);
    }
}

#[test]
fn the_demo_trains_and_shows_unseen_lines() {
    let small = [
        "training.max_steps=3",
        "data.synthetic.lines=100",
        "data.synthetic.val_lines=5",
        "model.d_model=16",
        "model.d_ff=16",
    ];
    let mut arguments = vec!["demo", "--lines", "3"];
    for setting in small {
        arguments.extend(["--set", setting]);
    }
    let output = attentive(&arguments).good();
    assert_eq!(output.lines().count(), 4, "{output}");
    assert!(output.contains("of 200 unseen lines right"), "{output}");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = attentive(&["completions", shell]).good();
        assert!(script.contains("translate"), "{shell}: {script}");
    }
}

#[test]
fn help_has_examples() {
    let help = attentive(&["translate", "--help"]).good();
    assert!(
        help.contains("Examples:") && help.contains("--n-best"),
        "{help}"
    );
}

/// `GET` or, with a body, `POST`; the body of the answer.
fn http(address: &str, path: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let method = if body.is_empty() { "GET" } else { "POST" };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
    body.to_owned()
}

#[test]
fn a_run_can_be_watched_and_its_newest_checkpoint_translates() {
    let mut server = program::command(&["serve", "--run", run(), "--port", "0"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines();
    let address = lines.find_map(|line| Some(line.ok()?.split_once("http://")?.1.to_owned()));
    let address = address.expect("it says where it listens");
    let began = std::time::Instant::now();
    let history: Value = loop {
        let history: Value =
            serde_json::from_str(&http(&address, "/run/history", "")).expect("JSON");
        let seen = history["checkpoints"].as_array().is_some_and(|all| {
            !all.is_empty() && all.iter().all(|checkpoint| checkpoint["attention"] == true)
        });
        if seen {
            break history;
        }
        assert!(began.elapsed().as_secs() < 120, "{history}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    let events = history["events"].as_array().expect("events");
    for kind in ["step", "validation"] {
        assert!(events.iter().any(|event| event["event"] == kind), "{kind}");
    }
    let last = history["checkpoints"].as_array().and_then(|all| all.last());
    let last = last.and_then(|one| one["name"].as_str()).expect("a name");
    let path = format!("/run/attention?checkpoint={last}");
    let map: Value = serde_json::from_str(&http(&address, &path, "")).expect("JSON");
    assert_eq!(map["attention"][0]["kind"], "cross");
    let answer = http(&address, "/v1/translate", r#"{"text": "a b c"}"#);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["source"], "x-source", "letters are in no language");
    let said = answer["translations"][0]["text"].as_str().expect("a text");
    let newest = attentive_reading(
        &["translate", "--model", &format!("{}/last", run())],
        b"a b c",
    );
    assert_eq!(said, newest.good().trim_end());
    server.kill().expect("it runs");
    server.wait().expect("it ends");
}

/// Another family of models goes the same way; what it learns is tested elsewhere.
#[test]
fn a_recurrent_translator_translates_evaluates_and_shows_its_attention() {
    let folder = Folder::new();
    let recipe = folder.file(
        "recurrent.toml",
        "[data.synthetic]\ntask = \"copy\"\nlines = 400\nval_lines = 10\nsymbols = 8\n\
         [tokenizer]\nkind = \"word\"\nvocab_size = 0\n\
         [model]\nfamily = \"recurrent\"\npreset = \"tiny\"\nd_embedding = 16\nd_hidden = 24\n\
         [training]\nmax_steps = 10\nbatch_tokens = 300\n",
    );
    let run = folder.path("run");
    let trained = attentive(&["train", &recipe, "--out", &run]);
    assert_eq!(trained.code, 0, "{trained:?}");
    assert!(
        trained.stderr.contains("attentive translate"),
        "{trained:?}"
    );

    let lines = attentive(&["translate", "--model", &run, "a b c", "", "d e"]).good();
    assert_eq!(lines.lines().count(), 3);
    let refused = attentive(&["translate", "--model", &run, "--alignments", "a b"]);
    assert_eq!(refused.code, 2, "{refused:?}");

    let src = folder.file("test.src", "a b c\nd e f\n");
    let evaluated = attentive(&[
        "evaluate", "--model", &run, "--src", &src, "--ref", &src, "--json",
    ]);
    let scores: Value = serde_json::from_str(&evaluated.good()).expect("JSON");
    assert!(scores["perplexity"].as_f64().expect("a number") > 1.0);

    let map = attentive(&["attention", "--model", &run, "a b c", "--format", "json"]).good();
    assert!(map.contains("cross"), "{map}");
    let info = attentive(&["info", &run]).good();
    assert!(info.contains("recurrent"), "{info}");
}
