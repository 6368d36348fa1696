//! Tests of XLIFF: which units are translated, and what is written.

use super::*;

fn filled(source: &str, change: impl Fn(&str) -> String) -> (Vec<String>, String) {
    let template = read(source.to_owned()).unwrap();
    assert_eq!(template.fill(&template.texts, &template.texts), source);
    let change = |part: &Part| match part {
        Part::Text(text) => Part::Text(change(text)),
        other => other.clone(),
    };
    let new: Vec<Marked> = template
        .texts
        .iter()
        .map(|text| Marked {
            parts: text.parts.iter().map(change).collect(),
        })
        .collect();
    let texts = template.texts.iter().map(Marked::text).collect();
    (texts, template.fill(&template.texts, &new))
}

#[test]
fn version_one_gets_targets_with_a_state() {
    let source = r#"<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="de"><body>
  <trans-unit id="1">
    <source>Klicken Sie auf <g id="1">Öffnen &amp; <x id="2"/>Schließen</g>.</source>
  </trans-unit>
  <trans-unit id="2"><source>Hund</source><target state="final">dog</target></trans-unit>
  <trans-unit id="3"><source>Katze</source><target state="new"/></trans-unit>
  <trans-unit id="4" translate="no"><source>Name</source></trans-unit>
  <trans-unit id="5"><source>A B</source><seg-source><mrk mtype="seg" mid="0">A</mrk> <mrk mtype="seg" mid="1">B</mrk></seg-source></trans-unit>
</body></file></xliff>"#;
    let (texts, new) = filled(source, |text| text.to_uppercase());
    assert_eq!(
        texts,
        ["Klicken Sie auf Öffnen & Schließen.", "Katze", "A", "B"]
    );
    for part in [
        "</source>\n    <target state=\"needs-review-translation\" state-qualifier=\"leveraged-mt\">KLICKEN SIE AUF <g \
         id=\"1\">ÖFFNEN &amp; <x id=\"2\"/>SCHLIESSEN</g>.</target>\n  </trans-unit>",
        "<target state=\"final\">dog</target>",
        "<source>Katze</source><target state=\"needs-review-translation\" state-qualifier=\"leveraged-mt\">KATZE</target>",
        "<source>Name</source></trans-unit>",
    ] {
        assert!(new.contains(part), "{part}\n--- is not in ---\n{new}");
    }
    let template = read(source.to_owned()).unwrap();
    let reasons: Vec<Reason> = template
        .skipped
        .iter()
        .map(|skipped| skipped.reason)
        .collect();
    assert_eq!(reasons, [Reason::AlreadyTranslated, Reason::NotToTranslate]);
    assert!(
        with_language(new, "en").contains("<file source-language=\"de\" target-language=\"en\">")
    );
}

#[test]
fn version_two_gets_targets_in_segments() {
    let source = r#"<xliff version="2.0" srcLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="u">
 <segment id="s"><source>Ein <pc id="1">roter</pc> Hund<ph id="2"/> rennt</source></segment>
 <segment state="final"><source>Ja</source><target>Yes</target></segment>
 <segment state="initial"><source xml:space="preserve">Eins
  Zwei</source><target></target></segment>
</unit></file></xliff>"#;
    let (texts, new) = filled(source, |text| text.to_uppercase());
    assert_eq!(texts, ["Ein roter Hund rennt", "Eins", "Zwei"]);
    for part in [
        "<segment id=\"s\" state=\"translated\"><source>Ein <pc id=\"1\">roter</pc> Hund<ph id=\"2\"/> \
         rennt</source><target>EIN <pc id=\"1\">ROTER</pc> HUND<ph id=\"2\"/> RENNT</target></segment>",
        "<segment state=\"final\"><source>Ja</source><target>Yes</target></segment>",
        "<segment state=\"translated\">",
        "<target>EINS\n  ZWEI</target>",
    ] {
        assert!(new.contains(part), "{part}\n--- is not in ---\n{new}");
    }
    assert!(with_language(new, "en").contains(" trgLang=\"en\""));
}

#[test]
fn other_files_are_refused() {
    for source in [
        "<html/>",
        "<xliff version='3.0'></xliff>",
        "<xliff/>",
        "no XML",
        "",
    ] {
        assert!(read(source.to_owned()).is_err(), "{source}");
    }
}
