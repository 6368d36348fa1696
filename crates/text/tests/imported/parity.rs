//! Tokenizers beside the programs that they come from: `transformers`' MarianTokenizer, subword-nmt and the
//! SentencePiece package; and what holds for any text.

use std::fs;
use std::path::PathBuf;

use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};
use attentive_text::tokenizer::vocabulary_file;
use attentive_text::{SentencePiece, Tokenizer};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    CODES, EXPECTED, MARIAN, TOKENIZERS, marian, marian_vocabulary, strings, subword_nmt, unpacked,
    with_specials,
};

#[test]
fn pieces_get_the_ids_that_the_marian_tokenizer_gives_them() {
    let texts = strings(&EXPECTED["texts"]);
    assert!(texts.len() >= 200);
    for name in MARIAN {
        let tokenizer = marian(name);
        let expected = &EXPECTED["marian"][name];
        let tokens = strings(&expected["tokens"]);
        let (mut unknown, mut languages, mut refused) = (0, 0, 0);
        for (text, ids) in texts.iter().zip(expected["ids"].as_array().unwrap()) {
            if other_language(text, &tokenizer) {
                refused += 1;
                continue;
            }
            let ids: Vec<u32> = numbers(ids)
                // Text that spells a special token stays text.
                .map(|id| our_id(&tokenizer, &tokens[id]).filter(|id| *id >= UNK))
                .map(|id| id.unwrap_or(UNK))
                .collect();
            unknown += ids.iter().filter(|id| **id == UNK).count();
            languages += usize::from(
                ids.first()
                    .is_some_and(|id| tokenizer.token(*id).unwrap().starts_with(">>")),
            );
            assert_eq!(tokenizer.encode(text), ids, "{name}: {text:?}");
            assert_eq!(tokenizer.pieces(text).len(), ids.len(), "{name}: {text:?}");
        }
        assert!(
            unknown > 20 && languages > 8 && refused < 4,
            "{name}: {unknown} {languages} {refused}"
        );
    }
}

#[test]
fn ids_are_decoded_as_the_marian_tokenizer_decodes_them() {
    for name in MARIAN {
        let tokenizer = marian(name);
        let tokens = strings(&EXPECTED["marian"][name]["tokens"]);
        let cases = EXPECTED["marian"][name]["decoded"].as_array().unwrap();
        assert!(cases.len() >= 200);
        for case in cases {
            let ids: Vec<u32> = numbers(&case[0])
                .map(|id| our_id(&tokenizer, &tokens[id]).unwrap())
                .collect();
            assert_eq!(
                tokenizer.decode(&ids),
                case[1].as_str().unwrap(),
                "{name}: {case}"
            );
        }
        let word = tokenizer.id("▁nowhere").unwrap();
        assert_eq!(
            tokenizer.decode(&[BOS, word, UNK, word, 99_999, EOS]),
            "nowhere ⁇  nowhere ⁇"
        );
    }
}

#[test]
fn only_a_language_token_of_the_vocabulary_at_the_very_beginning_is_one_token() {
    let tokenizer = marian("unigram");
    let language = tokenizer.id(">>fra<<").unwrap();
    let dog = tokenizer.encode("the dog");
    assert_eq!(
        tokenizer.encode(">>fra<< the dog"),
        [&[language][..], &dog].concat()
    );
    assert_eq!(tokenizer.pieces(">>fra<< the dog")[0], ">>fra<<");
    for text in [
        " >>fra<< the dog",
        "the >>fra<< dog",
        ">>xyz<< the dog",
        "</s>",
        ">>fra<<>>fra<<",
    ] {
        let ids = tokenizer.encode(text);
        assert!(
            !ids[1..].contains(&language) && !ids.contains(&EOS),
            "{text:?}: {ids:?}"
        );
    }
    assert_ne!(tokenizer.encode(" >>fra<< the dog")[0], language);
    assert!(tokenizer.encode(">>xyz<< the dog").len() > dog.len() + 1);

    // None of these characters is known, so that they are one piece also within a text.
    let tokens = [marian_vocabulary("unigram"), vec![">>ᚠᚠ<<".to_owned()]].concat();
    let runes = tokens.len() as u32 - 1;
    let spm = unpacked("unigram.spm.gz");
    let tokenizer = Tokenizer::sentencepiece_with_vocabulary(&spm, tokens).unwrap();
    assert!(
        tokenizer
            .pieces("the >>ᚠᚠ<< dog")
            .contains(&">>ᚠᚠ<<".to_owned())
    );
    assert!(!tokenizer.encode("the >>ᚠᚠ<< dog").contains(&runes));
    assert_eq!(tokenizer.encode(">>ᚠᚠ<< dog")[0], runes);
}

