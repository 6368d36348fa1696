//! The libraries that find out a language, each behind the same interface.
//!
//! Those that can be told which languages are in play are told.

/// Codes of ISO 639-1 and, for the libraries that want them, of ISO 639-3: what `attentive` has a profile of, and some
/// languages that are alone with their script.
pub const LANGUAGES: [(&str, &str); 52] = [
    ("af", "afr"),
    ("ar", "ara"),
    ("az", "aze"),
    ("be", "bel"),
    ("bg", "bul"),
    ("ca", "cat"),
    ("cs", "ces"),
    ("cy", "cym"),
    ("da", "dan"),
    ("de", "deu"),
    ("el", "ell"),
    ("en", "eng"),
    ("eo", "epo"),
    ("es", "spa"),
    ("et", "est"),
    ("eu", "eus"),
    ("fa", "pes"),
    ("fi", "fin"),
    ("fr", "fra"),
    ("ga", "gle"),
    ("he", "heb"),
    ("hi", "hin"),
    ("hr", "hrv"),
    ("hu", "hun"),
    ("id", "ind"),
    ("is", "isl"),
    ("it", "ita"),
    ("ja", "jpn"),
    ("kk", "kaz"),
    ("ko", "kor"),
    ("la", "lat"),
    ("lt", "lit"),
    ("lv", "lav"),
    ("mk", "mkd"),
    ("nl", "nld"),
    ("no", "nob"),
    ("pl", "pol"),
    ("pt", "por"),
    ("ro", "ron"),
    ("ru", "rus"),
    ("sk", "slk"),
    ("sl", "slv"),
    ("sq", "sqi"),
    ("sr", "srp"),
    ("sv", "swe"),
    ("sw", "swh"),
    ("tl", "tgl"),
    ("tr", "tur"),
    ("uk", "ukr"),
    ("ur", "urd"),
    ("vi", "vie"),
    ("zh", "cmn"),
];

/// Says which language of [`LANGUAGES`] a text is in.
pub type Detect = Box<dyn Fn(&str) -> Option<&'static str>>;

/// A library, or a way to use one.
pub trait Library {
    /// What the table calls it.
    fn name(&self) -> &'static str;

    /// Whether it can find a language at all.
    fn knows(&self, code: &str) -> bool;

    /// A detector for the languages in play, without those that the library does not know.
    fn detector(&self, in_play: &[&'static str]) -> Detect;
}

/// The libraries that this program was built with.
pub fn all() -> Vec<Box<dyn Library>> {
    vec![
        #[cfg(feature = "attentive")]
        Box::new(attentive::Attentive),
        #[cfg(feature = "lingua")]
        Box::new(with_lingua::Lingua { low: false }),
        #[cfg(feature = "lingua")]
        Box::new(with_lingua::Lingua { low: true }),
        #[cfg(feature = "whatlang")]
        Box::new(with_whatlang::Whatlang),
        #[cfg(feature = "whichlang")]
        Box::new(with_whichlang::Whichlang),
    ]
}

#[cfg(any(
    feature = "attentive",
    feature = "lingua",
    feature = "whatlang",
    feature = "whichlang"
))]
fn short(code: &str) -> Option<&'static str> {
    let found = LANGUAGES
        .iter()
        .find(|(short, long)| *short == code || *long == code);
    found.map(|(short, _)| *short)
}

#[cfg(any(feature = "whatlang", feature = "whichlang"))]
fn long(code: &str) -> &'static str {
    let found = LANGUAGES.iter().find(|(short, _)| *short == code);
    found.map_or("", |(_, long)| *long)
}

#[cfg(feature = "attentive")]
mod attentive {
    use super::{Detect, Library, short};
    use attentive_text::language::Detector;

    pub struct Attentive;

    impl Library for Attentive {
        fn name(&self) -> &'static str {
            "attentive"
        }

        fn knows(&self, _: &str) -> bool {
            true
        }

        fn detector(&self, in_play: &[&'static str]) -> Detect {
            let detector = Detector::new(in_play.iter().copied());
            Box::new(move |text| short(detector.detect(text).best()?.language))
        }
    }
}

#[cfg(feature = "lingua")]
mod with_lingua {
    use super::{Detect, Library, short};
    use lingua::{IsoCode639_1, Language, LanguageDetectorBuilder};
    use std::str::FromStr;

    pub struct Lingua {
        pub low: bool,
    }

    fn language(code: &str) -> Option<Language> {
        let code = if code == "no" { "nb" } else { code };
        let code = IsoCode639_1::from_str(&code.to_uppercase()).ok()?;
        Some(Language::from_iso_code_639_1(&code))
    }

    impl Library for Lingua {
        fn name(&self) -> &'static str {
            if self.low {
                "lingua, low accuracy"
            } else {
                "lingua"
            }
        }

        fn knows(&self, code: &str) -> bool {
            language(code).is_some()
        }

        fn detector(&self, in_play: &[&'static str]) -> Detect {
            let languages: Vec<Language> =
                in_play.iter().filter_map(|code| language(code)).collect();
            let mut builder = LanguageDetectorBuilder::from_languages(&languages);
            if self.low {
                builder.with_low_accuracy_mode();
            }
            let detector = builder.build();
            Box::new(move |text| {
                let found = detector.detect_language_of(text)?;
                let code = found.iso_code_639_1().to_string().to_lowercase();
                short(if code == "nb" { "no" } else { &code })
            })
        }
    }
}

#[cfg(feature = "whatlang")]
mod with_whatlang {
    use super::{Detect, Library, long, short};
    use whatlang::{Detector, Lang};

    pub struct Whatlang;

    impl Library for Whatlang {
        fn name(&self) -> &'static str {
            "whatlang"
        }

        fn knows(&self, code: &str) -> bool {
            Lang::from_code(long(code)).is_some()
        }

        fn detector(&self, in_play: &[&'static str]) -> Detect {
            let languages = in_play
                .iter()
                .filter_map(|code| Lang::from_code(long(code)));
            let detector = Detector::with_allowlist(languages.collect());
            Box::new(move |text| short(detector.detect_lang(text)?.code()))
        }
    }
}

#[cfg(feature = "whichlang")]
mod with_whichlang {
    use super::{Detect, Library, long, short};
    use whichlang::{LANGUAGES, detect_language};

    pub struct Whichlang;

    impl Library for Whichlang {
        fn name(&self) -> &'static str {
            "whichlang"
        }

        fn knows(&self, code: &str) -> bool {
            LANGUAGES
                .iter()
                .any(|language| language.three_letter_code() == long(code))
        }

        /// It has no way to leave languages out.
        fn detector(&self, _: &[&'static str]) -> Detect {
            Box::new(|text| short(detect_language(text).three_letter_code()))
        }
    }
}
