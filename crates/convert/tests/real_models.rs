//! Real models of other programs say what they say there.
//!
//! The models are not part of the repository: `ATTENTIVE_MODELS` names their folder, `ATTENTIVE_DATA` that of the texts.
//! Without them these tests say SKIPPED.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, WeightKind, import};
use attentive_metrics::bleu::corpus_bleu;
use attentive_model::ModelDir;
use attentive_runtime::cpu::Compute;
use attentive_runtime::search::Method;
use attentive_runtime::translator::{Repetition, Translator, TranslatorOptions};

fn folder(variable: &str, name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(variable) else {
        eprintln!("SKIPPED: {variable} does not name a folder");
        return None;
    };
    Some(PathBuf::from(folder).join(name))
}

fn lines(path: &Path) -> Vec<String> {
    let mut text = String::new();
    if path.extension().is_some_and(|end| end == "gz") {
        let file = fs::File::open(path).expect("the data is there");
        let mut unpacked = flate2::read::GzDecoder::new(file);
        unpacked.read_to_string(&mut text).expect("UTF-8");
    } else {
        text = fs::read_to_string(path).expect("the data is there");
    }
    text.lines().map(str::to_owned).collect()
}

/// A model, imported into a folder that goes away with it.
struct ImportedModel {
    folder: tempfile::TempDir,
}

impl ImportedModel {
    fn new(source: &Path, weights: WeightKind) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ImportOptions {
            weights,
            ..ImportOptions::default()
        };
        let out = folder.path().join("model");
        import(source, &out, &options).expect("it can be imported");
        Self { folder }
    }

    fn translate(
        &self,
        lines: &[String],
        change: impl FnOnce(&mut TranslatorOptions),
    ) -> Vec<String> {
        let directory =
            ModelDir::open(self.folder.path().join("model")).expect("a model directory");
        let mut options = TranslatorOptions::of(&directory).expect("sound");
        options.repetition = Repetition::Allow;
        change(&mut options);
        let translator = Translator::of_model(directory, Compute::Auto, options).expect("sound");
        let translations = translator.translate(lines);
        translations
            .into_iter()
            .map(|translation| translation.text)
            .collect()
    }
}

fn equal(found: &[String], expected: &[String]) -> usize {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected).filter(|(a, b)| a != b).take(5) {
        eprintln!("  {found}\n= {expected}");
    }
    found.iter().zip(expected).filter(|(a, b)| a == b).count()
}

#[test]
fn marian_says_what_marian_says() {
    let Some(model) = folder("ATTENTIVE_MODELS", "marian-multi30k-de-en") else {
        return;
    };
    let Some(data) = folder("ATTENTIVE_DATA", "multi30k") else {
        return;
    };
    let sources = lines(&data.join("test_2016_flickr.de.gz"));
    let references = lines(&data.join("test_2016_flickr.en.gz"));
    let imported = ImportedModel::new(&model, WeightKind::AsIs);
    for (beam, name, bleu) in [(1, "greedy", 37.71), (4, "beam4", 39.30)] {
        let expected = lines(&model.join(format!("test_2016_flickr.{name}.en")));
        let found = imported.translate(&sources, |options| {
            options.search.method = Method::of_beam(beam);
        });
        let score = corpus_bleu(&found, &references).score;
        let same = equal(&found, &expected);
        eprintln!(
            "beam {beam}: {same} of {} equal, BLEU {score:.2}",
            found.len()
        );
        assert!(
            same * 1000 >= 995 * found.len(),
            "{same} are equal with a beam of {beam}"
        );
        assert!(
            (score - bleu).abs() < 0.05,
            "BLEU {score} with a beam of {beam}"
        );
    }
}