#[test]
fn words_are_cut_as_subword_nmt_cuts_them() {
    for name in CODES {
        let expected = &EXPECTED["subword_nmt"][name];
        let tokenizer = subword_nmt(name);
        let texts = strings(&expected["texts"]);
        assert!(texts.len() >= 200);
        let mut unknown = 0;
        for (text, pieces) in texts.iter().zip(expected["pieces"].as_array().unwrap()) {
            let pieces = strings(pieces);
            assert_eq!(tokenizer.pieces(text), pieces, "{name}: {text:?}");
            let id = |piece: &String| tokenizer.id(piece).filter(|id| *id > UNK).unwrap_or(UNK);
            let ids: Vec<u32> = pieces.iter().map(id).collect();
            unknown += ids.iter().filter(|id| **id == UNK).count();
            assert_eq!(tokenizer.encode(text), ids, "{name}: {text:?}");
        }
        assert!(unknown > 20, "{name}: {unknown}");
        for case in expected["decoded"].as_array().unwrap() {
            let ids: Vec<u32> = strings(&case[0])
                .iter()
                .map(|token| tokenizer.id(token).unwrap())
                .collect();
            assert_eq!(
                tokenizer.decode(&ids),
                case[1].as_str().unwrap(),
                "{name}: {case}"
            );
        }
        assert_eq!(
            tokenizer.decode(&[BOS, UNK, PAD, 99_999, EOS]),
            "<unk> <unk>"
        );
    }
}

#[test]
fn a_word_without_end_is_cut_in_a_moment() {
    // Merges that look at the whole word again each time would take minutes.
    let text = "theforeststraße".repeat(20_000);
    for name in CODES {
        let tokenizer = subword_nmt(name);
        let pieces = tokenizer.pieces(&text);
        let letters: String = pieces
            .iter()
            .map(|piece| piece.trim_end_matches("@@"))
            .collect();
        assert!(letters == text, "{name}");
    }
}

#[test]
fn dropped_merges_are_not_made_and_lose_no_text() {
    let tokenizer = subword_nmt("0.2");
    let text = "the quick brown fox";
    let known = |ids: &[u32]| ids.iter().all(|id| *id > UNK);
    let whole = tokenizer.encode_with_dropout(text, &mut || false);
    assert_eq!(whole, tokenizer.encode(text));
    let letters = tokenizer.encode_with_dropout(text, &mut || true);
    assert_eq!(
        letters.len(),
        text.chars().filter(|char| *char != ' ').count()
    );
    let mut turn = 0;
    let some = tokenizer.encode_with_dropout(text, &mut || {
        turn += 1;
        turn % 3 == 0
    });
    assert!(whole.len() < some.len() && some.len() < letters.len());
    for ids in [&whole, &some].into_iter().filter(|ids| known(ids)) {
        assert_eq!(tokenizer.decode(ids), text);
    }
    for (name, tokenizer) in &*TOKENIZERS {
        if !name.starts_with("subword") {
            assert_eq!(
                tokenizer.encode_with_dropout(text, &mut || true),
                tokenizer.encode(text)
            );
        }
    }
}

