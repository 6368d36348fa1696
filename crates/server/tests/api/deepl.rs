//! DeepL's API as its clients use it.

use serde_json::{Value, json};

use super::client::{get, post_form, post_json, post_parts, request};
use super::server::TestServer;

#[test]
fn texts_are_translated_from_json_and_from_forms() {
    let server = TestServer::start();
    let body = json!({"text": ["a b", "c"], "source_lang": "DE", "target_lang": "EN-US", "show_billed_characters": true,
        "model_type": "prefer_quality_optimized", "unheard_of": [1]});
    let answer = post_json(server.address, "/v2/translate", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = |text: &str| {
        json!({"detected_source_language": "DE", "text": server.expected(text),
            "billed_characters": text.len(), "model_type_used": "quality_optimized"})
    };
    assert_eq!(
        answer.json(),
        json!({"translations": [expected("a b"), expected("c")]})
    );
    let form = "text=a+b&text=c&source_lang=de&target_lang=en-gb&model_type=quality_optimized";
    assert_eq!(
        post_form(server.address, "/v2/translate", form).json(),
        answer.json()
    );
    // Each text has its own language.
    let body = json!({"text": ["Das ist ein Haus", "This is a house"], "target_lang": "DE"});
    let answer = post_json(server.address, "/v2/translate", &body).json();
    let found = |place: usize| answer["translations"][place]["detected_source_language"].clone();
    assert_eq!((found(0), found(1)), (json!("DE"), json!("EN")));
    assert_eq!(answer["translations"][0]["text"], "Das ist ein Haus");
    assert_eq!(
        answer["translations"][1]["text"],
        server.expected("This is a house")
    );
    let usage = get(server.address, "/v2/usage").json();
    assert!(usage["character_count"].as_u64() >= Some(8));
    assert_eq!(usage["character_limit"], json!(1_000_000_000_000_u64));
}

#[test]
fn sentences_are_split_as_asked() {
    let server = TestServer::start();
    let ask = |split: &str| {
        let body = json!({"text": ["a b! C d!\ne"], "source_lang": "DE", "target_lang": "EN-US", "split_sentences": split});
        post_json(server.address, "/v2/translate", &body).json()["translations"][0]["text"].clone()
    };
    let lines = server.expected("a b! C d!") + "\n" + &server.expected("e");
    assert_eq!(ask("1"), lines);
    assert_eq!(ask("nonewlines"), server.expected("a b! C d! e"));
    let whole = server
        .translator
        .with_options(attentive_runtime::TranslatorOptions {
            lines: attentive_runtime::Lines::Whole,
            ..server.translator.options().clone()
        });
    let whole = whole
        .expect("sound")
        .translate(&["a b! C d! e"])
        .remove(0)
        .text;
    assert_eq!(ask("0"), whole);
}

#[test]
fn errors_are_messages() {
    let server = TestServer::start();
    let with = |field: &str, value: Value| {
        let mut body = json!({"text": ["a"], "source_lang": "DE", "target_lang": "EN-US"});
        body[field] = value;
        body
    };
    for (body, status, part) in [
        (with("text", json!([])), 400, "'text'"),
        (with("target_lang", json!("XX")), 400, "'target_lang'"),
        (with("target_lang", json!("")), 400, "'target_lang'"),
        (with("source_lang", json!("XX")), 400, "'source_lang'"),
        (with("formality", json!("more")), 400, "'formality'"),
        (
            with("split_sentences", json!("x")),
            400,
            "'split_sentences'",
        ),
        (with("tag_handling", json!("x")), 400, "'tag_handling'"),
        (with("model_type", json!("x")), 400, "'model_type'"),
        (with("glossary_id", json!("x")), 404, "glossary"),
        (with("text", json!(["x".repeat(300_000)])), 413, "longer"),
    ] {
        let answer = post_json(server.address, "/v2/translate", &body);
        assert_eq!(answer.status, status, "{}", answer.text());
        let message = answer.json()["message"].as_str().map(str::to_owned);
        assert!(
            message
                .as_deref()
                .is_some_and(|message| message.contains(part)),
            "{message:?}"
        );
    }
    let body = with("formality", json!("prefer_less"));
    assert_eq!(
        post_json(server.address, "/v2/translate", &body).status,
        200
    );
}

#[test]
fn languages_are_those_that_clients_accept() {
    let server = TestServer::start();
    let sources = get(server.address, "/v2/languages").json();
    let expected =
        json!([{"language": "DE", "name": "German"}, {"language": "EN", "name": "English"}]);
    assert_eq!(sources, expected);
    // The Python client asks with GET and a body, the other one in the query.
    let kind = "content-type: application/x-www-form-urlencoded\r\n";
    let with_body = request(server.address, "GET", "/v2/languages", kind, b"type=target").json();
    let with_query = get(server.address, "/v2/languages?type=target").json();
    assert_eq!(with_body, with_query);
    let codes: Vec<&str> = with_query
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["language"].as_str())
        .collect();
    assert_eq!(codes, ["DE", "EN-GB", "EN-US"]);
    assert_eq!(with_query[0]["supports_formality"], false);
    assert_eq!(get(server.address, "/v2/languages?type=x").status, 400);
}

