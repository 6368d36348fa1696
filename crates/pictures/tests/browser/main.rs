//! The page in a real browser: what it shows when someone chooses, points, steps and types.
//!
//! Needs Chromium; without one the test says so and passes, unless `ATTENTIVE_BROWSER_REQUIRED` is set.
//! `ATTENTIVE_SCREENSHOTS=FOLDER` keeps pictures of what was seen.

use attentive_browser::{Browser, keep};
use attentive_pictures::record::{Kind, Record};
use attentive_pictures::sample;
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_pictures::{map::Map, page};

/// A page of this record in the browser, if there is one.
fn opened(record: &Record, name: &str) -> Option<(Browser, tempfile::TempDir)> {
    let heading = Heading {
        source: record.source_text.clone(),
        target: record.target_text.clone(),
        model: "a made-up model".into(),
    };
    let selection = Selection {
        kinds: Kind::ALL.to_vec(),
        layer: None,
        heads: Heads::All,
        unit: Unit::Tokens,
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.html");
    std::fs::write(&path, page::write(record, &heading, &selection).unwrap()).unwrap();
    let mut browser = Browser::for_test(name, 1500, 1000)?;
    browser.open(&format!("file://{}", path.display()));
    Some((browser, folder))
}

/// The weights that the map on the page shows.
fn weights(browser: &mut Browser) -> Vec<f32> {
    let found = browser.ask("Array.from(document.querySelectorAll('#map [data-weight]'), (cell) => Number(cell.dataset.weight))");
    let numbers = found.as_array().expect("a list").iter();
    numbers
        .map(|number| number.as_f64().expect("a number") as f32)
        .collect()
}

#[track_caller]
fn assert_shown(browser: &mut Browser, map: &Map) {
    let shown = weights(browser);
    assert_eq!(shown.len(), map.weights().len());
    for (i, (shown, weight)) in shown.iter().zip(map.weights()).enumerate() {
        assert!(
            (shown - weight).abs() < 2e-4,
            "cell {i} shows {shown} and not {weight}"
        );
    }
}

fn merged(record: &Record, kind: Kind, map: &Map) -> Map {
    map.merged(
        &record.queries(kind).word_of_token(),
        &record.keys(kind).word_of_token(),
    )
}

#[test]
fn layers_heads_and_kinds_can_be_chosen_and_the_map_shows_their_weights() {
    let record = sample::record(9, 8, 3, 4);
    let Some((mut browser, _folder)) = opened(&record, "choosing") else {
        return;
    };
    // Without a choice: the last layer of cross-attention, the mean of its heads.
    assert_shown(&mut browser, &record.mean(Kind::Cross, 2));
    keep(&mut browser, "start");
    browser.click("input[name=layer][value='1'] + span");
    browser.click("input[name=head][value='2'] + span");
    assert_shown(&mut browser, &record.cross[1][2]);
    browser.click("input[name=head][value=rollout] + span");
    assert_shown(&mut browser, &record.rollout(Kind::Cross, 1));
    browser.click("input[name=kind][value='1'] + span");
    browser.click("input[name=head][value='0'] + span");
    assert_shown(&mut browser, &record.decoder[1][0]);
    keep(&mut browser, "decoder");
    browser.click("input[name=kind][value='0'] + span");
    assert_shown(&mut browser, &record.encoder[1][0]);
    assert_eq!(browser.text("#axes"), Kind::Encoder.axes());
    keep(&mut browser, "encoder");
    // A small map at the bottom chooses both at once.
    browser.click("[data-head='2-3']");
    assert_shown(&mut browser, &record.encoder[2][3]);
    assert_eq!(
        browser.ask("document.querySelector('[data-head=\"2-3\"]').ariaPressed"),
        "true"
    );
    assert_eq!(
        browser.ask("document.querySelectorAll('.head').length"),
        3 * 6
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn pointing_at_a_token_shows_where_it_looks() {
    let record = sample::record(9, 8, 2, 3);
    let Some((mut browser, _folder)) = opened(&record, "pointing") else {
        return;
    };
    browser.click("input[name=head][value='1'] + span");
    let map = &record.cross[1][1];
    // The page knows hundredths of a per cent, and of equals it names the first.
    let strongest = |row: &[f32]| {
        let shown = |key: &usize| (row[*key] * 1e4).round() as u32;
        (0..row.len()).rev().max_by_key(shown).unwrap()
    };
    for query in [4, 2] {
        browser.hover(&format!("[data-token=query-{query}]"));
        let key = strongest(map.row(query));
        let said = browser.text("#readout");
        let (from, to) = (
            &record.written.tokens[query].text,
            &record.source.tokens[key].text,
        );
        assert!(
            said.starts_with(&format!("“{from}” looks most (")),
            "{said}"
        );
        assert!(said.ends_with(&format!("at “{to}”")), "{said}");
        // The lines of the token are strong, and each key says its share.
        let opacity = browser.ask(&format!("Number(document.querySelector('[data-line=\"{query}-{key}\"]').getAttribute('stroke-opacity'))"));
        assert!((opacity.as_f64().unwrap() as f32 - (0.08 + map.row(query)[key])).abs() < 2e-3);
        let share = browser.text(&format!("[data-token=key-{key}] .share"));
        assert!(
            (share.trim_end_matches(" %").parse::<f32>().unwrap() - 100.0 * map.row(query)[key])
                .abs()
                <= 0.51,
            "{share}"
        );
        assert_eq!(
            browser.ask("document.querySelector('#map .mark').getBoundingClientRect().height > 0"),
            true
        );
    }
    keep(&mut browser, "pointing");
    browser.hover("[data-token=key-3]");
    assert!(browser.text("#readout").contains(&format!(
        "“{}” is looked at most",
        record.source.tokens[3].text
    )));
    browser.hover("#map [data-query='5'][data-key='6']");
    let said = browser.text("#readout");
    assert_eq!(
        said,
        format!(
            "“{}” looks {} at “{}”",
            record.written.tokens[5].text,
            percent(map.row(5)[6]),
            record.source.tokens[6].text
        )
    );
    // What was clicked stays when the pointer leaves.
    browser.click("[data-token=query-1]");
    browser.hover("#model");
    assert!(
        browser
            .text("#readout")
            .starts_with(&format!("“{}” looks most", record.written.tokens[1].text))
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

fn percent(weight: f32) -> String {
    let value = (weight * 1e4).round() / 100.0;
    if !(0.05..9.95).contains(&value) {
        format!("{value:.0} %")
    } else {
        format!("{value:.1} %")
    }
}

#[test]
fn the_decoder_can_be_stepped_with_its_probabilities() {
    let mut record = sample::record(7, 6, 2, 2);
    record.steps[2].rank = 4;
    record.steps[2].probability = 0.031;
    let Some((mut browser, _folder)) = opened(&record, "stepping") else {
        return;
    };
    assert_eq!(browser.text("#step-number"), "1 of 6");
    for step in 1..=2 {
        browser.click("#forward");
        assert_eq!(browser.text("#step-number"), format!("{} of 6", step + 1));
        assert_eq!(
            browser.text("#so-far .now"),
            record.written.tokens[step].text
        );
        assert_eq!(
            browser.ask("document.querySelectorAll('#so-far .read').length"),
            step + 1
        );
        // The same row is marked in the map.
        assert!(browser.text("#readout").starts_with(&format!(
            "“{}” looks most",
            record.written.tokens[step].text
        )));
    }
    assert!(
        browser
            .text("#choice")
            .contains("3.1 %, number 4 by probability"),
        "{}",
        browser.text("#choice")
    );
    let candidates = browser
        .ask("Array.from(document.querySelectorAll('#next bdi'), (node) => node.textContent)");
    assert_eq!(candidates[0], record.written.tokens[2].text.as_str());
    assert_eq!(candidates[2], "<script>");
    assert_eq!(browser.text("#next li:nth-child(2) .probability"), "13 %");
    keep(&mut browser, "stepping");
    // Whoever has clicked elsewhere still steps with the arrows.
    browser.click("input[name=head][value='1'] + span");
    browser.press("ArrowLeft");
    assert_eq!(browser.text("#step-number"), "2 of 6");
    for _ in 0..9 {
        browser.press("ArrowRight");
    }
    assert_eq!(browser.text("#step-number"), "6 of 6");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn words_merge_subwords_and_keys_do_what_the_page_says() {
    let record = sample::record(9, 8, 2, 3);
    let Some((mut browser, _folder)) = opened(&record, "keys") else {
        return;
    };
    browser.press("w");
    assert_shown(
        &mut browser,
        &merged(&record, Kind::Cross, &record.mean(Kind::Cross, 1)),
    );
    keep(&mut browser, "words");
    browser.press("w");
    browser.press("l");
    assert_shown(&mut browser, &record.mean(Kind::Cross, 0));
    browser.press("h");
    assert_shown(&mut browser, &record.rollout(Kind::Cross, 0));
    browser.press("h");
    assert_shown(&mut browser, &record.cross[0][0]);
    browser.press("k");
    assert_shown(&mut browser, &record.encoder[0][0]);
    browser.press("ArrowDown");
    browser.press("ArrowDown");
    assert!(
        browser
            .text("#readout")
            .starts_with(&format!("“{}” looks", record.source.tokens[1].text))
    );
    browser.press("Escape");
    assert_eq!(browser.text("#readout"), "point at a token or a cell");
    let theme = |browser: &mut Browser| {
        browser.ask("document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor")
    };
    let before = theme(&mut browser);
    browser.press("t");
    assert_ne!(theme(&mut browser), before);
    keep(&mut browser, "dark");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn two_to_sixty_tokens_fit_and_nasty_ones_are_only_text() {
    let nasty = [
        "\"quoted\"",
        "<script>window.hacked=1</script>",
        "<img src=x onerror=window.hacked=1>",
        "👩‍👧",
        "שלום",
        "مرحبا",
        "\u{202E}abc",
        "&amp;",
        "'",
        "Donaudampfschifffahrtsgesellschaft",
        "</s>",
    ];
    let long: Vec<String> = (1..60)
        .map(|i| format!("wort{i}"))
        .chain(["</s>".into()])
        .collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    for (name, tokens) in [
        ("nasty", &nasty[..]),
        ("sixty", &long),
        ("two", &["ja", "</s>"]),
    ] {
        let record = sample::with_tokens(tokens, tokens, 2, 8);
        let Some((mut browser, _folder)) = opened(&record, name) else {
            return;
        };
        keep(&mut browser, name);
        assert!(
            browser
                .ask("window.hacked === undefined")
                .as_bool()
                .unwrap(),
            "{name}"
        );
        assert_eq!(
            browser.ask("document.querySelectorAll('img, body > script').length"),
            2,
            "our own scripts alone"
        );
        assert_shown(&mut browser, &record.mean(Kind::Cross, 1));
        for (i, token) in record.source.tokens.iter().enumerate() {
            let shown = browser.text(&format!("[data-token=key-{i}] title"));
            assert_eq!(shown, attentive_pictures::label::visible(&token.text));
        }
        // No label runs out of its picture.
        let outside = browser.ask(
            "Array.from(document.querySelectorAll('svg text')).filter((text) => {
               const [own, whole] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
               return own.left < whole.left - 2 || own.right > whole.right + 2 || own.top < whole.top - 2 || own.bottom > whole.bottom + 2;
             }).map((text) => text.textContent)",
        );
        assert_eq!(outside.as_array().unwrap().len(), 0, "{name}: {outside}");
        // Nor does the page become wider than the window.
        assert!(
            browser
                .ask("document.documentElement.scrollWidth <= window.innerWidth")
                .as_bool()
                .unwrap(),
            "{name}"
        );
        browser.click("input[name=kind][value='0'] + span");
        assert!(browser.errors.is_empty(), "{name}: {:?}", browser.errors);
    }
}

/// Not a check: makes the pictures of `docs/gallery.md` out of the page that `ATTENTIVE_PAGE` names.
#[test]
#[ignore = "makes pictures; see docs/make-gallery"]
fn screenshots_of_every_view() {
    let page = std::env::var("ATTENTIVE_PAGE").expect("ATTENTIVE_PAGE names a page");
    let page = std::fs::canonicalize(page).expect("the page is there");
    let mut browser = Browser::for_test("screenshots", 1500, 900).expect("a browser");
    browser.open(&format!("file://{}", page.display()));
    keep(&mut browser, "page-cross-mean");
    browser.click("input[name=head][value='1'] + span");
    browser.hover("[data-token=query-4]");
    keep(&mut browser, "page-pointing");
    browser.hover("#model");
    browser.click("input[name=kind][value='1'] + span");
    browser.click("input[name=head][value=mean] + span");
    for _ in 0..5 {
        browser.press("ArrowRight");
    }
    keep(&mut browser, "page-decoder-stepping");
    browser.click("input[name=kind][value='0'] + span");
    browser.click("input[name=layer][value='0'] + span");
    browser.press("Escape");
    keep(&mut browser, "page-encoder");
    browser.press("t");
    browser.click("input[name=kind][value='2'] + span");
    browser.click("input[name=layer][value='2'] + span");
    browser.click("input[name=head][value=rollout] + span");
    browser.press("w");
    keep(&mut browser, "page-rollout-words-dark");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