#[test]
fn bergamot_says_what_its_engine_says() {
    let Some(model) = folder("ATTENTIVE_MODELS", "bergamot-enpt-tiny") else {
        return;
    };
    let Some(data) = folder("ATTENTIVE_DATA", "") else {
        return;
    };
    let float = ImportedModel::new(&model, WeightKind::F32);
    let int8 = ImportedModel::new(&model, WeightKind::AsIs);
    for (set, file, count) in [
        ("test_2016_flickr", "multi30k/test_2016_flickr.en.gz", 200),
        ("newstest2013", "newstest/newstest2013.en.gz", 100),
    ] {
        let sources = &lines(&data.join(file))[..count];
        let reference = |name: &str| lines(&model.join(format!("refs/{set}.{name}.pt")));
        let with = float.translate(sources, |_| {});
        assert_eq!(
            equal(&with, &reference("engine")),
            count,
            "{set} with the shortlist"
        );
        let without = float.translate(sources, |options| options.shortlist = None);
        assert_eq!(
            equal(&without, &reference("float-full")),
            count,
            "{set} without it"
        );
        let small = int8.translate(sources, |_| {});
        // int8 text is chaotic, so it is compared by how near it is to that of the float weights: nearer than the
        // original engine's int8 is.
        let engine = reference("engine");
        let [ours, theirs] =
            [&small, &reference("bergamot-vnni")].map(|found| corpus_bleu(found, &engine).score);
        assert!(
            ours > theirs,
            "{set}: int8 has BLEU {ours} to float, the original {theirs}"
        );
        for (name, outputs) in [("float", &with), ("int8", &small)] {
            let score = |other: &str| corpus_bleu(outputs, &reference(other)).score;
            let scores = ["engine", "bergamot-int8Alpha", "bergamot-vnni"].map(score);
            eprintln!("{set}: {name} against the engine, int8Alpha, vnni: {scores:.2?}");
        }
    }
}

#[test]
fn bart_spells_words_in_phonemes() {
    let Some(model) = folder("ATTENTIVE_MODELS", "bart-g2p-us") else {
        return;
    };
    let imported = ImportedModel::new(&model, WeightKind::AsIs);
    let words = ["translation", "transformer", "German", "hello"].map(str::to_owned);
    let found = imported.translate(&words, |options| options.search.method = Method::Greedy);
    assert_eq!(found, ["tɹænzlˈAʃən", "tɹænsfˈɔɹməɹ", "ʤˈɜɹmən", "hˈɛlO"]);
}

#[test]
fn fairseq_writes_nko_with_and_without_a_mapping() {
    let Some(model) = folder("ATTENTIVE_MODELS", "fairseq-latin2nqo") else {
        return;
    };
    let greedy = |options: &mut TranslatorOptions| options.search.method = Method::Greedy;
    let source = ["musa dunbuya".to_owned()];
    let imported = ImportedModel::new(&model, WeightKind::AsIs);
    assert_eq!(imported.translate(&source, greedy), ["ߡߎߛߊ߫ ߘߎ߲ߓߎߦߊ"]);

    let folder = tempfile::tempdir().expect("a folder");
    let options = ImportOptions {
        mapping: Some(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fairseq-latin2nqo.toml"),
        ),
        ..ImportOptions::default()
    };
    import(&model, &folder.path().join("model"), &options).expect("it can be imported");
    let mapped = ImportedModel { folder };
    let weights = |model: &ImportedModel| {
        fs::read(model.folder.path().join("model/model.safetensors")).expect("weights")
    };
    assert!(weights(&mapped) == weights(&imported), "the same weights");
    assert_eq!(mapped.translate(&source, greedy), ["ߡߎߛߊ߫ ߘߎ߲ߓߎߦߊ"]);
}

#[test]
fn ctranslate2_transliterates_with_its_scores() {
    let Some(model) = folder("ATTENTIVE_DATA", "ct2-aren") else {
        return;
    };
    let imported = ImportedModel::new(&model, WeightKind::AsIs);
    let directory =
        ModelDir::open(imported.folder.path().join("model")).expect("a model directory");
    let mut options = TranslatorOptions::of(&directory).expect("sound");
    options.search.method = Method::Beam { size: 4 };
    options.search.n_best = 2;
    let translator = Translator::of_model(directory, Compute::Auto, options).expect("sound");
    let found = translator.translate(&["آتزمون", "آتشيسون"]);
    let expected = [
        [("atzmon", -0.1517), ("atzumon", -0.2660)],
        [("achison", -0.1392), ("acheson", -0.2579)],
    ];
    for (found, [best, second]) in found.iter().zip(expected) {
        let other = &found.alternatives[0];
        for (text, score, (expected, expected_score)) in [
            (&found.text, found.score, best),
            (&other.text, other.score, second),
        ] {
            assert_eq!(text, expected);
            assert!((score - expected_score).abs() < 1e-4, "{text}: {score}");
        }
    }
}
