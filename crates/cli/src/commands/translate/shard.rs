//! `--shard K/N`: one of N contiguous parts of a file, for N processes that know nothing of each other.
//!
//! A line belongs to the part in which its first byte lies, when the text (unpacked, if it is gzip'd) is cut into N
//! parts of as many bytes: about as much work each, whatever the lengths of the lines. Every process finds the same
//! cuts, and since a translation depends on its line alone, the outputs in the order of the parts are byte by byte what
//! one process writes. Neighbor: [`super::input`] reads the lines of the part.

use std::path::Path;
use std::str::FromStr;

use attentive_text::TextError;
use attentive_text::lines::LineReader;

/// Part `number`, from 1, of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u64,
    count: u64,
}

/// The lines of one part of a file.
pub struct ShardLines {
    reader: LineReader,
    shard: Shard,
    total: u64,
    /// Lines of the file before the first one of this part.
    pub skipped: usize,
}

impl Shard {
    /// The lines of this part; the file is read once before, for its length.
    pub fn open(self, path: &Path) -> Result<ShardLines, TextError> {
        let mut whole = LineReader::open(path)?;
        while whole.next_bytes()?.is_some() {}
        let mut lines = ShardLines {
            total: whole.offset(),
            reader: LineReader::open(path)?,
            shard: self,
            skipped: 0,
        };
        while lines.place() < self.number && lines.reader.next_bytes()?.is_some() {
            lines.skipped += 1;
        }
        Ok(lines)
    }
}

impl ShardLines {
    /// About how many bytes of text the part has.
    pub fn bytes(&self) -> u64 {
        self.total / self.shard.count
    }

    /// The part that a line at the current place belongs to.
    fn place(&self) -> u64 {
        let (offset, total) = (u128::from(self.reader.offset()), u128::from(self.total));
        let place = offset * u128::from(self.shard.count) / total.max(1);
        u64::try_from(place).unwrap_or(u64::MAX).saturating_add(1)
    }
}

impl Iterator for ShardLines {
    type Item = Result<String, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place() == self.shard.number {
            self.reader.next()
        } else {
            None
        }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some((number.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        });
        match numbers {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Self { number, count }),
            Some((number, count)) => Err(format!(
                "there is no part {number} of {count}: parts are counted from 1 to {count}"
            )),
            None => Err("expected K/N, such as 3/8 for the third of eight parts".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shard(text: &str) -> Shard {
        text.parse().unwrap()
    }

    fn lines(path: &Path, number: u64, count: u64) -> (usize, Vec<String>) {
        let lines = Shard { number, count }.open(path).unwrap();
        (lines.skipped, lines.map(Result::unwrap).collect())
    }

    #[test]
    fn a_part_is_named_by_its_number_and_how_many_there_are() {
        let (number, count) = (3, 8);
        assert_eq!(shard("3/8"), Shard { number, count });
        for wrong in ["0/8", "9/8", "1/0"] {
            let message = wrong.parse::<Shard>().unwrap_err();
            assert!(message.contains("counted from 1"), "{message}");
        }
        for wrong in ["", "3", "a/b", "3/", "-1/2", "1/2/3"] {
            assert!(wrong.parse::<Shard>().unwrap_err().contains("K/N"));
        }
    }

    #[test]
    fn parts_have_about_as_many_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        let text: String = (0..1000).map(|i| "x".repeat(i % 90) + "\n").collect();
        std::fs::write(&path, &text).unwrap();
        for number in 1..=8 {
            let (_, part) = lines(&path, number, 8);
            let bytes: usize = part.iter().map(|line| line.len() + 1).sum();
            assert!(bytes.abs_diff(text.len() / 8) <= 90, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn parts_make_up_the_file_in_order(text in "[a\r\n\u{feff}]{0,60}", count in 1u64..9) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("text");
            std::fs::write(&path, &text).unwrap();
            let mut joined = Vec::new();
            for number in 1..=count {
                let (skipped, part) = lines(&path, number, count);
                prop_assert_eq!(skipped, joined.len());
                joined.extend(part);
            }
            prop_assert_eq!(joined, attentive_text::lines::read_lines(&path).unwrap());
        }
    }
}
