//! DOCX and ODT: small ones made here, hostile ones, and what their paragraphs become.

use std::io::{Cursor, Write};
use std::path::Path;

use attentive_text::documents::{Document, Format, Reason};
use attentive_text::markup::{Marked, Part};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{read, rot13, texts};

fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let method = if *name == "mimetype" {
            CompressionMethod::Stored
        } else {
            CompressionMethod::Deflated
        };
        writer
            .start_file(
                *name,
                SimpleFileOptions::default().compression_method(method),
            )
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn entry(archive: &[u8], name: &str) -> String {
    let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
    std::io::read_to_string(archive.by_name(name).unwrap()).unwrap()
}

const WORD: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";

fn docx_of(paragraphs: &str) -> Vec<u8> {
    let document = format!(
        "<?xml version=\"1.0\"?><w:document {WORD}><w:body>{paragraphs}</w:body></w:document>"
    );
    let header = format!("<w:hdr {WORD}><w:p><w:r><w:t>Kopfzeile</w:t></w:r></w:p></w:hdr>");
    archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/header1.xml", header.as_bytes()),
        ("word/document.xml", document.as_bytes()),
        ("word/media/image1.png", &[0x89, 0x50, 0, 1, 2]),
    ])
}

const PARAGRAPHS: &str = "<w:p><w:pPr><w:jc w:val=\"both\"/></w:pPr><w:r><w:t xml:space=\"preserve\">Ein </w:t></w:r>\
<w:r><w:rPr><w:b/></w:rPr><w:t>ro</w:t></w:r><w:proofErr w:type=\"x\"/><w:r><w:rPr><w:b/><w:lang w:val=\"de\"/></w:rPr><w:t>ter</w:t></w:r>\
<w:r><w:t xml:space=\"preserve\"> Hund &amp; </w:t></w:r><w:hyperlink r:id=\"1\"><w:r><w:t>Katze</w:t></w:r></w:hyperlink>\
<w:r><w:t>.</w:t></w:r></w:p>\
<w:p><w:r><w:t>Name:</w:t></w:r><w:r><w:tab/><w:t>Wert</w:t><w:br/><w:t>Zeile</w:t></w:r></w:p>\
<w:p><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText> HYPERLINK \"x\" </w:instrText></w:r>\
<w:r><w:fldChar w:fldCharType=\"separate\"/></w:r><w:r><w:t>Verweis</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r>\
<w:r><w:t xml:space=\"preserve\"> hier, Seite </w:t></w:r><w:fldSimple w:instr=\"PAGE\"><w:r><w:t>drei</w:t></w:r></w:fldSimple></w:p>\
<w:p><w:del w:id=\"1\"><w:r><w:delText>alt</w:delText></w:r></w:del><w:ins w:id=\"2\"><w:r><w:t>neu</w:t></w:r></w:ins></w:p>\
<w:p><w:r><w:t>Bild</w:t></w:r><w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>Im Kasten</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r>\
<w:r><w:t xml:space=\"preserve\"> danach</w:t></w:r></w:p><w:p><w:r><w:t>12</w:t></w:r></w:p>";

pub fn docx() -> Vec<u8> {
    docx_of(PARAGRAPHS)
}

const OPEN_DOCUMENT: &str = "<?xml version=\"1.0\"?><office:document-content xmlns:office=\"o\" xmlns:text=\"t\"><office:body><office:text>\
<text:tracked-changes><text:p>weg</text:p></text:tracked-changes><text:h>Titel</text:h>\
<text:p>Ein <text:span text:style-name=\"b\">roter</text:span>\n  Hund<text:note><text:note-citation>1</text:note-citation><text:note-body>\
<text:p>Fußnote</text:p></text:note-body></text:note> &amp; <text:s text:c=\"2\"/>Katze<text:line-break/>Zeile</text:p>\
<text:p>Name:<text:tab/>Wert</text:p><text:p>Autor <text:author-name>Anna</text:author-name></text:p>\
</office:text></office:body></office:document-content>";

