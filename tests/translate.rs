//! `attentive translate` and `attentive quantize` as a user meets them: long files, prefixes,
//! alignments, small models, and directories that are not what they should be.

mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use program::{Folder, attentive, attentive_reading, command};

/// A run that has learnt to copy, trained once for all tests of this file.
fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| program::copying_run("translate"))
}

/// The same model in int8, made once.
fn int8() -> &'static str {
    static INT8: OnceLock<String> = OnceLock::new();
    INT8.get_or_init(|| {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("translate-int8");
        let _ = fs::remove_dir_all(&out);
        let out = out.to_str().expect("a plain name").to_owned();
        attentive(&["quantize", run(), "--out", &out]).good();
        out
    })
}

fn translate(model: &str, arguments: &[&str]) -> String {
    attentive(&[&["translate", "--model", model], arguments].concat()).good()
}

fn json_lines(output: &str) -> Vec<Value> {
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// So many lines of letters that the model has learnt.
fn letters(lines: usize) -> String {
    let letter = |place: usize| char::from(b'a' + (place % 8) as u8);
    (0..lines)
        .map(|i| {
            let words: Vec<String> = (0..2 + i % 4)
                .map(|word| letter(i * 5 + word * (i % 7 + 1)).to_string())
                .collect();
            words.join(" ") + "\n"
        })
        .collect()
}

#[test]
fn neither_threads_nor_batches_nor_the_order_of_lines_change_a_translation() {
    let input = letters(600);
    let with = |arguments: &[&str], input: &str| {
        let arguments = [&["translate", "-m", run(), "--json"], arguments].concat();
        json_lines(&attentive_reading(&arguments, input.as_bytes()).good())
    };
    let expected = with(&["--threads", "1"], &input);
    for arguments in [
        &["--threads", "2"][..],
        &["--threads", "3", "--batch-size", "7"],
        &["--batch-size", "1"],
        &["--batch-tokens", "20"],
        &["--unbuffered"],
    ] {
        assert_eq!(with(arguments, &input), expected, "{arguments:?}");
    }
    let backwards: String = input.lines().rev().map(|l| l.to_owned() + "\n").collect();
    let mut found = with(&["--threads", "2"], &backwards);
    found.reverse();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found["score"], expected["score"], "{}", expected["source"]);
        assert_eq!(found["text"], expected["text"]);
    }
}

#[test]
fn long_input_streams_through_in_order() {
    let input = letters(20_000);
    let arguments = ["translate", "-m", int8(), "--beam", "1", "--threads", "2"];
    let output = attentive_reading(&arguments, input.as_bytes()).good();
    assert_eq!(output.lines().count(), 20_000);
    let right = output.lines().zip(input.lines()).filter(|(a, b)| a == b);
    let right = right.count();
    assert!(right >= 18_000, "only {right} of 20000 lines are right");
}

/// The outputs of eight shards, one after the other.
fn joined(arguments: &[&str]) -> String {
    let shards = (1..=8).map(|number| {
        let shard = format!("{number}/8");
        translate(run(), &[arguments, &["--shard", &shard]].concat())
    });
    shards.collect()
}

#[test]
fn the_outputs_of_all_shards_are_what_one_process_writes() {
    let folder = Folder::new();
    let text = letters(300);
    let plain = folder.file("in.src", &text);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).expect("memory");
    let gzip = folder.file("in.src.gz", gzip.finish().expect("memory"));
    let prefixes = folder.file("prefixes", "b\n\n".repeat(150));
    for arguments in [
        &["-i", &plain][..],
        &["-i", &gzip],
        &["-i", &plain, "--json"],
        &["-i", &gzip, "--alternatives", "2"],
        &["-i", &plain, "--prefix-file", &prefixes, "--json"],
    ] {
        let whole = translate(run(), arguments);
        assert!(whole.lines().count() >= 300);
        assert_eq!(joined(arguments), whole, "{arguments:?}");
    }
    // More shards than lines: some have nothing to do.
    let few = folder.file("few.src", "a b\n\nc d");
    assert_eq!(joined(&["-i", &few]), translate(run(), &["-i", &few]));
    let nothing = folder.file("nothing.src", "");
    assert_eq!(joined(&["-i", &nothing]), "");
}

