//! What every subword tokenizer promises: each string comes back exactly, special spellings are
//! ordinary text, and the file means the same to the `tokenizers` library as it does to us.

use std::sync::LazyLock;

use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};
use attentive_text::{TextError, Tokenizer, TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

const KINDS: [TokenizerKind; 2] = [TokenizerKind::Bpe, TokenizerKind::Unigram];

/// Sentences with much repetition, so that merges and pieces of many lengths are learned, and with
/// special spellings in them, so that a tokenizer that could learn those would.
fn sentences() -> Vec<String> {
    let subjects = [
        "Ein Mann",
        "Eine Frau",
        "Der Hund",
        "日本語の文",
        "Пёс",
        "</s>",
        "<unk>",
    ];
    let verbs = [
        "geht",
        "läuft schnell",
        "isn't here",
        "singt </s>",
        "said: \"ok\"",
        "спит",
    ];
    let rest = [
        "in 12 Häusern.",
        "on the beach...",
        "🎉🎉",
        "<s> <blank> </s>",
        "  zweimal  ",
    ];
    let mut sentences = Vec::new();
    for subject in subjects {
        for verb in verbs {
            sentences.extend(rest.iter().map(|rest| format!("{subject} {verb} {rest}")));
        }
    }
    sentences.extend((0..500).map(|number| format!("Straße {}, Haus {number}", number % 70)));
    sentences
}

fn options(kind: TokenizerKind) -> TokenizerOptions {
    TokenizerOptions {
        kind,
        vocab_size: 360,
        min_frequency: 2,
        lowercase: false,
    }
}

fn train(options: &TokenizerOptions) -> Tokenizer {
    let sentences = sentences();
    Tokenizer::train(options, &mut sentences.iter().map(String::as_str)).unwrap()
}

static TRAINED: LazyLock<Vec<Tokenizer>> =
    LazyLock::new(|| KINDS.iter().map(|kind| train(&options(*kind))).collect());

/// The saved files as the library reads them.
static LIBRARY: LazyLock<Vec<tokenizers::Tokenizer>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let read = |tokenizer: &Tokenizer| {
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, tokenizer.to_bytes().unwrap()).unwrap();
        let mut library = tokenizers::Tokenizer::from_file(&path).unwrap();
        library.set_encode_special_tokens(true);
        library
    };
    TRAINED.iter().map(read).collect()
});

/// Any characters at all, and likely ones in unlikely orders.
fn any_text() -> impl Strategy<Value = String> {
    let wild = proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter);
    let parts = [
        " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\0", "a", "Mann", "läuft", "'s", "'", "12", "½",
        "</s>", "<s>", "<unk>", "<blank>", "<", "/", ">", ".", "日本", "e\u{301}", "\u{301}", "👍🏽",
        "Ġ", "Ã", "\u{feff}", "ß",
    ];
    let woven = proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..20)
        .prop_map(|parts| parts.concat());
    prop_oneof![wild, woven]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_string_comes_back_exactly(text in any_text()) {
        for tokenizer in TRAINED.iter() {
            let ids = tokenizer.encode(&text);
            prop_assert_eq!(tokenizer.decode(&ids), text.clone());
            prop_assert!(ids.iter().all(|id| *id as usize >= SPECIALS.len()));
            prop_assert_eq!(tokenizer.pieces(&text).len(), ids.len());
        }
    }

    #[test]
    fn whatever_is_dropped_the_string_comes_back(text in any_text(), choices: Vec<bool>) {
        for tokenizer in TRAINED.iter() {
            let mut choices = choices.iter().copied().cycle();
            let ids = tokenizer.encode_with_dropout(&text, &mut || choices.next().unwrap_or(true));
            prop_assert_eq!(tokenizer.decode(&ids), text.clone());
        }
    }

    #[test]
    fn the_library_cuts_the_saved_file_alike(text in any_text()) {
        prop_assume!(!text.is_empty());
        for (ours, library) in TRAINED.iter().zip(LIBRARY.iter()) {
            let theirs = library.encode_fast(format!(" {text}"), false).unwrap();
            prop_assert_eq!(ours.encode(&text), theirs.get_ids());
        }
    }
}

#[test]
fn specials_come_first_and_then_every_byte_has_an_id() {
    for tokenizer in TRAINED.iter() {
        assert_eq!(tokenizer.vocab_size(), 360, "{}", tokenizer.kind());
        for (id, special) in (0..).zip(SPECIALS) {
            assert_eq!(tokenizer.token(id), Some(special));
            assert_eq!(tokenizer.id(special), Some(id));
        }
        for byte in tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet() {
            assert!(tokenizer.id(&byte.to_string()).is_some(), "{byte:?}");
        }
    }
}

#[test]
fn hiding_every_piece_leaves_characters_and_hiding_none_changes_nothing() {
    let [_, unigram] = &TRAINED[..] else { panic!() };
    let text = "Eine Frau geht";
    let characters = unigram.encode_with_dropout(text, &mut || true);
    let single = |id: &u32| unigram.label(*id).chars().count() == 1;
    assert!(characters.iter().all(single), "{:?}", unigram.pieces(text));
    assert_eq!(characters.len(), 1 + text.chars().count());
    assert_eq!(
        unigram.encode_with_dropout(text, &mut || false),
        unigram.encode(text)
    );
    assert!(unigram.encode(text).len() < characters.len());
}

