//! Labelled texts: tab-separated files whose first line names the columns, as those of GLUE.
//!
//! A text, or a pair of texts, and the name of its class. Nothing is quoted: every tab separates. Neighbors:
//! [`crate::recipe`] names files and columns, [`crate::task::classification`] learns from them, `attentive evaluate` measures.

use std::path::{Path, PathBuf};

use attentive_text::lines::{is_blank, read_lines};

use crate::{
    Recipe, Result,
    data::{corpus::refuse_missing_files, fingerprint::CorpusFingerprint},
};

/// One text, or a pair, and its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// The text, or the first of two.
    pub first: String,
    /// The second of two.
    pub second: Option<String>,
    /// The name of the class.
    pub label: String,
    /// The line of its file, from 1.
    pub line: usize,
}

/// The labelled texts of a file.
#[derive(Debug, Clone)]
pub struct LabelledFile {
    /// Where they stand.
    pub path: PathBuf,
    /// In the order of the file.
    pub texts: Vec<Labelled>,
}

/// Which columns hold the texts and the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// One, or two for pairs.
    pub texts: Vec<String>,
    /// The label's.
    pub label: String,
}

/// The files of a recipe.
#[derive(Debug, Clone)]
pub struct LabelledData {
    /// To learn from.
    pub train: Vec<LabelledFile>,
    /// To validate on.
    pub val: Vec<LabelledFile>,
    /// Tells the texts from any other.
    pub fingerprint: CorpusFingerprint,
}

/// What can be wrong with such a file.
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// A column that the first line does not name.
    #[error(
        "{}: no column {column:?}: the first line names {}; say which to take (`data.text_columns`, \
         `data.label_column`)",
        path.display(), found.join(", ")
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The missing column.
        column: String,
        /// Those that are there.
        found: Vec<String>,
    },
    /// A line with fewer columns than the first.
    #[error(
        "{}, line {line}: expected {expected} columns separated by tabs, as the first line has, found {found}",
        path.display()
    )]
    ShortLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Columns of the first line.
        expected: usize,
        /// Columns of this one.
        found: usize,
    },
    /// Nothing in the column of the text or of the label.
    #[error(
        "{}, line {line}: the column {column:?} is empty; give every text a label, or remove the line",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column.
        column: String,
    },
    /// A label that is not one of the model's.
    #[error("{}, line {line}: the label {label:?} is not one of {}", path.display(), known.join(", "))]
    UnknownLabel {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The label.
        label: String,
        /// The model's.
        known: Vec<String>,
    },
    /// Less than two classes.
    #[error(
        "the training examples have {count} different labels, and a classifier needs at least two: check `data.examples` \
         and `data.label_column`"
    )]
    OneClass {
        /// How many there are.
        count: usize,
    },
}

impl LabelledData {
    /// Reads the files.
    pub fn read(recipe: &Recipe) -> Result<Self> {
        refuse_missing_files(recipe, |_| true)?;
        let data = &recipe.data;
        let columns = Columns::of(recipe);
        let mut fingerprint = CorpusFingerprint::default();
        let mut read = |files: &[String], role| -> Result<Vec<LabelledFile>> {
            let paths = data.paths(files);
            let read = files.iter().zip(&paths).map(|(file, path)| {
                let lines = read_lines(path)?;
                fingerprint.add(file, role, &lines);
                LabelledFile::of(path, &lines, &columns)
            });
            read.collect()
        };
        Ok(Self {
            train: read(&data.examples, "training examples")?,
            val: read(&data.val_examples, "validation examples")?,
            fingerprint,
        })
    }

    /// The names of the classes of the training examples, sorted.
    pub fn labels(&self) -> Result<Vec<String>> {
        let texts = self.train.iter().flat_map(|file| &file.texts);
        let mut labels: Vec<String> = texts.map(|text| text.label.clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        match labels.len() {
            count @ (0 | 1) => Err(LabelledError::OneClass { count }.into()),
            _ => Ok(labels),
        }
    }
}

impl Columns {
    /// Those of a recipe.
    pub fn of(recipe: &Recipe) -> Self {
        Self {
            texts: recipe.data.text_columns.clone(),
            label: recipe.data.label_column.clone(),
        }
    }
}

impl LabelledFile {
    /// Reads a file.
    pub fn read(path: &Path, columns: &Columns) -> Result<Self> {
        Self::of(path, &read_lines(path)?, columns)
    }

