//! Lines of text out of files: plain or gzip'd UTF-8, or standard input.
//!
//! Gzip is recognized by its first two bytes and not by the file's name, so a renamed or piped file
//! works too; files made of several gzip members (`cat a.gz b.gz`) are read to their end.
//! Next on the data path: [`crate::parallel`] pairs lines, [`crate::tokenizer`] cuts them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use crate::error::{Result, TextError};

/// The character that some programs write before the first line of a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether a line holds nothing but white space: then there is nothing to learn from or to translate.
pub fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Reads all lines of a file, without their line ends (`\n` or `\r\n`); `-` is standard input.
pub fn read_lines(path: &Path) -> Result<Vec<String>> {
    LineReader::open(path)?.collect()
}

/// The lines of a file one at a time, for input that is larger than memory or never ends.
///
/// After the first error the iterator is finished.
pub struct LineReader {
    path: PathBuf,
    source: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    line: usize,
    offset: u64,
    finished: bool,
    taken: Arc<AtomicU64>,
    keeps_byte_order_mark: bool,
}

impl LineReader {
    /// Opens a plain or gzip'd file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::from_read(io::stdin(), Path::new("standard input"));
        }
        let cannot_open = |source| TextError::Open {
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(cannot_open)?;
        // Opening a folder succeeds on Unix; only reading it would fail, with a puzzling message.
        if file.metadata().map_err(cannot_open)?.is_dir() {
            return Err(cannot_open(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder",
            )));
        }
        Self::from_read(file, path)
    }

    /// Reads from any source; `name` stands for the file in errors.
    pub fn from_read(source: impl Read + Send + 'static, name: &Path) -> Result<Self> {
        let taken = Arc::new(AtomicU64::new(0));
        let mut source = Counted {
            source,
            taken: taken.clone(),
        };
        let head = head(&mut source).map_err(|source| TextError::Read {
            path: name.to_path_buf(),
            line: 1,
            source,
        })?;
        let is_gzip = head == GZIP_MAGIC;
        let whole = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(source));
        let source: Box<dyn BufRead + Send> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self {
            path: name.to_path_buf(),
            source,
            buffer: Vec::new(),
            line: 0,
            offset: 0,
            finished: false,
            taken,
            keeps_byte_order_mark: false,
        })
    }

    /// Leaves a [`BYTE_ORDER_MARK`] in the first line, where it is dropped otherwise.
    pub fn keeping_byte_order_mark(mut self) -> Self {
        self.keeps_byte_order_mark = true;
        self
    }

    /// How many bytes of the file were read so far, compressed as they are: what progress is told by.
    pub fn bytes_read(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Where the next line begins: bytes of the text, unpacked, line ends included.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line as it stands in the file, without its line end: whoever looks for damage takes lines that are
    /// not UTF-8 too.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>> {
        self.line += 1;
        self.buffer.clear();
        let count = self
            .source
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| TextError::Read {
                path: self.path.clone(),
                line: self.line,
                source,
            })?;
        self.offset += count as u64;
        Ok((count > 0).then(|| without_line_end(&self.buffer)))
    }

    fn read_line(&mut self) -> Result<Option<String>> {
        if self.next_bytes()?.is_none() {
            return Ok(None);
        }
        let line = self.line;
        let path = || self.path.clone();
        let bytes = without_line_end(&self.buffer);
        if bytes.contains(&0) {
            return Err(TextError::Binary { path: path(), line });
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if line == 1 && !self.keeps_byte_order_mark => {
                let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
                Ok(Some(text.to_owned()))
            }
            Ok(text) => Ok(Some(text.to_owned())),
            Err(error) => Err(TextError::NotUtf8 {
                path: path(),
                line,
                column: error.valid_up_to() + 1,
            }),
        }
    }
}

