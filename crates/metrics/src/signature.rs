//! Signatures: one line that says how a score was made, so that others can make it again.
//!
//! The text is sacreBLEU 2.6.0's, character by character, because its readers compare it by eye and by
//! script: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`. The program that computed the
//! score is named beside it, by [`PROGRAM`], never inside.

/// The version of sacreBLEU whose scores and signatures these are.
pub const SACREBLEU_VERSION: &str = "2.6.0";

/// This program's own name and version.
pub const PROGRAM: &str = concat!("attentive ", env!("CARGO_PKG_VERSION"));

/// The settings of a score, in sacreBLEU's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    references: Option<usize>,
    bootstrap: Option<usize>,
    randomization: Option<usize>,
    seed: Option<String>,
    settings: Vec<Setting>,
}

/// One setting of a metric: its long name, its short name and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name in the long form.
    pub name: &'static str,
    /// The name in the short form.
    pub short: &'static str,
    /// The value, the same in both forms.
    pub value: String,
}

/// Which form of a signature to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignatureForm {
    /// `nrefs:1|case:mixed|...`
    #[default]
    Long,
    /// `#:1|c:mixed|...`
    Short,
}

impl Setting {
    /// A setting from its two names and its value.
    pub fn new(name: &'static str, short: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            short,
            value: value.into(),
        }
    }
}

impl Signature {
    /// The signature of a plain score; `references` is `None` when their number varies.
    pub fn new(references: Option<usize>, settings: Vec<Setting>) -> Self {
        Self {
            references,
            bootstrap: None,
            randomization: None,
            seed: None,
            settings,
        }
    }

    /// Adds the number of bootstrap resamples.
    pub fn with_bootstrap(mut self, samples: usize) -> Self {
        self.bootstrap = Some(samples);
        self
    }

    /// Adds the number of trials of approximate randomization.
    pub fn with_randomization(mut self, trials: usize) -> Self {
        self.randomization = Some(trials);
        self
    }

    /// Adds the seed of the random numbers.
    pub fn with_seed(mut self, seed: impl Into<String>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Name and value of every setting, in order, the version last.
    pub fn entries(&self, form: SignatureForm) -> Vec<(&'static str, String)> {
        let name = |long, short| match form {
            SignatureForm::Long => long,
            SignatureForm::Short => short,
        };
        let references = match self.references {
            Some(count) => count.to_string(),
            None => "var".to_owned(),
        };
        let mut entries = vec![(name("nrefs", "#"), references)];
        if let Some(samples) = self.bootstrap {
            entries.push(("bs", samples.to_string()));
        }
        if let Some(trials) = self.randomization {
            entries.push(("ar", trials.to_string()));
        }
        if let Some(seed) = &self.seed {
            entries.push((name("seed", "rs"), seed.clone()));
        }
        for setting in &self.settings {
            entries.push((name(setting.name, setting.short), setting.value.clone()));
        }
        entries.push((name("version", "v"), SACREBLEU_VERSION.to_owned()));
        entries
    }

    /// The signature as one line.
    pub fn format(&self, form: SignatureForm) -> String {
        let pairs: Vec<String> = self
            .entries(form)
            .into_iter()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        pairs.join("|")
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.format(SignatureForm::Long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_keep_the_order_and_end_with_the_version() {
        let signature = Signature::new(None, vec![Setting::new("case", "c", "lc")])
            .with_bootstrap(1000)
            .with_seed("12345");
        assert_eq!(
            signature.to_string(),
            "nrefs:var|bs:1000|seed:12345|case:lc|version:2.6.0"
        );
        assert_eq!(
            signature.format(SignatureForm::Short),
            "#:var|bs:1000|rs:12345|c:lc|v:2.6.0"
        );
    }
}
