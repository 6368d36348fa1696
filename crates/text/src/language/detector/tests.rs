//! What people type is recognized, and what is in no language in play is said to be in another.

use std::path::Path;

use super::*;
use crate::lines::read_lines;

fn german_english() -> Detector {
    Detector::new(["de", "en"])
}

#[test]
fn what_people_type_is_recognized() {
    let german = [
        "Hallo",
        "danke schoen",
        "guten morgen wie geht es dir",
        "WO IST DER BAHNHOF",
        "Ich liebe dich",
        "Grüße",
        "der",
        "tschüss",
        "Wie spät ist es?",
        "mir ist kalt",
        "Straßenbahnhaltestelle",
        "bitte",
        "Ja",
        "nein",
        "das weiss ich nicht",
        "fuer dich",
        "Krankenversicherung",
        "Guten Tag!",
        "Wir fahren nach Łódź",
        "Das Café ist à la mode",
        "gehts dir gut?",
        "was ist das",
    ];
    let english = [
        "hello",
        "Where is the station",
        "the",
        "I love you",
        "THANK YOU VERY MUCH",
        "yes",
        "no",
        "what's up",
        "don’t worry",
        "good morning",
        "see you",
        "where are you",
        "how much is it",
        "neighbourhood",
        "We live in São Paulo",
        "i dont know",
        "Please help me",
        "sorry",
        "my name is tom",
    ];
    let detector = german_english();
    for (texts, expected) in [(&german[..], "de"), (&english, "en")] {
        for text in texts {
            let found = detector.detect(text);
            assert_eq!(found.other, None, "{text}: {found:?}");
            let best = found.best().unwrap();
            assert_eq!(best.language, expected, "{text}: {found:?}");
        }
    }
}

/// Texts and their languages.
const TEXTS: [(&str, &str); 44] = [
    ("Bonjour, comment allez-vous ?", "fr"),
    ("Je ne sais pas", "fr"),
    ("Où est la gare ?", "fr"),
    ("Il fait beau aujourd'hui", "fr"),
    ("C'est la vie, mon ami", "fr"),
    ("Je voudrais une baguette, s'il vous plaît", "fr"),
    ("¿Dónde está la estación?", "es"),
    ("No sé qué hacer", "es"),
    ("Buenos días, señor", "es"),
    ("hola como estas", "es"),
    ("Me gusta el café con leche", "es"),
    ("Buongiorno, come stai?", "it"),
    ("Non lo so", "it"),
    ("Mi piace questa città", "it"),
    ("Bom dia, como você está?", "pt"),
    ("Eu não sei", "pt"),
    ("Ik weet het niet", "nl"),
    ("Hoe gaat het met jou?", "nl"),
    ("Dzień dobry, jak się masz?", "pl"),
    ("Nie wiem, gdzie jest dworzec", "pl"),
    ("Jag vet inte", "sv"),
    ("Jeg ved det ikke", "da"),
    ("Bilmiyorum, teşekkürler", "tr"),
    ("Děkuji, nevím", "cs"),
    ("Nem tudom", "hu"),
    ("Nu știu", "ro"),
    ("En tiedä missä hän on", "fi"),
    ("Saya tidak tahu", "id"),
    ("Привет", "ru"),
    ("Где вокзал?", "ru"),
    ("Дякую", "uk"),
    ("你好", "zh"),
    ("駅はどこですか", "ja"),
    ("Γειά σου", "el"),
    ("أين المحطة", "ar"),
    ("ممنون، خیلی خوب", "fa"),
    ("안녕하세요", "ko"),
    ("Xin chào, bạn khỏe không?", "vi"),
    ("मुझे नहीं पता", "hi"),
    ("ฉันไม่รู้", "th"),
    ("לא יודע", "he"),
    ("Не знам, благодаря", "bg"),
    ("Ne znam, hvala", "hr"),
    ("Neviem, ďakujem", "sk"),
];

