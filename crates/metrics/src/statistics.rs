//! Sufficient statistics: one row of numbers per segment whose sum gives the corpus score.
//!
//! A metric turns text into rows once; scores, confidence intervals and significance tests only add
//! rows up again. The rows are f64, which holds every count exactly.

/// A table with one row of statistics per segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    width: usize,
    values: Vec<f64>,
}

impl Statistics {
    /// A table from its rows laid end to end, each `width` long.
    pub fn new(width: usize, values: Vec<f64>) -> Self {
        assert!(width > 0 && values.len().is_multiple_of(width));
        Self { width, values }
    }

    /// Numbers per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.values.len() / self.width
    }

    /// The row of one segment.
    pub fn row(&self, segment: usize) -> &[f64] {
        &self.values[segment * self.width..(segment + 1) * self.width]
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    /// The sum of all rows, added in order.
    pub fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.width];
        for row in self.rows() {
            for (total, value) in totals.iter_mut().zip(row) {
                *total += value;
            }
        }
        totals
    }
}

/// The numbers in which Python would do the sum, because roundings differ between them.
///
/// sacreBLEU scores a corpus with Python's own numbers, resamples with numpy's 32-bit floats and
/// randomizes with numpy's 64-bit integers. Scores equal to the last digit need the same roundings; they
/// follow numpy 2, in which a Python number joins an array's type (NEP 50).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// Python's integers and 64-bit floats: the score of a corpus.
    Python,
    /// numpy's 32-bit floats: bootstrap resampling.
    Float32,
    /// numpy's 64-bit integers, counts cannot hold fractions: approximate randomization.
    Int64,
}

impl Arithmetic {
    /// The result of one operation, rounded as this arithmetic rounds it.
    ///
    /// Computing one +, -, * or / of 32-bit numbers in 64 bits and rounding once is the 32-bit result.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::Float32 => f64::from(value as f32),
            Self::Python | Self::Int64 => value,
        }
    }
}

/// One resampled score and the kind of number it came out as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The score.
    pub value: f64,
    /// Whether it is one of numpy's 32-bit floats.
    pub single: bool,
}