impl Iterator for LineReader {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.read_line().transpose();
        self.finished = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A source whose bytes are counted.
struct Counted<R> {
    source: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 1 << 16;

/// As many bytes as it takes to know gzip. A pipe may hand over one byte at a time, or wait for the
/// answer to a line that is one byte long, so the second is read only if the first can be gzip's.
fn head(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(GZIP_MAGIC.len());
    for expected in GZIP_MAGIC {
        source.by_ref().take(1).read_to_end(&mut head)?;
        if head.last() != Some(&expected) {
            break;
        }
    }
    Ok(head)
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(rest) => rest.strip_suffix(b"\r").unwrap_or(rest),
        None => bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines_of(bytes: &[u8]) -> Result<Vec<String>> {
        LineReader::from_read(Cursor::new(bytes.to_vec()), Path::new("in.txt"))?.collect()
    }

    fn message_of(bytes: &[u8]) -> String {
        lines_of(bytes)
            .expect_err("these lines should not be readable")
            .to_string()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn line_ends_are_stripped_and_nothing_else_is() {
        let lines = lines_of(b"a \n\r\nb\rc\r\n\n  \t\nlast\r").unwrap();
        assert_eq!(lines, ["a ", "", "b\rc", "", "  \t", "last\r"]);
    }

    #[test]
    fn the_last_line_needs_no_line_end() {
        assert_eq!(lines_of(b"a\nb").unwrap(), lines_of(b"a\nb\n").unwrap());
        assert_eq!(lines_of(b"").unwrap(), Vec::<String>::new());
        assert_eq!(lines_of(b"x").unwrap(), ["x"]);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_line() {
        assert_eq!(
            lines_of("\u{feff}a\n\u{feff}b".as_bytes()).unwrap(),
            ["a", "\u{feff}b"]
        );
        let bytes = Cursor::new("\u{feff}a\nb".as_bytes());
        let lines = LineReader::from_read(bytes, Path::new("in.txt")).unwrap();
        let kept: Vec<String> = lines
            .keeping_byte_order_mark()
            .map(Result::unwrap)
            .collect();
        assert_eq!(kept, ["\u{feff}a", "b"]);
    }

    #[test]
    fn white_space_alone_is_a_blank_line() {
        assert!(
            ["", " ", "\t\r", "\u{a0}\u{3000}\u{2028}"]
                .into_iter()
                .all(is_blank)
        );
        assert!(
            !["a", " . ", "\u{200b}", "\u{feff}"]
                .into_iter()
                .any(is_blank)
        );
    }

    #[test]
    fn gzip_is_known_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no-telling-name.txt");
        std::fs::write(&path, gzip("schöne\nGrüße\n".as_bytes())).unwrap();
        assert_eq!(read_lines(&path).unwrap(), ["schöne", "Grüße"]);
    }

    #[test]
    fn an_empty_first_line_is_given_before_the_next_byte_is_read() {
        /// A pipe whose writer waits for an answer: reading on would never end.
        struct Waiting(Cursor<&'static [u8]>);
        impl Read for Waiting {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.0.read(buffer)? {
                    0 => panic!("nobody has written anything yet"),
                    count => Ok(count),
                }
            }
        }
        let pipe = Waiting(Cursor::new(b"\n"));
        let mut lines = LineReader::from_read(pipe, Path::new("in.txt")).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "");
    }

    #[test]
    fn all_members_of_a_gzip_file_are_read() {
        let two_members = [gzip(b"a\nb"), gzip(b"c\nd\n")].concat();
        assert_eq!(lines_of(&two_members).unwrap(), ["a", "bc", "d"]);
    }

    #[test]
    fn a_source_that_gives_single_bytes_is_read_like_any_other() {
        struct Drip(Cursor<Vec<u8>>);
        impl Read for Drip {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let end = buffer.len().min(1);
                self.0.read(&mut buffer[..end])
            }
        }
        let drip = Drip(Cursor::new(gzip(b"a\nb\n")));
        let lines: Result<Vec<_>> = LineReader::from_read(drip, Path::new("pipe"))
            .unwrap()
            .collect();
        assert_eq!(lines.unwrap(), ["a", "b"]);
    }

    #[test]
    fn invalid_utf8_names_file_line_and_byte() {
        let message = message_of(b"good\nbad: \xe4\xf6\n");
        assert!(
            message.starts_with(r#""in.txt", line 2: byte 6 is not valid UTF-8"#),
            "{message}"
        );
        assert!(message.contains("iconv"), "{message}");
    }

    #[test]
    fn a_nul_byte_names_file_and_line() {
        let message = message_of(b"good\ngood\nb\0d\n");
        assert!(
            message.starts_with(r#""in.txt", line 3: found a NUL byte"#),
            "{message}"
        );
        let utf16 = message_of(b"\xff\xfeh\0i\0\n\0");
        assert!(utf16.contains("UTF-16"), "{utf16}");
    }

    #[test]
    fn a_cut_off_gzip_file_is_an_error_and_not_a_short_file() {
        let text: String = (0..9999).map(|line| format!("line {line}\n")).collect();
        let whole = gzip(text.as_bytes());
        let message = message_of(&whole[..whole.len() / 2]);
        assert!(
            message.starts_with(r#"cannot read "in.txt" at line "#),
            "{message}"
        );
        assert!(message.contains("cut off"), "{message}");
    }

    #[test]
    fn nothing_comes_after_the_first_error() {
        let source = Cursor::new(b"a\n\xff\nb\n".to_vec());
        let mut lines = LineReader::from_read(source, Path::new("in.txt")).unwrap();
        assert!(lines.next().unwrap().is_ok());
        assert!(lines.next().unwrap().is_err());
        assert!(lines.next().is_none());
    }

    #[test]
    fn missing_files_and_folders_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("not-there.de");
        let message = read_lines(&missing).unwrap_err().to_string();
        assert!(
            message.contains("not-there.de") && message.contains("check"),
            "{message}"
        );
        let message = read_lines(folder.path()).unwrap_err().to_string();
        assert!(message.contains("it is a folder"), "{message}");
    }
}
