//! Files that are bad on purpose: bombs, directories that lie, headers that promise too much.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use crate::reader::{self, Attempts};

/// One entry of an archive as it is written, right or wrong.
struct Entry<'a> {
    name: &'a str,
    data: &'a [u8],
    method: u16,
    size: u32,
}

/// An archive of entries that are not compressed.
pub fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<_> = entries
        .iter()
        .map(|&(name, data)| Entry {
            name,
            data,
            method: 0,
            size: data.len() as u32,
        })
        .collect();
    archive(&entries)
}

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut fields = vec![20, 0, 0, 0];
        fields.extend(entry.method.to_le_bytes());
        fields.extend([0; 4]);
        fields.extend([0; 4]);
        fields.extend((entry.data.len() as u32).to_le_bytes());
        fields.extend(entry.size.to_le_bytes());
        fields.extend((entry.name.len() as u16).to_le_bytes());
        fields.extend([0; 2]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend((file.len() as u32).to_le_bytes());
        directory.extend(entry.name.as_bytes());
        file.extend(b"PK\x03\x04");
        file.extend(fields);
        file.extend(entry.name.as_bytes());
        file.extend(entry.data);
    }
    let start = file.len() as u32;
    file.extend(&directory);
    end(
        &mut file,
        entries.len() as u16,
        directory.len() as u32,
        start,
    );
    file
}

