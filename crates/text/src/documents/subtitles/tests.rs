//! Tests of subtitles: what is a text, and how it is divided again.

use super::*;

fn srt(source: &str) -> Template {
    let template = read_srt(source.to_owned()).unwrap();
    let same = template.fill(&template.texts, &template.texts);
    assert_eq!(same, source);
    template
}

fn texts(template: &Template) -> Vec<String> {
    template.texts.iter().map(Marked::text).collect()
}

#[test]
fn lines_of_a_cue_are_one_text_and_speakers_have_their_own() {
    let source = "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}Ein Hund rennt\r\nüber die <i>Wiese</i>.\r\n\r\n\
                  2\r\n00:00:03,000 --> 00:00:04,000\r\n- Wer ist da?\r\n- Niemand.\r\n";
    let template = srt(source);
    assert_eq!(
        texts(&template),
        ["Ein Hund rennt über die Wiese.", "Wer ist da?", "Niemand."]
    );
    let mut new = template.texts.clone();
    for part in &mut new[0].parts {
        if let Part::Text(text) = part {
            *text = text
                .replace(
                    "Ein Hund rennt über die ",
                    "A dog with a very long name runs across the ",
                )
                .replace("Wiese", "meadow");
        }
    }
    new[1] = Marked::plain("Who is there?");
    let filled = template.fill(&template.texts, &new);
    let expected = source
        .replace(
            "Ein Hund rennt\r\nüber die <i>Wiese</i>.",
            "A dog with a very long name\r\nruns across the <i>meadow</i>.",
        )
        .replace("Wer ist da?", "Who is there?");
    assert_eq!(filled, expected);
}

#[test]
fn a_sentence_over_two_cues_is_one_text_and_divided_again() {
    let source = "1\n00:00:01,000 --> 00:00:02,000\n<i>Gestern habe ich im Park,</i>\n\n2\n00:00:02,100 --> 00:00:04,000\n\
                  <i>den du kennst, einen Hund gesehen.</i>\n\n3\n00:00:04,000 --> 00:00:05,000\nGut.\n";
    let template = srt(source);
    assert_eq!(texts(&template).len(), 2);
    let new = [
        Marked::plain("Yesterday I saw a dog, in the park that you know."),
        Marked::plain("Good."),
    ];
    let filled = template.fill(&template.texts, &new);
    let expected = "1\n00:00:01,000 --> 00:00:02,000\nYesterday I saw a dog,\n\n2\n00:00:02,100 --> 00:00:04,000\n\
                    in the park that you know.\n\n3\n00:00:04,000 --> 00:00:05,000\nGood.\n";
    assert_eq!(filled, expected);
    // A tag around all of it ends and begins with the cues.
    let source = source.replace(",</i>", ",").replace("\n<i>den", "\nden");
    let template = srt(&source);
    let filled = template.fill(&template.texts, &new);
    assert!(
        filled.contains("<i>Yesterday I saw a dog,</i>\n\n2\n"),
        "{filled}"
    );
    assert!(
        filled.contains("\n<i>in the park that you know.</i>\n"),
        "{filled}"
    );
}

#[test]
fn a_cue_for_which_no_word_is_left_stays_in_its_place() {
    let source = "1\n00:00:01,000 --> 00:00:02,000\nIch gehe jetzt\n\n2\n00:00:02,000 --> 00:00:03,000\nnach Hause.\n";
    let template = srt(source);
    let filled = template.fill(&template.texts, &[Marked::plain("Bye.")]);
    assert_eq!(
        filled,
        "1\n00:00:01,000 --> 00:00:02,000\nBye.\n\n2\n00:00:02,000 --> 00:00:03,000\n\n"
    );
}

#[test]
fn vtt_keeps_notes_styles_and_voices() {
    let source = "WEBVTT - Titel\n\nNOTE Ein Kommentar\n\nSTYLE\n::cue {}\n\nid\n00:01.000 --> 00:02.000 align:start\n\
                  <v Anna>Tom &amp; <c.x>Jerry</c> <00:01.500>rennen\n";
    let template = read_vtt(source.to_owned()).unwrap();
    assert_eq!(template.fill(&template.texts, &template.texts), source);
    assert_eq!(texts(&template), ["Tom & Jerry rennen"]);
    let filled = template.fill(&template.texts, &[Marked::plain("A < B & C")]);
    assert_eq!(
        filled,
        source.replace(
            "Tom &amp; <c.x>Jerry</c> <00:01.500>rennen",
            "A &lt; B &amp; C"
        )
    );
    assert!(
        read_vtt("1\n".to_owned())
            .unwrap_err()
            .problem
            .contains("WEBVTT")
    );
}

#[test]
fn a_file_without_times_is_refused() {
    assert!(read_srt("Hallo\n".to_owned()).is_err());
    assert!(read_srt("00:00:01,000 --> 00:00:02,000\n\n".to_owned()).is_err());
    assert!(read_srt(String::new()).is_ok());
}
