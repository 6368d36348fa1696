//! HTML and XML through the APIs: the same page that the translator gives without a server.

use attentive_text::markup::{Marked, Page, Syntax, XmlTags};
use serde_json::json;

use super::client::{post_form, post_json};
use super::server::TestServer;

/// What the translator makes of a page without a server.
fn expected(server: &TestServer, source: &str, syntax: &Syntax) -> String {
    let page = Page::read(source, syntax);
    let found = server.translator.translate_marked(page.texts());
    let texts: Vec<Marked> = found.into_iter().map(|found| found.marked).collect();
    page.write(&texts)
}

const PAGE: &str = "<!DOCTYPE html><h1 title=\"a b\">a  <b class='x'>b c</b>!</h1>\n<p>d <code>&lt;e&gt;</code> f<br>g \
                    <i translate=no>h</i></p><script>a < b</script><!-- c -->";

#[test]
fn libretranslate_translates_html() {
    let server = TestServer::start();
    let body = json!({"q": [PAGE, "a <b>b</b>"], "source": "de", "target": "en", "format": "html", "alternatives": 1});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let page = expected(&server, PAGE, &Syntax::Html);
    assert_eq!(answer["translatedText"][0], page);
    assert_eq!(
        answer["translatedText"][1],
        expected(&server, "a <b>b</b>", &Syntax::Html)
    );
    for kept in [
        "<!DOCTYPE html>",
        "<b class='x'>",
        "<code>&lt;e&gt;</code>",
        "<i translate=no>h</i>",
        "<!-- c -->",
    ] {
        assert_eq!(page.matches(kept).count(), 1, "{kept} in {page}");
    }
    assert_ne!(page, PAGE);
    let other = answer["alternatives"][1][0]
        .as_str()
        .map(str::to_owned)
        .unwrap_or_default();
    assert!(other.contains("<b>") && other.contains("</b>"), "{other}");
    let body = json!({"q": "<b>a", "source": "de", "target": "de", "format": "html"});
    assert_eq!(
        post_json(server.address, "/translate", &body).json()["translatedText"],
        "<b>a"
    );
}

#[test]
fn deepl_handles_tags_of_html_and_xml() {
    let server = TestServer::start();
    let ask = |body: serde_json::Value| {
        let answer = post_json(server.address, "/v2/translate", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["translations"][0]["text"]
            .as_str()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let html = json!({"text": [PAGE], "source_lang": "DE", "target_lang": "EN-US", "tag_handling": "html"});
    assert_eq!(ask(html), expected(&server, PAGE, &Syntax::Html));

    let source = "<doc><t>a <e>b</e> <x>c d</x></t><s>e</s><s>f</s></doc>";
    let with = |tags: XmlTags| expected(&server, source, &Syntax::Xml(tags));
    let mut body = json!({"text": [source], "source_lang": "DE", "target_lang": "EN-US", "tag_handling": "xml"});
    assert_eq!(ask(body.clone()), with(XmlTags::default()));
    body["ignore_tags"] = json!(["x"]);
    let ignored = with(XmlTags {
        ignored: vec!["x".to_owned()],
        ..XmlTags::default()
    });
    assert!(ignored.contains("<x>c d</x>"), "{ignored}");
    assert_eq!(ask(body.clone()), ignored);
    let form = "text=%3Cp%3Ea%3C/p%3E%3Cx%3Eb%20c%3C/x%3E&source_lang=de&target_lang=en-us&tag_handling=xml&ignore_tags=y,x";
    let answer = post_form(server.address, "/v2/translate", form).json();
    let text = answer["translations"][0]["text"]
        .as_str()
        .map(str::to_owned)
        .unwrap_or_default();
    assert!(text.contains("<x>b c</x>"), "{text}");
    body["ignore_tags"] = json!([1]);
    assert_eq!(
        post_json(server.address, "/v2/translate", &body).status,
        400
    );
}