#[test]
fn a_shard_that_was_killed_leaves_no_output_and_is_run_again() {
    let folder = Folder::new();
    let input = folder.file("in.src", letters(20_000));
    let output = |number: usize| folder.path(&format!("out/{number}"));
    let begin = |number: usize| {
        let (shard, output) = (format!("{number}/8"), output(number));
        command(&[
            "translate",
            "-m",
            run(),
            "--shard",
            &shard,
            "-i",
            &input,
            "-o",
            &output,
        ])
        .spawn()
        .expect("the binary starts")
    };
    let mut killed = begin(3);
    let unfinished =
        || fs::read_dir(folder.path("out")).is_ok_and(|mut files| files.next().is_some());
    while !unfinished() {
        std::thread::yield_now();
    }
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    assert!(!Path::new(&output(3)).exists());

    for number in 1..=8 {
        assert!(begin(number).wait().expect("it ends").success());
    }
    let parts = (1..=8).map(|number| fs::read_to_string(output(number)).expect("written"));
    let joined: String = parts.collect();
    assert!(joined == translate(run(), &["-i", &input]));
}

#[test]
fn a_shard_of_what_cannot_be_cut_is_refused() {
    let folder = Folder::new();
    let text = folder.file("in.src", "a b\n");
    let translate =
        |arguments: &[&str]| attentive(&[&["translate", "-m", run()], arguments].concat());
    for wrong in ["0/2", "3/2", "x"] {
        translate(&["--shard", wrong, "-i", &text]).bad(2, &["--shard"]);
    }
    translate(&["--shard", "1/2", "a b"]).bad(2, &["--shard"]);
    translate(&["--shard", "1/2"]).bad(2, &["--input"]);
    translate(&["--shard", "1/2", "-i", "-"]).bad(2, &["--shard needs a file"]);
    translate(&["--shard", "1/2", "-i", &text, "--unbuffered"]).bad(2, &["--unbuffered"]);
    let wrapped = folder.file("in.txt", "a b\n");
    let paragraphs = ["--shard", "1/2", "-i", &wrapped];
    translate(&paragraphs).bad(2, &["paragraphs", "--wrapped lines"]);
    translate(&[&paragraphs[..], &["--wrapped", "lines"]].concat()).good();
    let page = folder.file("in.html", "<p>a b</p>");
    translate(&["--shard", "1/2", "-i", &page]).bad(2, &["--shard", "a document"]);
}

#[test]
fn a_prefix_starts_every_translation_or_its_own() {
    let all = translate(run(), &["--prefix", "c", "a b", "d e f"]);
    assert!(all.lines().all(|line| line.starts_with("c ")), "{all}");

    let folder = Folder::new();
    let prefixes = folder.file("prefixes", "b\n\nc c\n");
    let own = translate(
        run(),
        &["--prefix-file", &prefixes, "a b c", "d e", "f g a"],
    );
    let own: Vec<&str> = own.lines().collect();
    assert!(own[0].starts_with("b "), "{own:?}");
    assert_eq!(own[1], "d e");
    assert!(own[2].starts_with("c c"), "{own:?}");

    let few = ["translate", "-m", run(), "--prefix-file", &prefixes];
    attentive(&[&few[..], &["a", "b", "c", "d"]].concat())
        .bad(1, &["prefixes has 3 lines", "the input has more"]);
    attentive(&[&few[..], &["--prefix", "x", "a"]].concat()).bad(2, &["--prefix"]);
}

#[test]
fn alignments_link_the_words_that_were_copied() {
    let plain = translate(run(), &["--alignments", "a b c", ""]);
    let lines: Vec<&str> = plain.lines().collect();
    let (text, links) = lines[0].split_once(" ||| ").expect("links");
    assert_eq!(text, "a b c");
    let links: Vec<&str> = links.split(' ').collect();
    assert!(links.len() >= 3, "{links:?}");
    for target in 0..3 {
        let ending = format!("-{target}");
        assert!(
            links.iter().any(|link| link.ends_with(&ending)),
            "{links:?}"
        );
    }
    assert_eq!(lines[1], "");

    let found = json_lines(&translate(run(), &["--alignments", "--json", "a b c"]));
    let expected: Vec<Value> = links
        .iter()
        .map(|link| {
            let (src, tgt) = link.split_once('-').expect("a link");
            let number = |text: &str| text.parse::<usize>().expect("a number");
            json!([number(src), number(tgt)])
        })
        .collect();
    assert_eq!(found[0]["alignment"], json!(expected));
    let without = json_lines(&translate(run(), &["--json", "a b c"]));
    assert!(without[0].get("alignment").is_none());
}

#[test]
fn the_longest_output_can_be_set() {
    let ran = attentive(&["translate", "-m", run(), "--max-length", "2", "a b c d"]);
    assert!(ran.stderr.contains("1 output was cut"), "{ran:?}");
    assert_eq!(ran.good(), "a b\n");
}

