//! From text to tokens: the same sentence as words, characters and subwords, and what each kind cannot do.
//!
//! A model reads numbers. Words make short rows of them, but a word that was not in the corpus is lost; characters lose
//! nothing, but make long rows. Subwords are between: frequent words stay whole, rare ones fall into pieces.
//!
//! Run with `cargo run --release --example 13_tokens [PICTURE.svg]`. Next: `04_kernel_regression`.

mod picture;

use attentive_text::special::{decoder_input, decoder_output, source_ids};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

/// A very small corpus, read eight times so that its words are frequent.
const CORPUS: [&str; 12] = [
    "Ein Hund rennt über die Wiese.",
    "Ein kleiner Hund rennt über die grüne Wiese.",
    "Zwei Hunde rennen über das Gras.",
    "Eine Frau rennt über die Straße.",
    "Ein Mann steht auf der Straße.",
    "Zwei Männer stehen auf der grünen Wiese.",
    "A dog runs across the meadow.",
    "A small dog runs across the green meadow.",
    "Two dogs run across the grass.",
    "A woman runs across the street.",
    "A man stands in the street.",
    "Two men stand in the green meadow.",
];

/// `kleine` and `Frauen` are not in the corpus, but their pieces are.
const SENTENCE: &str = "Zwei kleine Frauen rennen.";

fn trained(kind: TokenizerKind, vocab_size: usize) -> attentive_text::Result<Tokenizer> {
    // ANCHOR: train
    let options = TokenizerOptions {
        kind,
        vocab_size,
        ..TokenizerOptions::default()
    };
    let corpus = CORPUS.repeat(8);
    Tokenizer::train(&options, &mut corpus.into_iter())
    // ANCHOR_END: train
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{SENTENCE}\n");
    let kinds = [
        ("word", TokenizerKind::Word, 0),
        ("characters", TokenizerKind::Characters, 0),
        ("bpe", TokenizerKind::Bpe, 320),
        ("unigram", TokenizerKind::Unigram, 320),
    ];
    for (name, kind, vocab_size) in kinds {
        // ANCHOR: encode
        let tokenizer = trained(kind, vocab_size)?;
        let ids = tokenizer.encode(SENTENCE);
        let pieces = tokenizer.pieces(SENTENCE);
        let back = tokenizer.decode(&ids);
        // ANCHOR_END: encode
        println!(
            "{name}: {} entries, {} tokens",
            tokenizer.vocab_size(),
            ids.len()
        );
        println!("  pieces  {}", pieces.join(" "));
        println!("  back    {back}");
    }

    let tokenizer = trained(TokenizerKind::Unigram, 320)?;
    let ids = tokenizer.encode("Ein Hund.");
    println!("\n`Ein Hund.` in a batch (0 is <s>, 1 is </s>):");
    println!("  the encoder reads   {:?}", source_ids(&ids[..]));
    println!("  the decoder reads   {:?}", decoder_input(&ids));
    println!("  and is to predict   {:?}", decoder_output(&ids[..]));

    let sizes = [260, 270, 280, 300, 320, 340, 360];
    let mut lines = Vec::new();
    for (name, kind) in [
        ("bpe", TokenizerKind::Bpe),
        ("unigram", TokenizerKind::Unigram),
    ] {
        let mut points = Vec::new();
        for size in sizes {
            let tokenizer = trained(kind, size)?;
            let tokens: usize = CORPUS.iter().map(|line| tokenizer.encode(line).len()).sum();
            points.push((
                tokenizer.vocab_size() as f64,
                tokens as f64 / CORPUS.len() as f64,
            ));
        }
        lines.push((name.to_owned(), points));
    }
    let labels = ["entries of the vocabulary", "tokens of a line"];
    let panel = picture::curves("More entries, shorter rows", labels, lines);
    Ok(picture::show(
        "Vocabulary size and length of a line",
        vec![panel],
    )?)
}
