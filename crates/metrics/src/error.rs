//! What can be wrong with the input of a metric, each with what to do about it.

/// An input that cannot be scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// There is no reference at all.
    #[error("no reference was given; a score needs at least one reference text")]
    NoReference,
    /// There is nothing to score.
    #[error("{what} has no lines; expected at least one sentence")]
    Empty {
        /// Which text is empty.
        what: String,
    },
    /// One line has no reference, so no metric is defined for it.
    #[error("line {line} has no reference; every line needs at least one (an empty one counts)")]
    NoReferenceAtLine {
        /// The line, from 1.
        line: usize,
    },
    /// The texts do not pair line by line.
    #[error(
        "{what} has {found} lines but {expected} were expected; \
         every system and every reference must have one line per sentence, in the same order"
    )]
    UnequalLines {
        /// Which text differs.
        what: String,
        /// Lines of the text it is compared with.
        expected: usize,
        /// Lines it has.
        found: usize,
    },
    /// A line with another number of tab-separated texts.
    #[error(
        "line {line} has {found} tab-separated fields; expected {expected}, as many on every line"
    )]
    UnequalFields {
        /// The line, from 1.
        line: usize,
        /// Fields expected.
        expected: usize,
        /// Fields it has.
        found: usize,
    },
    /// A tokenizer, smoothing or metric of an unknown name.
    #[error("unknown {kind} `{name}`; expected one of: {known}")]
    UnknownName {
        /// What was named: "tokenizer", "smoothing", "metric".
        kind: &'static str,
        /// The name given.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// A tokenizer of sacreBLEU that needs something this program has not.
    #[error("tokenizer `{name}` is not available: {reason}")]
    UnavailableTokenizer {
        /// The name given.
        name: String,
        /// What is missing and what to use instead.
        reason: String,
    },
    /// An option with a value that makes no sense.
    #[error("`{option}` is {found}; expected {expected}")]
    BadOption {
        /// The option's name.
        option: &'static str,
        /// The value given.
        found: String,
        /// Values that make sense.
        expected: &'static str,
    },
    /// A significance test over fewer than two systems.
    #[error(
        "a paired test compares systems with the first one, the baseline; {found} was given, expected 2 or more"
    )]
    TooFewSystems {
        /// Systems given.
        found: usize,
    },
}