#[test]
fn a_quantized_model_is_smaller_and_says_the_same() {
    let size = |model: &str| {
        let file = Path::new(model).join("model.safetensors");
        fs::metadata(file).expect("there").len()
    };
    let original = format!("{}/last", run());
    assert!(size(int8()) * 2 < size(&original));
    let input = letters(200);
    let with = |arguments: &[&str]| {
        let arguments = [&["translate"], arguments].concat();
        attentive_reading(&arguments, input.as_bytes()).good()
    };
    let expected = with(&["-m", run()]);
    for arguments in [
        &["-m", int8()][..],
        &["-m", int8(), "--compute", "int8"],
        &["-m", run(), "--compute", "int8"],
    ] {
        let found = with(arguments);
        let same = found.lines().zip(expected.lines()).filter(|(a, b)| a == b);
        let same = same.count();
        assert!(same >= 190, "{arguments:?}: {same} of 200 are the same");
    }
    assert_eq!(
        with(&["-m", int8()]),
        with(&["-m", run(), "--compute", "int8"])
    );
}

#[test]
fn quantizing_reports_sizes_and_replaces_nothing() {
    let folder = Folder::new();
    let out = folder.path("small");
    let report = attentive(&["quantize", run(), "--out", &out, "--json"]).good();
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let number = |key: &str| report[key].as_u64().expect("a number");
    assert!(number("bytes_after") < number("bytes_before"));
    assert!(number("quantized") > 0);

    attentive(&["quantize", run(), "--out", &out]).bad(1, &["small", "exists already"]);
    attentive(&["quantize", &out, "--out", &folder.path("again")]).bad(1, &["int8 already"]);
    attentive(&["quantize", &folder.path("no"), "--out", &folder.path("x")]).bad(1, &["no"]);
    assert!(!Path::new(&folder.path("x")).exists());

    let text = attentive(&["quantize", run(), "-o", &folder.path("two")]).good();
    assert!(text.contains("times smaller"), "{text}");
}

#[test]
fn int8_weights_are_not_taken_for_others() {
    attentive(&["translate", "-m", int8(), "--compute", "f32", "a"]).bad(1, &["int8"]);
    attentive(&["translate", "-m", int8(), "--compute", "fp16", "a"]).bad(2, &["fp16", "int8"]);
}

