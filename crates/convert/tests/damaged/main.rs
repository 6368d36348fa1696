//! Damaged and hostile files: every reader gives a typed error or reads correctly, never panics, executes nothing,
//! and takes at most twice the size of the file and 16 MB of memory.
//!
//! Here the files of `tests/fixtures` are damaged at random, always in the same way; [`hostile`] makes files that
//! are bad on purpose. [`vocabularies`] and [`folders`] damage what lies beside weights, and import whole models.

mod allocation;
mod folders;
mod hostile;
mod hostile_pickles;
mod reader;
mod vocabularies;

use std::env;
use std::fs;
use std::ops::Range;
use std::path::Path;

use attentive_convert::error::ConvertError;
use reader::{Attempts, Reader};

/// How many damaged files each reader is given.
const FILES: usize = 500;

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The kinds of damage, in turn.
const KINDS: [&str; 8] = [
    "truncated",
    "bits flipped",
    "absurd 32-bit number",
    "absurd 64-bit number",
    "bytes at the beginning changed",
    "part removed",
    "part repeated",
    "noise at the end",
];

fn damage(kind: usize, random: &mut Random, file: &mut Vec<u8>) {
    const ABSURD: [u64; 6] = [
        u64::MAX,
        0x7fff_ffff_7fff_ffff,
        1 << 63 | 1 << 31,
        0x4000_0000_4000_0000,
        0,
        0x0100_0000_0100_0000,
    ];
    let at = random.below(file.len());
    match KINDS[kind] {
        "truncated" => file.truncate(at),
        "bits flipped" => {
            for _ in 0..=random.below(8) {
                let at = random.below(file.len());
                file[at] ^= 1 << random.below(8);
            }
        }
        "absurd 32-bit number" | "absurd 64-bit number" => {
            let bytes = ABSURD[random.below(ABSURD.len())].to_le_bytes();
            let width = if kind == 2 { 4 } else { 8 };
            let width = width.min(file.len() - at);
            file[at..at + width].copy_from_slice(&bytes[..width]);
        }
        "bytes at the beginning changed" => {
            for _ in 0..=random.below(4) {
                let at = random.below(file.len().min(256));
                file[at] = random.next() as u8;
            }
        }
        "part removed" => {
            let end = (at + 1 + random.below(64)).min(file.len());
            file.drain(at..end);
        }
        "part repeated" => {
            let end = (at + 1 + random.below(64)).min(file.len());
            let part = file[at..end].to_vec();
            file.splice(at..at, part);
        }
        _ => file.extend((0..=random.below(64)).map(|_| random.next() as u8)),
    }
}

/// Damages the fixtures in turn, and says how many of the files were refused.
fn damaged_files(reader: Reader, fixtures: &[&str]) {
    let attempts = Attempts::new();
    let mut random = Random(17);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files: Vec<Vec<u8>> = fixtures
        .iter()
        .map(|name| fs::read(folder.join(name)).expect("the fixture is there"))
        .collect();
    for (name, file) in fixtures.iter().zip(&files) {
        let (result, _) = attempts.read(name, reader, file);
        assert!(result.is_ok(), "{name} as it is was refused");
    }
    let mut refused = 0;
    for number in 0..FILES {
        let which = number % files.len();
        let kind = number / files.len() % KINDS.len();
        let mut file = files[which].clone();
        damage(kind, &mut random, &mut file);
        let what = format!("{} number {number}: {}", fixtures[which], KINDS[kind]);
        let (result, _) = attempts.read(&what, reader, &file);
        if let Err(error) = &result {
            refused += 1;
            let typed = !matches!(error, ConvertError::Io { .. });
            assert!(typed, "{what}: {error}");
        }
        let visible = ["truncated", "noise at the end"].contains(&KINDS[kind]);
        assert!(!visible || result.is_err(), "{what}: it was accepted");
    }
    assert!(attempts.leftovers().is_empty());
    // What is changed inside of numbers or of dates cannot be seen, but most changes can.
    assert!(
        refused * 2 > FILES,
        "only {refused} of {FILES} were refused"
    );
}

#[test]
fn damaged_safetensors_are_refused_or_read() {
    damaged_files(reader::safetensors, &["every_type.safetensors"]);
}

