//! BLEU's options: tokenizer, smoothing, case, n-gram orders; and how a signature names them.

use std::str::FromStr;

use crate::bleu_tokenizers::BleuTokenizer;
use crate::error::MetricError;
use crate::signature::Setting;

/// How BLEU is computed; the default is sacreBLEU's.
#[derive(Debug, Clone)]
pub struct BleuOptions {
    /// What a word is.
    pub tokenizer: BleuTokenizer,
    /// What to do where no n-gram matches.
    pub smoothing: Smoothing,
    /// Whether case matters.
    pub case: Case,
    /// Which orders of n-grams the mean is taken over.
    pub order: NgramOrder,
    /// The longest n-grams counted.
    pub max_order: usize,
}

/// What to do where no n-gram of an order matches (Chen and Cherry, 2014).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Smoothing {
    /// Nothing; the score is then 0.
    None,
    /// The count 0 becomes this small number (method 1).
    Floor(f64),
    /// This is added to counts and totals of all orders but the first (method 2).
    AddK(f64),
    /// The count 0 becomes 1/2, the next 1/4, ... (method 3, mteval's).
    Exp,
}

/// Whether case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Mixed,
    /// Both texts are lowercased.
    Lower,
}

/// Which orders of n-grams the mean is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NgramOrder {
    /// All of them.
    #[default]
    Full,
    /// Those that a short output has at all: for single sentences.
    Effective,
}

impl Default for BleuOptions {
    fn default() -> Self {
        Self {
            tokenizer: BleuTokenizer::default(),
            smoothing: Smoothing::Exp,
            case: Case::default(),
            order: NgramOrder::default(),
            max_order: 4,
        }
    }
}

impl BleuOptions {
    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), MetricError> {
        if self.max_order == 0 {
            return Err(MetricError::BadOption {
                option: "max_order",
                found: "0".to_owned(),
                expected: "1 or more",
            });
        }
        match self.smoothing {
            Smoothing::Floor(value) | Smoothing::AddK(value)
                if !(value >= 0.0 && value.is_finite()) =>
            {
                Err(MetricError::BadOption {
                    option: "smooth-value",
                    found: value.to_string(),
                    expected: "a number of 0 or more",
                })
            }
            _ => Ok(()),
        }
    }

    /// The settings as a signature names them.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let smooth = match self.smoothing {
            Smoothing::None => "none".to_owned(),
            Smoothing::Floor(value) => format!("floor[{value:.2}]"),
            Smoothing::AddK(value) => format!("add-k[{value:.2}]"),
            Smoothing::Exp => "exp".to_owned(),
        };
        let effective = match self.order {
            NgramOrder::Full => "no",
            NgramOrder::Effective => "yes",
        };
        vec![
            Setting::new("case", "c", self.case.name()),
            Setting::new("eff", "e", effective),
            Setting::new("tok", "tok", self.tokenizer.name()),
            Setting::new("smooth", "s", smooth),
        ]
    }
}

impl Case {
    /// The name in signatures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Lower => "lc",
        }
    }
}

impl Smoothing {
    /// The method of this name with its value, or its usual one: 0.1 for `floor`, 1 for `add-k`.
    pub fn new(method: &str, value: Option<f64>) -> Result<Self, MetricError> {
        match method {
            "none" => Ok(Self::None),
            "floor" => Ok(Self::Floor(value.unwrap_or(0.1))),
            "add-k" => Ok(Self::AddK(value.unwrap_or(1.0))),
            "exp" => Ok(Self::Exp),
            _ => Err(MetricError::UnknownName {
                kind: "smoothing",
                name: method.to_owned(),
                known: "exp, floor, add-k, none".to_owned(),
            }),
        }
    }
}

impl FromStr for Smoothing {
    type Err = MetricError;

    fn from_str(method: &str) -> Result<Self, MetricError> {
        Self::new(method, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_known_ones() {
        let error = "ja".parse::<BleuTokenizer>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown tokenizer `ja`; expected one of: 13a, intl, zh, char, none, spm"
        );
        assert!("add".parse::<Smoothing>().is_err());
    }

    #[test]
    fn senseless_values_are_refused() {
        let options = BleuOptions {
            max_order: 0,
            ..BleuOptions::default()
        };
        assert!(options.check().is_err());
        let options = BleuOptions {
            smoothing: Smoothing::Floor(f64::NAN),
            ..BleuOptions::default()
        };
        assert!(options.check().is_err());
    }
}