#[test]
fn texts_are_recognized_among_all_their_languages() {
    let mut codes: Vec<&str> = TEXTS.iter().map(|(_, code)| *code).collect();
    codes.extend(["de", "en"]);
    codes.sort();
    codes.dedup();
    let detector = Detector::new(codes);
    let mut wrong = Vec::new();
    for (text, code) in TEXTS {
        let found = detector.detect(text);
        if found.best().map(|best| best.language) != Some(code) {
            wrong.push(format!("{text}: {:?}", &found.ranked[..3]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_in_no_language_in_play_is_said_to_be_in_another() {
    let detector = german_english();
    let mut missed = Vec::new();
    for (text, code) in TEXTS {
        let found = detector.detect(text);
        if found.other.is_none() {
            missed.push(format!("{text} ({code}): {:?}", found.ranked));
        }
    }
    // A phrase of a few words may pass; only a warning hangs on it.
    assert!(missed.len() <= 4, "{}", missed.join("\n"));
    assert!(
        detector
            .detect("Je ne sais pas où est la gare, je suis perdu.")
            .other
            == Some("fr")
    );
}

#[test]
fn without_words_there_is_no_language() {
    for text in [
        "",
        " \n",
        "42",
        "3,14 %",
        "😀",
        "https://www.example.com/the",
        "a@example.com",
        "?!",
        "\u{E000}",
    ] {
        let detector = german_english();
        let found = detector.detect(text);
        assert!(found.ranked.is_empty() && found.other.is_none(), "{text}");
    }
}

#[test]
fn confidence_is_a_probability_and_a_name_says_little() {
    let detector = german_english();
    let sure = |text| detector.detect(text).best().unwrap().confidence;
    assert!(sure("Tom") < 0.7, "{}", sure("Tom"));
    assert!(sure("computer") < 0.7, "{}", sure("computer"));
    assert!(sure("Ich weiß nicht, wo der Bahnhof ist.") > 0.99);
    assert!(sure("Tom was belligerent.") < sure("I do not know where the station is."));
    for languages in [
        &["de"][..],
        &["de", "en", "fr", "ja", "xx"],
        &["nb", "zh-Hans"],
        &[],
    ] {
        let detector = Detector::new(languages.iter().copied());
        let long = "viele Wörter ".repeat(5000);
        for text in ["Tom", "Où est la gare ?", "駅", "ы", &long] {
            let found = detector.detect(text);
            let sum: f64 = found.ranked.iter().map(|guess| guess.confidence).sum();
            assert!((0.0..=1.0 + 1e-9).contains(&sum), "{text}: {found:?}");
            assert_eq!(found.ranked.len(), languages.len());
            assert!(
                found
                    .ranked
                    .is_sorted_by(|a, b| a.confidence >= b.confidence)
            );
        }
    }
}

#[test]
fn codes_are_given_back_as_they_were_given() {
    let detector = Detector::new(["nb", "pt_BR", "zh-Hans", "eng"]);
    for (text, code) in [
        ("Jeg vet ikke hva det er", "nb"),
        ("Eu não sei onde está", "pt_BR"),
        ("我不知道", "zh-Hans"),
        ("I do not know", "eng"),
    ] {
        let found = detector.detect(text);
        assert_eq!(
            found.best().map(|best| best.language),
            Some(code),
            "{found:?}"
        );
        assert_eq!(found.other, None, "{text}");
    }
    assert_eq!(detector.languages().len(), 4);
}

#[test]
fn every_profile_is_in_the_list_and_has_a_name() {
    let mut codes: Vec<&str> = profiles::TEXT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(' ').skip(1).map(|entry| &entry[..2]))
        .collect();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.join(" "), PROFILES);
    for code in codes.into_iter().chain(scripts::codes()) {
        assert!(super::super::name(code).is_some(), "{code}");
    }
}

/// Makes texts out of a line.
type Change = fn(&str) -> Vec<String>;

/// How many of the texts of a corpus are taken for what they are, and how many for another language, in
/// percent.
fn measure(detector: &Detector, corpus: &str, change: Change) -> Option<(f64, f64)> {
    let data = std::env::var_os("ATTENTIVE_DATA")?;
    let (mut right, mut other, mut all) = (0, 0, 0);
    for language in ["de", "en"] {
        let path = Path::new(&data).join(format!("{corpus}.{language}.gz"));
        let lines = read_lines(&path).unwrap();
        for text in lines.iter().flat_map(|line| change(line)) {
            let found = detector.detect(&text);
            right += usize::from(found.best().is_some_and(|best| best.language == language));
            other += usize::from(found.other.is_some());
            all += 1;
        }
    }
    let percent = |count: usize| count as f64 * 100.0 / all as f64;
    eprintln!(
        "{corpus}, {} languages: {:.2}% of {all} right, {:.2}% another",
        detector.languages().len(),
        percent(right),
        percent(other)
    );
    Some((percent(right), percent(other)))
}

/// As some people type: lowercase, no punctuation, no umlauts.
fn careless(line: &str) -> Vec<String> {
    vec![super::super::without_umlauts(&words(line).join(" "))]
}

fn whole(line: &str) -> Vec<String> {
    vec![line.to_string()]
}

#[test]
fn german_and_english_sentences_are_told_apart() {
    let tatoeba = "tatoeba/val";
    let multi30k = "multi30k/test_2016_flickr";
    let two = german_english();
    let seven = Detector::new(["de", "en", "fr", "es", "it", "pt", "nl"]);
    let cases: [(&Detector, &str, Change, f64); 6] = [
        (&two, tatoeba, whole, 99.8),
        (&two, multi30k, whole, 99.9),
        (&two, tatoeba, careless, 99.7),
        (&two, multi30k, careless, 99.9),
        // Many words are the same in both languages: `in`, `war`, `Tom`.
        (&two, tatoeba, words, 94.5),
        (&seven, tatoeba, whole, 99.0),
    ];
    for (detector, corpus, change, least) in cases {
        let Some((right, other)) = measure(detector, corpus, change) else {
            eprintln!(
                "SKIPPED: set ATTENTIVE_DATA to the data folder to measure how much is recognized"
            );
            return;
        };
        assert!(right >= least, "{corpus}: {right}% are right");
        assert!(other <= 1.0, "{corpus}: {other}% are taken for others");
    }
}