    fn of(path: &Path, lines: &[String], columns: &Columns) -> Result<Self> {
        let header: Vec<&str> = lines
            .first()
            .map_or(vec![], |line| line.split('\t').collect());
        let place = |column: &String| {
            let found = header.iter().position(|name| name.trim() == column);
            found.ok_or_else(|| LabelledError::NoColumn {
                path: path.to_owned(),
                column: column.clone(),
                found: header
                    .iter()
                    .map(|name| format!("{:?}", name.trim()))
                    .collect(),
            })
        };
        let texts = columns.texts.iter().map(place);
        let texts: Vec<usize> = texts.collect::<Result<_, _>>()?;
        let label = place(&columns.label)?;
        let rows = (2..).zip(&lines[1..]).filter(|(_, row)| !is_blank(row));
        let texts = rows.map(|(line, row)| {
            let cells: Vec<&str> = row.split('\t').collect();
            if cells.len() < header.len() {
                let path = path.to_owned();
                let (expected, found) = (header.len(), cells.len());
                return Err(LabelledError::ShortLine {
                    path,
                    line,
                    expected,
                    found,
                });
            }
            let cell = |place: usize| match cells[place].trim() {
                "" => Err(LabelledError::Empty {
                    path: path.to_owned(),
                    line,
                    column: header[place].trim().to_owned(),
                }),
                text => Ok(text.to_owned()),
            };
            Ok(Labelled {
                first: cell(texts[0])?,
                second: texts.get(1).map(|place| cell(*place)).transpose()?,
                label: cell(label)?,
                line,
            })
        });
        Ok(Self {
            path: path.to_owned(),
            texts: texts.collect::<Result<_, _>>()?,
        })
    }

    /// The class of each text among these.
    pub fn classes(&self, labels: &[String]) -> Result<Vec<usize>> {
        let class = |text: &Labelled| {
            let found = labels.iter().position(|label| *label == text.label);
            found.ok_or_else(|| LabelledError::UnknownLabel {
                path: self.path.clone(),
                line: text.line,
                label: text.label.clone(),
                known: labels.to_vec(),
            })
        };
        Ok(self.texts.iter().map(class).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, texts: &[&str]) -> Result<LabelledFile> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let columns = Columns {
            texts: texts.iter().map(|name| name.to_string()).collect(),
            label: "label".to_owned(),
        };
        LabelledFile::of(Path::new("a.tsv"), &lines, &columns)
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let file = read(
            "label\tid\ta\tb\n1\t7\tone \ttwo\n\n0\t8\tx\ty\n",
            &["a", "b"],
        )
        .unwrap();
        assert_eq!(file.texts.len(), 2);
        assert_eq!(
            (&*file.texts[0].first, file.texts[0].second.as_deref()),
            ("one", Some("two"))
        );
        assert_eq!((&*file.texts[1].label, file.texts[1].line), ("0", 4));
        assert_eq!(file.classes(&["0".into(), "1".into()]).unwrap(), [1, 0]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let message = |text: &str| read(text, &["a"]).unwrap_err().to_string();
        let column = message("b\tlabel\nx\t1\n");
        assert!(
            column.contains("no column \"a\"") && column.contains("\"b\", \"label\""),
            "{column}"
        );
        let short = message("a\tlabel\nx\t1\ny\n");
        assert!(
            short.contains("a.tsv, line 3: expected 2 columns"),
            "{short}"
        );
        let label = message("a\tlabel\nx\t \n");
        assert!(
            label.contains("line 2") && label.contains("\"label\" is empty"),
            "{label}"
        );
        assert!(message("").contains("no column"), "an empty file");
        let file = read("a\tlabel\nx\tmaybe\n", &["a"]).unwrap();
        let unknown = file
            .classes(&["no".into(), "yes".into()])
            .unwrap_err()
            .to_string();
        assert_eq!(
            unknown,
            "a.tsv, line 2: the label \"maybe\" is not one of no, yes"
        );
    }
}
