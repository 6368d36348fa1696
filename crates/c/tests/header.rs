//! The header that is committed is the one that the code has.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_current() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("a sound file");
    let made = cbindgen::Builder::new()
        .with_crate(here)
        .with_config(config)
        .generate()
        .expect("a header");
    let mut header = Vec::new();
    made.write(&mut header);
    let header = String::from_utf8(header).expect("UTF-8");
    let path = here.join("include/attentive.h");
    if std::env::var_os("ATTENTIVE_WRITE_HEADER").is_some() {
        fs::write(&path, &header).expect("written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == header,
        "{} is not current: ATTENTIVE_WRITE_HEADER=1 cargo test -p attentive-c writes it",
        path.display()
    );
}
