//! Which word a token belongs to: every kind of tokenizer beside the definition, which decodes every prefix.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use flate2::read::GzDecoder;
use proptest::prelude::*;

static TOKENIZERS: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    use TokenizerKind::{Bpe, Tabs, Unigram, Word};
    let trained = [(Word, 0), (Tabs, 0), (Bpe, 280), (Unigram, 300)].map(|(kind, vocab_size)| {
        let options = TokenizerOptions {
            kind,
            vocab_size,
            min_frequency: 1,
            lowercase: false,
        };
        let text = "Ein Hund , \" der \"\trennt . „ Ja “\t( New York\u{3000}) - 3 % ¿ wie ?";
        let tokenizer = Tokenizer::train(&options, &mut [text, "Ein Hundehaus"].into_iter());
        (format!("{kind}"), tokenizer.expect("some words"))
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentencepiece");
    let files = std::fs::read_dir(folder).expect("fixtures");
    let files = files.map(|file| file.expect("readable").path());
    let models = files.filter(|path| path.to_string_lossy().ends_with(".model.gz"));
    let loaded = models.map(|path| {
        let mut bytes = Vec::new();
        let mut packed = GzDecoder::new(File::open(&path).expect("a file"));
        packed.read_to_end(&mut bytes).expect("gzip");
        let tokenizer = Tokenizer::from_bytes(&bytes, &path).expect("a model");
        (path.display().to_string(), tokenizer)
    });
    trained.into_iter().chain(loaded).collect()
});

/// The number of the last word of the text up to each id.
fn by_definition(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<usize> {
    let words = |end| tokenizer.decode(&ids[..end]).split_whitespace().count();
    (1..=ids.len())
        .map(|end| words(end).saturating_sub(1))
        .collect()
}

proptest! {
    #[test]
    fn every_id_belongs_to_the_last_word_up_to_it(
        numbers in prop::collection::vec(any::<u32>(), 0..40),
        text in prop_oneof![any::<String>(), "[a-zäß .,\"„“\u{3000}\u{a0}👍\t]{0,30}"],
    ) {
        for (name, tokenizer) in &*TOKENIZERS {
            // Beyond the vocabulary there are a few ids that stand for nothing.
            let most = tokenizer.vocab_size() as u32 + 3;
            let arbitrary: Vec<u32> = numbers.iter().map(|number| number % most).collect();
            // Single bytes come early in our vocabularies, and are what makes it difficult.
            let early: Vec<u32> = numbers.iter().map(|number| number % most.min(262)).collect();
            for ids in [arbitrary, early, tokenizer.encode(&text)] {
                let expected = by_definition(tokenizer, &ids);
                prop_assert_eq!(tokenizer.word_ids(&ids), expected, "{}: {:?}", name, ids);
            }
        }
    }
}

#[test]
fn every_kind_is_compared() {
    assert!(TOKENIZERS.len() > 8, "only {} tokenizers", TOKENIZERS.len());
}