#[test]
fn subwords_are_learned_and_not_only_bytes() {
    for tokenizer in TRAINED.iter() {
        let pieces = tokenizer.pieces("Straße, Haus");
        assert_eq!(pieces, ["▁Straße", ",", "▁Haus"], "{}", tokenizer.kind());
    }
}

#[test]
fn a_token_of_another_vocabulary_is_the_same_one_or_cut_where_it_stands_in_a_word() {
    for kind in [TokenizerKind::Unigram, TokenizerKind::Bpe] {
        let large = train(&options(kind));
        let small = train(&TokenizerOptions {
            vocab_size: 300,
            ..options(kind)
        });
        let (mut same, mut cut) = (0, 0);
        for id in 0..large.vocab_size() as u32 {
            let token = large.token(id).unwrap();
            let ids = small.ids_of_token(&large, id);
            match small.id(token) {
                Some(own) => {
                    assert_eq!(ids, [own], "{token}");
                    same += 1;
                }
                None => {
                    let spelled = ids.iter().map(|&id| small.token(id).unwrap());
                    assert_eq!(spelled.collect::<String>(), token, "no space is added");
                    cut += 1;
                }
            }
        }
        assert!(same >= 260 && cut > 10, "{same} {cut}");
    }
}

#[test]
fn special_ids_are_dropped_from_text_except_unk() {
    for tokenizer in TRAINED.iter() {
        let mut ids = vec![BOS];
        ids.extend(tokenizer.encode("Ein Mann"));
        ids.extend([UNK, EOS, PAD, PAD]);
        assert_eq!(tokenizer.decode(&ids), "Ein Mann<unk>");
        assert_eq!(tokenizer.decode(&[9999]), "<unk>");
        assert_eq!(tokenizer.decode(&[]), "");
        assert_eq!(tokenizer.label(EOS), "</s>");
    }
}

#[test]
fn half_a_character_is_labelled_by_its_bytes() {
    for tokenizer in TRAINED.iter() {
        let id = tokenizer.id("ð").unwrap(); // 0xF0, the first byte of an emoji
        assert_eq!(tokenizer.label(id), "<0xF0>");
        assert_eq!(tokenizer.decode(&[id]), "\u{fffd}");
    }
}

#[test]
fn a_saved_tokenizer_loads_as_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        for lowercase in [false, true] {
            let trained = train(&TokenizerOptions {
                lowercase,
                ..options(kind)
            });
            let path = folder.path().join(format!("{kind}-{lowercase}.json"));
            std::fs::write(&path, trained.to_bytes().unwrap()).unwrap();
            let loaded = Tokenizer::load(&path).unwrap();
            assert_eq!(loaded.kind(), kind);
            assert_eq!(loaded.fingerprint(), trained.fingerprint());
            for sentence in sentences() {
                assert_eq!(loaded.encode(&sentence), trained.encode(&sentence));
            }
        }
    }
}

#[test]
fn lowercase_is_part_of_the_tokenizer() {
    for kind in KINDS {
        let tokenizer = train(&TokenizerOptions {
            lowercase: true,
            ..options(kind)
        });
        assert_eq!(tokenizer.encode("EIN MANN"), tokenizer.encode("ein mann"));
        assert_eq!(tokenizer.decode(&tokenizer.encode("ÄRGER")), "ärger");
        assert_ne!(tokenizer.fingerprint(), train(&options(kind)).fingerprint());
    }
}

#[test]
fn the_smallest_vocabulary_has_bytes_only_and_still_gives_back_text() {
    for kind in KINDS {
        let tokenizer = train(&TokenizerOptions {
            vocab_size: 260,
            ..options(kind)
        });
        assert_eq!(tokenizer.vocab_size(), 260);
        assert_eq!(tokenizer.encode("Häuser").len(), 8); // seven bytes and the space before
        assert_eq!(tokenizer.decode(&tokenizer.encode("Häuser")), "Häuser");
    }
}

#[test]
fn training_without_room_or_text_is_an_error() {
    for kind in KINDS {
        let small = TokenizerOptions {
            vocab_size: 100,
            ..options(kind)
        };
        let error = Tokenizer::train(&small, &mut ["text"].into_iter()).unwrap_err();
        assert!(
            matches!(error, TextError::VocabularyTooSmall { least: 260, .. }),
            "{error}"
        );
        let blank = ["", " ", "\t\u{3000}"];
        let error = Tokenizer::train(&options(kind), &mut blank.into_iter()).unwrap_err();
        assert!(matches!(error, TextError::NoText), "{error}");
    }
}

#[test]
fn one_long_word_trains_and_comes_back() {
    let long = "Donaudampfschifffahrtsgesellschaft".repeat(300);
    for kind in KINDS {
        let tokenizer = Tokenizer::train(&options(kind), &mut [long.as_str()].into_iter()).unwrap();
        assert_eq!(tokenizer.decode(&tokenizer.encode(&long)), long);
    }
}

#[test]
fn debug_output_is_short() {
    assert_eq!(
        format!("{:?}", TRAINED[0]),
        "Tokenizer { kind: Bpe, vocab_size: 360 }"
    );
}

#[test]
fn clones_are_usable_from_other_threads() {
    let tokenizer = TRAINED[0].clone();
    let ids = std::thread::spawn(move || tokenizer.encode("Ein Mann"))
        .join()
        .unwrap();
    assert_eq!(ids, TRAINED[0].encode("Ein Mann"));
}