pub fn odt() -> Vec<u8> {
    archive(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", OPEN_DOCUMENT.as_bytes()),
        ("Thumbnails/x.png", &[1, 2, 3]),
    ])
}

/// The document in another language; every text is changed in its place.
fn translated(document: &Document) -> Vec<u8> {
    document
        .write(&super::in_rot13(document.texts()), None)
        .unwrap()
}

#[test]
fn runs_that_look_the_same_are_one_text_and_others_are_tags() {
    let document = read(Format::Docx, docx());
    let expected = [
        "Ein roter Hund & Katze.",
        "Name:",
        "Wert Zeile",
        "Verweis hier, Seite",
        "neu",
        "Bild danach",
        "Im Kasten",
        "Kopfzeile",
    ];
    assert_eq!(texts(&document), expected);
    let tags = document.texts()[0]
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Open(_)));
    assert_eq!(tags.count(), 2, "{:?}", document.texts()[0]);
    let reasons: Vec<Reason> = document
        .skipped()
        .iter()
        .map(|skipped| skipped.reason)
        .collect();
    assert_eq!(reasons, [Reason::Field, Reason::Deleted]);
}

#[test]
fn paragraphs_keep_their_properties_fields_and_pictures() {
    let new = translated(&read(Format::Docx, docx()));
    let xml = entry(&new, "word/document.xml");
    for part in [
        "<w:p><w:pPr><w:jc w:val=\"both\"/></w:pPr><w:r><w:t xml:space=\"preserve\">Rva </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t \
         xml:space=\"preserve\">ebgre</w:t></w:r>",
        "<w:hyperlink r:id=\"1\"><w:r><w:t xml:space=\"preserve\">Xngmr</w:t></w:r></w:hyperlink>",
        "Anzr:</w:t></w:r><w:r><w:tab/></w:r><w:r><w:t xml:space=\"preserve\">Jreg</w:t></w:r><w:r><w:br/></w:r><w:r><w:t \
         xml:space=\"preserve\">Mrvyr</w:t>",
        "<w:instrText> HYPERLINK \"x\" </w:instrText></w:r><w:r><w:fldChar w:fldCharType=\"separate\"/></w:r><w:r><w:t \
         xml:space=\"preserve\">Irejrvf</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r>",
        "<w:fldSimple w:instr=\"PAGE\"><w:r><w:t>drei</w:t></w:r></w:fldSimple></w:p>",
        "<w:del w:id=\"1\"><w:r><w:delText>alt</w:delText></w:r></w:del><w:ins w:id=\"2\"><w:r><w:t xml:space=\"preserve\">arh</w:t>",
        "<w:drawing><w:txbxContent><w:p><w:r><w:t xml:space=\"preserve\">Vz Xnfgra</w:t></w:r></w:p></w:txbxContent></w:drawing>",
        "<w:t>12</w:t>",
    ] {
        assert!(xml.contains(part), "{part}\n--- is not in ---\n{xml}");
    }
    assert!(entry(&new, "word/header1.xml").contains("Xbcsmrvyr"));
    let names = |bytes: &[u8]| -> Vec<String> {
        let mut archive = ZipArchive::new(Cursor::new(bytes.to_vec())).unwrap();
        (0..archive.len())
            .map(|number| {
                archive
                    .by_index(number)
                    .unwrap()
                    .name()
                    .unwrap()
                    .into_owned()
            })
            .collect()
    };
    assert_eq!(names(&new), names(&docx()));
}

#[test]
fn another_prefix_than_the_usual_one_is_understood() {
    let xml = format!(
        "<x:document {}><x:body><x:p><x:r><x:t>Hund</x:t></x:r></x:p></x:body></x:document>",
        WORD.replace("xmlns:w", "xmlns:x")
    );
    let document = read(
        Format::Docx,
        archive(&[("word/document.xml", xml.as_bytes())]),
    );
    let xml = entry(&translated(&document), "word/document.xml");
    assert!(
        xml.contains("<x:r><x:t xml:space=\"preserve\">Uhaq</x:t></x:r>"),
        "{xml}"
    );
}

