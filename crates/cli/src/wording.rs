//! Numbers the way people read them, by indicatif, and words the way shells do.

use indicatif::{DecimalBytes, HumanCount};

/// `12,345,678`
pub fn count(number: usize) -> String {
    HumanCount(number as u64).to_string()
}

/// `1 line`, `12 lines`
pub fn plural(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}

/// `00:01:05`
#[cfg(feature = "training")]
pub fn duration(seconds: f64) -> String {
    // What no duration can be (NaN, infinity) is shown as none.
    let rounded = std::time::Duration::try_from_secs_f64(seconds.round().max(0.0));
    indicatif::FormattedDuration(rounded.unwrap_or_default()).to_string()
}

/// `512 B`, `1.50 MB`
pub fn bytes(number: u64) -> String {
    DecimalBytes(number).to_string()
}

/// A word as a shell needs it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(plural(1, "line", "lines"), "1 line");
        assert_eq!(plural(0, "line", "lines"), "0 lines");
        #[cfg(feature = "training")]
        assert_eq!(
            [0.4, 65.0, f64::NAN, f64::INFINITY].map(duration),
            ["00:00:00", "00:01:05", "00:00:00", "00:00:00"]
        );
        assert_eq!([512, 1_550_000].map(bytes), ["512 B", "1.55 MB"]);
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("runs/a-b.c"), "runs/a-b.c");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