#[test]
fn damaged_pytorch_archives_are_refused_or_read() {
    let fixtures = ["torch_zip.bin", "fairseq_zip.pt", "torch_protocol5.bin"];
    damaged_files(reader::torch, &fixtures);
}

#[test]
fn damaged_pytorch_streams_are_refused_or_read() {
    damaged_files(reader::torch, &["torch_stream.bin", "fairseq_stream.pt"]);
}

#[test]
fn damaged_numpy_archives_are_refused_or_read() {
    damaged_files(reader::npz, &["stored.npz", "deflated.npz", "zip64.npz"]);
}

#[test]
fn damaged_marian_files_are_refused_or_read() {
    let fixtures = [
        "marian.bin",
        "bergamot.bin",
        "intgemm.bin",
        "bergamot.bin.gz",
    ];
    damaged_files(reader::marian, &fixtures);
}

#[test]
fn damaged_ctranslate2_models_are_refused_or_read() {
    let fixtures = [
        "ct2_v1.bin",
        "ct2_v2.bin",
        "ct2_v3.bin",
        "ct2_v4.bin",
        "ct2_v5.bin",
        "ct2_v6.bin",
    ];
    damaged_files(reader::ctranslate2, &fixtures);
}

#[test]
fn damaged_shortlists_are_refused_or_read() {
    damaged_files(reader::shortlist, &["lex.s2t.bin", "lex.s2t.bin.gz"]);
}

/// Flips every bit of a part of a file. What is read must be what was there: a packed file can say the same in
/// several ways.
fn flipped_bits(reader: Reader, fixture: &str, part: fn(&[u8]) -> Range<usize>) {
    let attempts = Attempts::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = path.join(fixture);
    let original = reader(&path).expect("the fixture is valid");
    let mut file = fs::read(&path).expect("the fixture is there");
    let (mut refused, mut all) = (0, 0);
    for at in part(&file) {
        for bit in 0..8 {
            file[at] ^= 1 << bit;
            let what = format!("{fixture}: bit {bit} of byte {at} flipped");
            match attempts.read(&what, reader, &file).0 {
                Ok(contents) => assert!(contents.equals(&original), "{what}: it was accepted"),
                Err(_) => refused += 1,
            }
            file[at] ^= 1 << bit;
            all += 1;
        }
    }
    assert!(
        refused * 20 > all * 19,
        "{fixture}: {refused} of {all} were refused"
    );
}

#[test]
fn a_single_flipped_bit_is_found_where_the_format_has_a_checksum() {
    // Of five ids, the last is not part of the checksum.
    flipped_bits(reader::shortlist, "lex.s2t.bin", |file| 0..file.len() - 4);
    // The header of gzip has ten bytes, some of which are for a date and a name.
    flipped_bits(reader::shortlist, "lex.s2t.bin.gz", |file| 10..file.len());
    flipped_bits(reader::marian, "bergamot.bin.gz", |file| 10..file.len());
    let first_array = |file: &[u8]| {
        let magic = file.windows(6).position(|bytes| bytes == b"\x93NUMPY");
        let start = magic.expect("an array");
        start..start + 128 + 48
    };
    flipped_bits(reader::npz, "stored.npz", first_array);
    // Behind the first header of an entry and its name: deflated data.
    flipped_bits(reader::npz, "deflated.npz", |_| 64..140);
}

#[test]
fn real_models_stay_in_their_files() {
    let Some(models) = env::var_os("ATTENTIVE_MODELS") else {
        eprintln!("SKIPPED: set ATTENTIVE_MODELS to a folder of models");
        return;
    };
    let files: [(Reader, &str); 3] = [
        (reader::npz, "marian-multi30k-de-en/model.npz"),
        (
            reader::marian,
            "bergamot-enpt-tiny/model.enpt.intgemm.alphas.bin",
        ),
        (reader::safetensors, "fairseq-latin2nqo/model.safetensors"),
    ];
    for (reader, name) in files {
        let path = Path::new(&models).join(name);
        let (result, peak) = allocation::peak(|| reader(&path));
        result.expect("the model is valid");
        assert!(peak < 200_000, "{name}: {peak} bytes of memory");
    }
}