#[test]
fn glossaries_are_created_listed_shown_and_deleted() {
    let server = TestServer::start();
    let pairs = get(server.address, "/v2/glossary-language-pairs").json();
    assert_eq!(
        pairs["supported_languages"][0],
        json!({"source_lang": "de", "target_lang": "en"})
    );
    let create = |entries: &str, format: &str| {
        let body = json!({"name": "mine", "source_lang": "DE", "target_lang": "en", "entries": entries, "entries_format": format});
        post_json(server.address, "/v2/glossaries", &body)
    };
    let created = create("Haus\thouse\nHund\tdog", "tsv");
    assert_eq!(created.status, 201, "{}", created.text());
    let glossary = created.json();
    let id = glossary["glossary_id"].as_str().expect("an id");
    assert_eq!(
        (&glossary["entry_count"], &glossary["ready"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(glossary["creation_time"].as_str().map(str::len), Some(24));
    assert_eq!(
        get(server.address, &format!("/v2/glossaries/{id}")).json(),
        glossary
    );
    assert_eq!(
        get(server.address, "/v2/glossaries").json(),
        json!({"glossaries": [glossary]})
    );
    let entries = get(server.address, &format!("/v2/glossaries/{id}/entries"));
    assert_eq!(entries.text(), "Haus\thouse\nHund\tdog");
    assert_eq!(create("\"a, b\",c,de,en", "csv").status, 201);
    for (entries, format) in [
        ("a\tb\na\tc", "tsv"),
        ("a", "tsv"),
        ("", "tsv"),
        ("a\t", "tsv"),
        ("a\tb", "xml"),
    ] {
        assert_eq!(create(entries, format).status, 400, "{entries:?}");
    }
    let delete = || {
        request(
            server.address,
            "DELETE",
            &format!("/v2/glossaries/{id}"),
            "",
            b"",
        )
        .status
    };
    assert_eq!((delete(), delete()), (204, 404));
}

#[test]
fn a_document_is_uploaded_asked_for_and_fetched_once() {
    let server = TestServer::start();
    let parts = [
        ("file", Some("file"), &b"a b\nc"[..]),
        ("source_lang", None, b"de"),
        ("target_lang", None, b"en-us"),
    ];
    let document = post_parts(server.address, "/v2/document", &parts).json();
    let (id, key) = (
        document["document_id"].as_str().unwrap(),
        document["document_key"].as_str().unwrap(),
    );
    let ask = |path: &str, key: &str| {
        let path = format!("/v2/document/{id}{path}");
        post_json(server.address, &path, &json!({"document_key": key}))
    };
    let status = ask("", key).json();
    assert_eq!(
        (&status["status"], &status["billed_characters"]),
        (&json!("done"), &json!(5))
    );
    assert_eq!(ask("", "wrong").status, 404);
    assert_eq!(ask("/result", "wrong").status, 404);
    let expected = format!("{}\n{}", server.expected("a b"), server.expected("c"));
    assert_eq!(ask("/result", key).text(), expected);
    assert_eq!(ask("/result", key).status, 404);
}

#[test]
fn a_glossary_is_applied_to_texts_in_its_languages() {
    let server = TestServer::start();
    let body = json!({"name": "mine", "source_lang": "DE", "target_lang": "EN",
                      "entries": "a b\tf g h\nzzz\tx", "entries_format": "tsv"});
    let created = post_json(server.address, "/v2/glossaries", &body).json();
    let id = created["glossary_id"].as_str().expect("an id");
    let ask = |source: Value, id: &str| {
        let body = json!({"text": ["a b. c d"], "source_lang": source, "target_lang": "EN-US", "glossary_id": id});
        post_json(server.address, "/v2/translate", &body)
    };
    let answer = ask(json!("DE"), id);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.json()["translations"][0]["text"].to_string();
    assert!(text.contains("f g h"), "{text}");
    assert_eq!(ask(Value::Null, id).status, 400, "it needs a language");
    assert_eq!(ask(json!("DE"), "other").status, 404);

    // Without it the same sentence is translated as ever, whatever was remembered.
    let plain = json!({"text": ["a b. c d"], "source_lang": "DE", "target_lang": "EN-US"});
    let plain = post_json(server.address, "/v2/translate", &plain).json();
    assert!(
        !plain["translations"][0]["text"]
            .to_string()
            .contains("f g h")
    );
}
