//! DOCX and ODT files: zip archives in which some entries are XML with text.
//!
//! The `zip` library reads and writes them. Nothing is unpacked to the disk, and an archive may not become larger
//! than its limits in memory. Entries without new text are copied as they are, compressed bytes and all.

use std::io::{Cursor, Read, Write};

use zip::result::ZipError;
use zip::{ZipArchive, ZipWriter};

use super::format::{Format, ZIP};
use super::template::Template;
use super::{Problem, docx, odt};
use crate::error::{Result, TextError};
use crate::markup::Marked;

/// No document has more files in it.
const MOST_ENTRIES: usize = 20_000;

/// All XML with text in it together, unpacked.
const MOST_BYTES: u64 = 256 << 20;

/// Unpacked bytes for each packed one, where there are many. Long tables of equal cells come to 100.
const HIGHEST_RATIO: u64 = 400;

/// Ratios of less than this are nobody's business.
const SMALL: u64 = 4 << 20;

/// An archive with its texts.
#[derive(Debug)]
pub(crate) struct Container {
    bytes: Vec<u8>,
    /// The entries with texts, in the order of the texts.
    pub parts: Vec<ArchivePart>,
}

/// An entry with texts.
#[derive(Debug)]
pub(crate) struct ArchivePart {
    entry: usize,
    pub template: Template,
}

impl Container {
    /// Reads an archive.
    pub fn read(bytes: Vec<u8>, format: Format) -> std::result::Result<Self, Problem> {
        if !bytes.starts_with(ZIP) {
            return Err(Problem::whole(not_an_archive(&bytes, format)));
        }
        let mut archive = ZipArchive::new(Cursor::new(&bytes[..])).map_err(damaged)?;
        if archive.len() > MOST_ENTRIES {
            let problem = format!(
                "it has {} files in it, more than the {MOST_ENTRIES} that a document may have",
                archive.len()
            );
            return Err(Problem::whole(problem));
        }
        let names: Vec<String> = archive
            .file_names()
            .filter_map(|name| name.ok().map(|name| name.into_owned()))
            .collect();
        let texts = match format {
            Format::Docx => docx::parts(&names),
            _ => odt::parts(&names),
        }?;
        let mut left = MOST_BYTES;
        let mut parts = Vec::new();
        for name in texts {
            let entry = archive.index_for_name(&name).ok_or_else(|| {
                Problem::whole(format!("{name} is missing in it; save the document again"))
            })?;
            let source = unpacked(&mut archive, entry, &name, &mut left)?;
            let template = match format {
                Format::Docx => docx::read(source),
                _ => odt::read(source),
            };
            let template = template.map_err(|problem| Problem {
                line: None,
                problem: match problem.line {
                    Some(line) => format!("{name}, line {line}: {}", problem.problem),
                    None => format!("{name}: {}", problem.problem),
                },
            })?;
            parts.push(ArchivePart { entry, template });
        }
        drop(archive);
        Ok(Self { bytes, parts })
    }

    /// The archive with these texts.
    pub fn write(&self, mut texts: &[Marked]) -> Result<Vec<u8>> {
        let mut new = Vec::new();
        for part in &self.parts {
            let (own, others) = texts.split_at(part.template.texts.len());
            texts = others;
            if own != part.template.texts {
                let filled = part.template.fill(&part.template.texts, own);
                new.push((part.entry, filled));
            }
        }
        self.with_entries(&new).map_err(|error| TextError::Library {
            problem: error.to_string(),
        })
    }

    fn with_entries(&self, new: &[(usize, String)]) -> zip::result::ZipResult<Vec<u8>> {
        if new.is_empty() {
            return Ok(self.bytes.clone());
        }
        let mut archive = ZipArchive::new(Cursor::new(&self.bytes[..]))?;
        let mut writer = ZipWriter::new(Cursor::new(Vec::with_capacity(self.bytes.len())));
        for number in 0..archive.len() {
            let entry = archive.by_index_raw(number)?;
            match new.iter().find(|(changed, _)| *changed == number) {
                None => writer.raw_copy_file(entry)?,
                Some((_, text)) => {
                    let name = entry.name()?.into_owned();
                    let options = entry.options();
                    drop(entry);
                    writer.start_file(name, options)?;
                    writer.write_all(text.as_bytes())?;
                }
            }
        }
        Ok(writer.finish()?.into_inner())
    }
}

/// The text of an entry, if it is within the limits.
fn unpacked(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    entry: usize,
    name: &str,
    left: &mut u64,
) -> std::result::Result<String, Problem> {
    let raw = archive.by_index_raw(entry).map_err(damaged)?;
    let (packed, encrypted) = (raw.compressed_size(), raw.encrypted());
    drop(raw);
    if encrypted {
        return Err(Problem::whole(
            "it is protected by a password; save it without one",
        ));
    }
    let limit = (*left).min(SMALL.max(packed.saturating_mul(HIGHEST_RATIO)));
    let file = archive.by_index(entry).map_err(damaged)?;
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        Problem::whole(format!(
            "{name} is damaged: {error}; save the document again"
        ))
    })?;
    if bytes.len() as u64 > limit {
        let problem = format!(
            "{name} is larger than {} MB when unpacked, which no document is; split it if it is one",
            limit >> 20
        );
        return Err(Problem::whole(problem));
    }
    *left -= bytes.len() as u64;
    String::from_utf8(bytes).map_err(|_| {
        Problem::whole(format!(
            "{name} is not UTF-8; open the document and save it again"
        ))
    })
}

fn damaged(error: ZipError) -> Problem {
    Problem::whole(format!(
        "the archive is damaged: {error}; copy the file again"
    ))
}

/// What a file that should be an archive is instead.
fn not_an_archive(bytes: &[u8], format: Format) -> String {
    if bytes.is_empty() {
        "the file is empty".to_owned()
    } else if bytes.starts_with(b"\xD0\xCF\x11\xE0") {
        format!(
            "this is an older or a password-protected file of an office program; open it and save it as {format}"
        )
    } else {
        format!("this is no {format} file, which is a zip archive; name its format with --format")
    }
}