/// A copy of the model with its weights file changed.
fn changed(folder: &Folder, change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> String {
    let out = folder.path("changed");
    fs::create_dir(&out).expect("new");
    for entry in fs::read_dir(format!("{}/last/", run())).expect("a model") {
        let path = entry.expect("readable").path();
        fs::copy(
            &path,
            Path::new(&out).join(path.file_name().expect("a name")),
        )
        .expect("copied");
    }
    let file = format!("{out}/model.safetensors");
    let bytes = fs::read(&file).expect("there");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    let mut header = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let mut values = bytes[8 + length..].to_vec();
    change(&mut header, &mut values);
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    fs::write(file, bytes).expect("written");
    out
}

const TENSOR: &str = "decoder.layers.0.feed_forward.inner.weight";

#[test]
fn a_missing_tensor_is_named() {
    let folder = Folder::new();
    let model = changed(&folder, |header, _| {
        // Under another name, so that the file is sound otherwise.
        let tensors = header.as_object_mut().expect("an object");
        let tensor = tensors.remove(TENSOR).expect("there");
        tensors.insert("other".to_owned(), tensor);
    });
    for command in [
        &["translate", "a b", "-m", &model][..],
        &["quantize", &model, "--out", &folder.path("q")],
    ] {
        attentive(command).bad(1, &[TENSOR, "model.safetensors"]);
    }
    assert!(!Path::new(&folder.path("q")).exists());
}

#[test]
fn a_misshapen_tensor_is_named_with_both_shapes() {
    let folder = Folder::new();
    let model = changed(&folder, |header, _| {
        let shape = &mut header[TENSOR]["shape"];
        *shape = json!([shape[1], shape[0]]);
    });
    let ran = attentive(&["translate", "a b", "-m", &model]);
    ran.bad(1, &[TENSOR, "[64, 32]", "[32, 64]"]);
}

#[test]
fn a_truncated_file_is_damaged_whatever_its_numbers() {
    let folder = Folder::new();
    let model = changed(&folder, |_, values| values.truncate(values.len() / 2));
    attentive(&["translate", "a b", "-m", &model]).bad(1, &["model.safetensors", "damaged"]);
    let copy = folder.path("int8");
    attentive(&["quantize", run(), "--out", &copy]).good();
    let file = format!("{copy}/model.safetensors");
    let bytes = fs::read(&file).expect("there");
    fs::write(&file, &bytes[..bytes.len() - 100]).expect("written");
    attentive(&["translate", "a b", "-m", &copy]).bad(1, &["model.safetensors", "damaged"]);
}

#[test]
fn weights_of_nan_are_reported_and_no_panic() {
    let folder = Folder::new();
    let model = changed(&folder, |_, values| {
        values.as_chunks_mut().0.fill(f32::NAN.to_le_bytes());
    });
    for compute in ["f32", "int8"] {
        let ran = attentive(&["translate", "a b", "-m", &model, "--compute", compute]);
        assert!(ran.stderr.contains("diverged"), "{compute}: {ran:?}");
        assert_eq!(ran.good().lines().count(), 1);
    }
}

#[test]
fn lines_before_an_unreadable_one_are_answered() {
    let ran = attentive_reading(&["translate", "-m", run()], b"a b\nc d\n\xff\ne f\n");
    ran.bad(1, &["line 3", "UTF-8"]);
    assert_eq!(ran.stdout, "a b\nc d\n");
}

#[test]
fn a_line_of_twenty_thousand_tokens_is_translated_in_pieces() {
    let line = "a b c d ".repeat(5000);
    let arguments = [
        "translate",
        "-m",
        int8(),
        "--beam",
        "1",
        "--max-length",
        "99",
    ];
    let short = [&arguments[..], &["--max-source-length", "5"]].concat();
    let ran = attentive_reading(&short, format!("{line}\na b\n").as_bytes());
    assert!(!ran.stderr.contains("too long"), "{ran:?}");
    let found = ran.good();
    let mut lines = found.lines();
    assert!(
        lines
            .next()
            .is_some_and(|found| found.trim() == line.trim())
    );
    assert_eq!(lines.next(), Some("a b"));

    let whole = [&arguments[..], &["--max-source-length", "20001"]].concat();
    let ran = attentive_reading(&whole, line.as_bytes());
    assert_eq!(ran.good().lines().count(), 1);
}

#[test]
fn a_shortlist_of_the_corpus_changes_no_copy_and_a_wrong_file_is_named() {
    let folder = Folder::new();
    let (src, tgt) = (
        folder.file("a.src", letters(300)),
        folder.file("a.tgt", letters(300)),
    );
    let list = folder.path("a.shortlist");
    let learn = [
        "shortlist",
        "--model",
        run(),
        "--src",
        &src,
        "--tgt",
        &tgt,
        "--out",
        &list,
        "--best",
        "3",
    ];
    let report = attentive(&learn).good();
    assert!(report.contains("a.shortlist"), "{report}");
    for model in [run(), int8()] {
        let plain = translate(model, &["-i", &src]);
        assert_eq!(translate(model, &["-i", &src, "--shortlist", &list]), plain);
    }
    let broken = folder.file("broken", "no shortlist");
    attentive(&["translate", "-m", run(), "--shortlist", &broken, "a b"])
        .bad(1, &["broken", "attentive shortlist"]);
    attentive(&[
        "shortlist",
        "--model",
        run(),
        "--src",
        &src,
        "--tgt",
        "none",
        "--out",
        &list,
    ])
    .bad(1, &["none"]);
    assert!(Path::new(&list).exists(), "what was there stays");
}

#[test]
fn a_draft_changes_no_translation_and_needs_greedy_search() {
    for lines in [&["a b c d"][..], &["a b", "c d e f g", "h a"]] {
        let plain = translate(int8(), &[lines, &["--beam", "1", "--scores"]].concat());
        let draft = ["--beam", "1", "--scores", "--draft", run()];
        assert_eq!(translate(int8(), &[lines, &draft].concat()), plain);
    }
    attentive(&[
        "translate",
        "-m",
        int8(),
        "--draft",
        run(),
        "--beam",
        "4",
        "a b",
    ])
    .bad(2, &["--beam 1"]);
    attentive(&[
        "translate",
        "-m",
        int8(),
        "--draft",
        "de-en",
        "--beam",
        "1",
        "a b",
    ])
    .bad(1, &["de-en"]);
}

#[test]
fn an_unknown_instruction_set_is_refused_with_those_that_are_there() {
    let mut command = program::command(&["translate", "-m", int8(), "a b"]);
    let output = command
        .env("ATTENTIVE_ISA", "mmx")
        .output()
        .expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{message}");
    assert!(
        message.contains("mmx") && message.contains("scalar"),
        "{message}"
    );
    let mut command = program::command(&["translate", "-m", int8(), "a b"]);
    let output = command
        .env("ATTENTIVE_ISA", "scalar")
        .output()
        .expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        translate(int8(), &["a b"])
    );
}