#[test]
fn real_files_are_cut_as_their_own_programs_cut_them() {
    let Some(models) = std::env::var_os("ATTENTIVE_MODELS").map(PathBuf::from) else {
        println!("SKIPPED: ATTENTIVE_MODELS does not name the folder of models");
        return;
    };
    let texts = strings(&EXPECTED["texts"]);
    for name in ["marian", "bergamot"] {
        let expected = &EXPECTED["real"][name];
        let path = models.join(expected["file"].as_str().unwrap());
        let model = SentencePiece::load(&path).unwrap();
        let plain = Tokenizer::load(&path).unwrap();
        // The same pieces in the reverse order.
        let mut tokens: Vec<String> = (4..plain.vocab_size() as u32)
            .map(|id| plain.token(id).unwrap().to_owned())
            .collect();
        tokens.reverse();
        tokens.splice(0..0, SPECIALS.map(str::to_owned));
        let spm = fs::read(&path).unwrap();
        let reversed = Tokenizer::sentencepiece_with_vocabulary(&spm, tokens).unwrap();
        let pieces = expected["pieces"].as_array().unwrap();
        for ((text, pieces), ids) in texts
            .iter()
            .zip(pieces)
            .zip(expected["ids"].as_array().unwrap())
        {
            let ids: Vec<u32> = numbers(ids).map(|id| model.ids()[id]).collect();
            assert_eq!(plain.pieces(text), strings(pieces), "{name}: {text:?}");
            assert_eq!(plain.encode(text), ids, "{name}: {text:?}");
            let turned: Vec<u32> = ids
                .iter()
                .map(|id| {
                    if *id <= UNK {
                        *id
                    } else {
                        plain.vocab_size() as u32 + 3 - id
                    }
                })
                .collect();
            assert_eq!(reversed.encode(text), turned, "{name}: {text:?}");
            assert_eq!(
                reversed.decode(&turned),
                plain.decode(&ids).trim(),
                "{name}: {text:?}"
            );
        }
    }
    let folder = models.join("fairseq-latin2nqo");
    let codes = fs::read_to_string(folder.join("bpe.code")).unwrap();
    let dict = |name: &str| {
        let tokens = vocabulary_file::fairseq_dict(folder.join(name)).unwrap();
        with_specials(tokens.into_iter().map(|(token, _)| token))
    };
    let (latin, nko) = (dict("dict.roman.txt"), dict("dict.nqo.txt"));
    assert_eq!(latin.len(), 776);
    let latin = Tokenizer::subword_nmt(&codes, latin).unwrap();
    let nko = Tokenizer::subword_nmt(&codes, nko).unwrap();
    let expected = &EXPECTED["real"]["fairseq"];
    let pieces = expected["pieces"].as_array().unwrap();
    for (text, pieces) in strings(&expected["texts"]).iter().zip(pieces) {
        assert_eq!(latin.pieces(text), strings(pieces), "{text:?}");
    }
    for (tokenizer, text) in [(latin, "musa dunbuya"), (nko, "ߡߎߛߊ߫ ߘߎ߲ߓߎߦߊ")] {
        assert!(tokenizer.encode(text).iter().all(|id| *id > UNK));
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_tokenizer_panic_or_gives_a_special_id(
        text in prop_oneof![any::<String>(), "[a-ztheö@▁<>/sw日\u{3000}\u{a0}\t👍 ]{0,40}", "(>>fra<<|</s>|<unk>|<s>|@@| |a){0,6}"],
    ) {
        for (name, tokenizer) in &*TOKENIZERS {
            let ids = tokenizer.encode(&text);
            prop_assert!(ids.iter().all(|id| *id >= UNK), "{}: {:?}", name, ids);
            prop_assert_eq!(tokenizer.pieces(&text).len(), ids.len(), "{}", name);
            let decoded = tokenizer.decode(&ids);
            // Known text comes back, however spaces were written; NFKC changes letters, too.
            if !ids.contains(&UNK) && !name.ends_with("bytes") && !text.contains(['▁', '@']) {
                let squeezed = |text: &str| text.split_whitespace().collect::<String>();
                prop_assert_eq!(squeezed(&decoded), squeezed(&text), "{}", name);
            }
        }
    }

    #[test]
    fn every_id_belongs_to_the_last_word_up_to_it(numbers in prop::collection::vec(any::<u32>(), 0..30)) {
        for (name, tokenizer) in &*TOKENIZERS {
            let most = tokenizer.vocab_size() as u32 + 3;
            let ids: Vec<u32> = numbers.iter().map(|number| number % most).collect();
            let words = |end| tokenizer.decode(&ids[..end]).split_whitespace().count();
            let expected: Vec<usize> = (1..=ids.len()).map(|end| words(end).saturating_sub(1)).collect();
            prop_assert_eq!(tokenizer.word_ids(&ids), expected, "{}: {:?}", name, ids);
            for id in ids {
                prop_assert!(!tokenizer.label(id).is_empty());
            }
        }
    }
}

/// The id of a token that another program calls so.
fn our_id(tokenizer: &Tokenizer, token: &str) -> Option<u32> {
    tokenizer.id(if token == "<pad>" {
        SPECIALS[PAD as usize]
    } else {
        token
    })
}

/// Whether a text begins with a language token that the vocabulary lacks: `<unk>` to `transformers`, text to us.
fn other_language(text: &str, tokenizer: &Tokenizer) -> bool {
    let end = text.strip_prefix(">>").and_then(|rest| rest.find("<<"));
    end.is_some_and(|end| tokenizer.id(&text[..end + 4]).is_none())
}

fn numbers(value: &Value) -> impl Iterator<Item = usize> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap() as usize)
}