fn end(file: &mut Vec<u8>, count: u16, size: u32, start: u32) {
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend(size.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn zip_bombs_are_refused() {
    let attempts = Attempts::new();
    let bomb = deflate(&vec![0; 50 << 20]);
    for (what, size) in [
        ("a bomb that says its size", 50 << 20),
        ("a bomb that says less", 1000),
        ("a bomb that says a little less", (50 << 20) - 1),
        ("a bomb that says 4 GB", u32::MAX - 1),
        ("a bomb that says nothing", 0),
    ] {
        let entry = |name| Entry {
            name,
            data: &bomb,
            method: 8,
            size,
        };
        attempts.refuse(what, reader::npz, &archive(&[entry("w.npy")]));
        let torch = archive(&[entry("archive/data.pkl")]);
        attempts.refuse(what, reader::torch, &torch);
    }
    // Each fits, all of them do not.
    let part = deflate(&vec![0; 5 << 20]);
    let names: Vec<String> = (0..10).map(|number| format!("{number}.npy")).collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| Entry {
            name,
            data: &part,
            method: 8,
            size: 5 << 20,
        })
        .collect();
    attempts.refuse("many bombs", reader::npz, &archive(&entries));
}

#[test]
fn archives_that_lie_are_refused() {
    let attempts = Attempts::new();
    let mut overlapping = vec![0; 1 << 20];
    let mut directory = Vec::new();
    let count = 60_000u16;
    for number in 0..count {
        directory.extend(b"PK\x01\x02\x14\x00\x14\x00\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend((1u32 << 20).to_le_bytes().repeat(2));
        directory.extend(b"\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend(format!("{number:05}.npy").as_bytes());
    }
    let start = overlapping.len() as u32;
    overlapping.extend(&directory);
    end(&mut overlapping, count, directory.len() as u32, start);
    let message = attempts.refuse("60000 entries in one place", reader::npz, &overlapping);
    assert!(
        message.contains("entries that fit into the file"),
        "{message}"
    );

    let encrypted = archive(&[Entry {
        name: "w.npy",
        data: &[],
        method: 99,
        size: 0,
    }]);
    let message = attempts.refuse("an unknown method", reader::npz, &encrypted);
    assert!(message.contains("compression method 99"), "{message}");
    let other = zip(&[("readme.txt", b"hello")]);
    attempts.refuse("another archive", reader::torch, &other);
    attempts.refuse("another archive", reader::npz, &other);
    let twice = zip(&[("w.npy", b"a"), ("w.npy", b"b")]);
    attempts.refuse("a name twice", reader::npz, &twice);
    let big_endian = zip(&[("a/data.pkl", b"}."), ("a/byteorder", b"big")]);
    let message = attempts.refuse("big endian", reader::torch, &big_endian);
    assert!(message.contains("big-endian"), "{message}");
}

#[test]
fn gzip_bombs_are_refused() {
    let attempts = Attempts::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![0; 50 << 20]).expect("memory");
    let mut bomb = encoder.finish().expect("memory");
    for size in [50u32 << 20, 1000, u32::MAX, 0] {
        let end = bomb.len() - 4;
        bomb[end..].copy_from_slice(&size.to_le_bytes());
        attempts.refuse("a gzip bomb", reader::marian, &bomb);
        attempts.refuse("a gzip bomb", reader::shortlist, &bomb);
    }
}

fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(vec![0; data]);
    file
}

#[test]
fn safetensors_with_absurd_headers_are_refused() {
    let attempts = Attempts::new();
    let shape = |shape: &str, from: u64, to: u64| {
        format!(r#""w":{{"dtype":"U8","shape":[{shape}],"data_offsets":[{from},{to}]}}"#)
    };
    let refuse = |what: &str, header: &str| {
        let file = safetensors(&format!("{{{header}}}"), 4);
        attempts.refuse(what, reader::safetensors, &file)
    };
    refuse(
        "a dimension too many",
        &shape("1,".repeat(500_000).trim_end_matches(','), 0, 1),
    );
    refuse("a gap before the tensor", &shape("3", 1, 4));
    refuse("a gap behind the tensor", &shape("3", 0, 3));
    refuse("a tensor beyond the file", &shape("5", 0, 5));
    refuse(
        "a size that overflows",
        &shape("9223372036854775807,4", 0, 4),
    );
    refuse("offsets in reverse", &shape("4", 4, 0));
    refuse(
        "a name twice",
        &format!("{},{}", shape("4", 0, 4), shape("4", 0, 4)),
    );
    let message = refuse(
        "an unknown type",
        &shape("4", 0, 4).replace("U8", "F8_E4M3"),
    );
    assert!(
        message.contains("tensor `w`") && message.contains("F8_E4M3"),
        "{message}"
    );
    // Sizes that fit each, but whose sum and the header together do not fit into 64 bits.
    let eighth = (1u64 << 61) - 1;
    let sums: Vec<String> = (0..9u64)
        .map(|part| {
            let size = if part < 8 { eighth } else { 7 };
            let tensor = shape(&size.to_string(), eighth * part, eighth * part + size);
            tensor.replacen('w', &format!("w{part}"), 1)
        })
        .collect();
    refuse("a sum that overflows", &sums.join(","));
    let deep = format!(r#""__metadata__":{}"#, "[".repeat(900_000));
    refuse("notes nested without end", &deep);
    let many: Vec<String> = (0..18_000)
        .map(|number| shape("0", 4, 4).replacen('w', &format!("{number:x}"), 1))
        .collect();
    refuse("tensors of nothing", &many.join(","));
    let notes: Vec<String> = (0..100_000)
        .map(|number| format!(r#""{number:x}":"""#))
        .collect();
    let notes = format!(
        r#""__metadata__":{{{}}},{}"#,
        notes.join(","),
        shape("4", 0, 4)
    );
    let file = safetensors(&format!("{{{notes}}}"), 4);
    let (result, _) = attempts.read("many notes", reader::safetensors, &file);
    result.expect("notes are stepped over");
    let dimensions = "1,".repeat(4_000_000);
    refuse(
        "a header of 8 MB",
        &shape(dimensions.trim_end_matches(','), 0, 1),
    );
}

#[test]
fn lists_of_tensors_that_promise_too_much_are_refused() {
    let attempts = Attempts::new();
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    for count in [1, 2, 1 << 20, u64::MAX / 32, u64::MAX] {
        for size in [0, 1, 1 << 40, u64::MAX] {
            let marian = words(&[1, count, size, 0x404, 1, size, 4, 0x404, size, 4]);
            attempts.refuse("a Marian file", reader::marian, &marian);
            let list = words(&[0xf11a_48d5_0134_17f5, 0, 50, 50, size, count]);
            attempts.refuse("a shortlist", reader::shortlist, &list);
        }
    }
    // Many tensors of nothing: what each of them takes in memory counts.
    let mut ctranslate2 = 6u32.to_le_bytes().to_vec();
    ctranslate2.extend(b"\x02\0T\0\x01\0\0\0");
    ctranslate2.extend(500_000u32.to_le_bytes());
    let mut marian = words(&[1, 100_000]);
    for number in 0..500_000u32 {
        ctranslate2.extend(b"\x06\0");
        ctranslate2.extend(format!("{number:05x}\0").as_bytes());
        ctranslate2.extend(b"\x01\0\0\0\0\0\0\0\0\0");
    }
    ctranslate2.extend([0; 4]);
    for _ in 0..100_000 {
        marian.extend(words(&[6, 0x4101, 2, 5]));
    }
    for number in 0..100_000 {
        marian.extend(format!("{number:05x}\0").as_bytes());
    }
    marian.extend(words(&[0]).repeat(100_000));
    marian.extend(words(&[0]));
    marian.extend(b"\0\0\x80\x3f\0".repeat(100_000));
    attempts.refuse("500000 variables", reader::ctranslate2, &ctranslate2);
    attempts.refuse("100000 tensors", reader::marian, &marian);
}

#[test]
fn large_data_stays_in_the_file() {
    let attempts = Attempts::new();
    let size = 20 << 20;
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}}}"#);
    let file = safetensors(&header, size);
    let (result, peak) = attempts.read("20 MB", reader::safetensors, &file);
    result.expect("valid");
    assert!(peak < 100_000, "{peak} bytes for a file that is mapped");
}