#[test]
fn paragraphs_of_open_document_keep_notes_spaces_and_breaks() {
    let document = read(Format::Odt, odt());
    assert_eq!(
        texts(&document),
        [
            "Titel",
            "Ein roter Hund & Katze Zeile",
            "Fußnote",
            "Name:",
            "Wert",
            "Autor"
        ]
    );
    let reasons: Vec<Reason> = document
        .skipped()
        .iter()
        .map(|skipped| skipped.reason)
        .collect();
    assert_eq!(reasons, [Reason::Deleted, Reason::Field]);
    let new = translated(&document);
    let xml = entry(&new, "content.xml");
    for part in [
        "<text:p>weg</text:p>",
        "<text:p>Rva <text:span text:style-name=\"b\">ebgre</text:span> Uhaq<text:note>",
        "<text:note-body><text:p>Shßabgr</text:p></text:note-body></text:note> &amp; <text:s text:c=\"2\"/>Xngmr<text:line-break/>Mrvyr",
        "<text:p>Anzr:<text:tab/>Jreg</text:p><text:p>Nhgbe <text:author-name>Anna</text:author-name></text:p>",
    ] {
        assert!(xml.contains(part), "{part}\n--- is not in ---\n{xml}");
    }
    let mut archive = ZipArchive::new(Cursor::new(&new[..])).unwrap();
    let first = archive.by_index_raw(0).unwrap();
    let (name, method) = (first.name().unwrap().into_owned(), first.compression());
    assert_eq!((&*name, method), ("mimetype", CompressionMethod::Stored));
}

#[test]
fn bombs_are_refused() {
    let spaces = vec![b' '; 64 << 20];
    let many: Vec<String> = (0..20_001).map(|number| format!("../{number}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (&**name, &b""[..])).collect();
    let deep = format!("<w:document {WORD}>{}", "<w:p>".repeat(100_000));
    for (bytes, problem) in [
        (archive(&[("word/document.xml", &spaces)]), "larger than"),
        (archive(&many), "more than the 20000"),
        (archive(&[("word/document.xml", deep.as_bytes())]), "deeper"),
    ] {
        let error = Document::read(Path::new("bomb.docx"), bytes, Format::Docx)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("bomb.docx") && error.contains(problem),
            "{error}"
        );
    }
}

#[test]
fn other_files_are_named_for_what_they_are() {
    for (bytes, problem) in [
        (b"\xD0\xCF\x11\xE0....".to_vec(), "save it as docx"),
        (b"Hallo".to_vec(), "--format"),
        (Vec::new(), "empty"),
        (archive(&[("xl/workbook.xml", b"<x/>")]), "spreadsheet"),
        (
            archive(&[("ppt/presentation.xml", b"<x/>")]),
            "presentation",
        ),
        (archive(&[("a.txt", b"x")]), "word/document.xml"),
        (
            archive(&[("word/document.xml", b"<a>\n<b></a>")]),
            "word/document.xml, line 2",
        ),
        (archive(&[("word/document.xml", b"\xFF")]), "not UTF-8"),
    ] {
        let error = Document::read(Path::new("a.docx"), bytes, Format::Docx)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.docx") && error.contains(problem),
            "{error}"
        );
    }
}

#[test]
fn a_translation_may_hold_anything() {
    let nasty = "a <b> & \"c\" \u{0}\u{1} \n x\ty ]]> \u{FFFF} 👍";
    for (format, bytes) in [(Format::Docx, docx()), (Format::Odt, odt())] {
        let document = read(format, bytes);
        let new: Vec<Marked> = document
            .texts()
            .iter()
            .map(|_| Marked::plain(nasty))
            .collect();
        let again = read(format, document.write(&new, None).unwrap());
        assert!(
            texts(&again)
                .iter()
                .all(|text| text.contains("a <b> & \"c\"") || text.contains("y ]]>")),
            "{:?}",
            texts(&again)
        );
    }
    assert_eq!(rot13(&rot13("Hund")), "Hund");
}
