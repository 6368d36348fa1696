//! References, segment by segment: one or more per line, and not the same number on every line.
//!
//! The metrics read them once, when a scorer is made, and score any number of systems against them.

use crate::error::MetricError;

/// The references of a test set: for each segment, one or more sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    segments: Vec<Vec<String>>,
}

impl References {
    /// One reference per segment.
    pub fn single(lines: &[String]) -> Result<Self, MetricError> {
        Self::from_segments(lines.iter().map(|line| vec![line.clone()]).collect())
    }

    /// Several complete reference texts, line `i` of each belonging to segment `i`.
    pub fn from_streams(streams: &[Vec<String>]) -> Result<Self, MetricError> {
        let first = streams.first().ok_or(MetricError::NoReference)?;
        for (index, stream) in streams.iter().enumerate() {
            if stream.len() != first.len() {
                return Err(MetricError::UnequalLines {
                    what: format!("reference {}", index + 1),
                    expected: first.len(),
                    found: stream.len(),
                });
            }
        }
        let segment = |i: usize| streams.iter().map(|stream| stream[i].clone()).collect();
        Self::from_segments((0..first.len()).map(segment).collect())
    }

    /// The references of each segment; their number may differ from segment to segment.
    pub fn from_segments(segments: Vec<Vec<String>>) -> Result<Self, MetricError> {
        if segments.is_empty() {
            return Err(MetricError::Empty {
                what: "the reference".to_owned(),
            });
        }
        match segments.iter().position(Vec::is_empty) {
            Some(index) => Err(MetricError::NoReferenceAtLine { line: index + 1 }),
            None => Ok(Self { segments }),
        }
    }

    /// The references of each segment, in order.
    pub fn segments(&self) -> &[Vec<String>] {
        &self.segments
    }

    /// How many references a segment has; `None` when it differs ("var" in signatures).
    pub fn count(&self) -> Option<usize> {
        let first = self.segments[0].len();
        let same = self.segments.iter().all(|refs| refs.len() == first);
        same.then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn unequal_reference_texts_are_refused() {
        let error = References::from_streams(&[lines(&["a", "b"]), lines(&["a"])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reference 2 has 1 lines but 2 were expected; every system and every reference must have \
             one line per sentence, in the same order"
        );
        assert_eq!(
            References::from_streams(&[]).unwrap_err(),
            MetricError::NoReference
        );
    }

    #[test]
    fn a_varying_number_of_references_has_no_single_count() {
        let varying = References::from_segments(vec![lines(&["a"]), lines(&["b", "c"])]).unwrap();
        assert_eq!(varying.count(), None);
        assert_eq!(References::single(&lines(&["a"])).unwrap().count(), Some(1));
        assert_eq!(
            References::from_segments(vec![lines(&["a"]), vec![]]).unwrap_err(),
            MetricError::NoReferenceAtLine { line: 2 }
        );
    }
}
