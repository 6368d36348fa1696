//! Lines of files as sacreBLEU takes them: white space at the end of a line does not count, and several
//! references or systems may stand beside each other, separated by tabs.

use crate::error::MetricError;
use crate::python_text;

/// The lines without white space at their ends.
pub fn trimmed(lines: Vec<String>) -> Vec<String> {
    lines
        .into_iter()
        .map(|line| python_text::trim_end(&line).to_owned())
        .collect()
}

/// Splits lines at tabs into `columns` texts; the last column keeps any further tabs.
pub fn split_columns(lines: &[String], columns: usize) -> Result<Vec<Vec<String>>, MetricError> {
    let mut texts = vec![Vec::with_capacity(lines.len()); columns];
    for (index, line) in lines.iter().enumerate() {
        let fields: Vec<&str> = line.splitn(columns, '\t').collect();
        if fields.len() != columns {
            return Err(MetricError::UnequalFields {
                line: index + 1,
                expected: columns,
                found: fields.len(),
            });
        }
        for (text, field) in texts.iter_mut().zip(fields) {
            text.push(field.to_owned());
        }
    }
    Ok(texts)
}

/// Splits lines at every tab into as many texts as the first line has fields.
pub fn split_systems(lines: &[String]) -> Result<Vec<Vec<String>>, MetricError> {
    let tabs = |line: &String| line.matches('\t').count();
    let columns = lines.first().map_or(1, |line| tabs(line) + 1);
    let unequal = lines.iter().position(|line| tabs(line) + 1 != columns);
    if let Some(index) = unequal {
        return Err(MetricError::UnequalFields {
            line: index + 1,
            expected: columns,
            found: tabs(&lines[index]) + 1,
        });
    }
    let systems = split_columns(lines, columns)?;
    Ok(systems.into_iter().map(trimmed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn tabs_separate_columns_and_a_missing_one_is_named() {
        let two = split_columns(&lines(&["a\tb", "c\td\te"]), 2).unwrap();
        assert_eq!(two, [lines(&["a", "c"]), lines(&["b", "d\te"])]);
        let error = split_columns(&lines(&["a\tb", "c"]), 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2 has 1 tab-separated fields; expected 2, as many on every line"
        );
        assert!(split_systems(&lines(&["a\tb", "c\td\te"])).is_err());
    }

    #[test]
    fn white_space_at_the_end_does_not_count() {
        assert_eq!(trimmed(lines(&["a \r", "\u{1c}"])), lines(&["a", ""]));
    }
}
