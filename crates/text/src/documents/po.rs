//! PO: message catalogs of gettext. `msgid` is the source, `msgstr` gets the translation.
//!
//! Messages without a translation and fuzzy ones are translated; the others, the header, comments, contexts and obsolete
//! messages stay. What a machine translated is marked `fuzzy`, gettext's word for "a person should look at this":
//! `msgfmt --use-fuzzy` uses it anyway, `msgattrib --clear-fuzzy` accepts it. Plural forms are as many as the header's
//! `nplurals` says; the first is translated from `msgid`, the others from `msgid_plural`.

use std::ops::Range;

use super::block::is_text;
use super::plain::{Value, line_end, wrapped};
use super::skipped::Reason;
use super::template::{Filler, Template};
use super::{Problem, start_of};
use crate::markup::Marked;

/// Lines are as wide as gettext makes them.
const WIDTH: usize = 77;

/// Reads a catalog.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let (entries, obsolete) = entries(&source)?;
    let mut forms = None;
    let mut found = Vec::new();
    let mut skipped: Vec<(usize, Reason)> = obsolete
        .into_iter()
        .map(|offset| (offset, Reason::Obsolete))
        .collect();
    for entry in entries {
        if entry.id.is_empty() {
            if entry.context.is_none() && forms.is_none() {
                let header = entry
                    .strings
                    .first()
                    .map_or("", |string| string.value.as_str());
                check_charset(&source, &entry, header)?;
                forms = plural_forms(header);
            }
            continue;
        }
        let is_done = entry.strings.iter().all(|string| !string.value.is_empty());
        if is_done && !entry.is_fuzzy() {
            if is_text(&entry.id) {
                skipped.push((entry.start, Reason::AlreadyTranslated));
            }
            continue;
        }
        let (one, mut texts) = Value::new(&entry.id);
        let many = entry.plural.as_deref().map(Value::new);
        let first = texts.len();
        let many = many.map(|(many, own)| {
            texts.extend(own);
            many
        });
        let message = Message {
            ends: line_end(
                source[entry.start..]
                    .split_inclusive('\n')
                    .next()
                    .unwrap_or_default(),
            ),
            forms: entry
                .plural
                .as_ref()
                .map(|_| forms.unwrap_or(entry.strings.len()).max(1)),
            entry,
            one,
            many,
            first,
        };
        found.push((message, texts));
    }
    let mut template = Template::new(source);
    for (message, texts) in found {
        let range = message
            .entry
            .flags
            .as_ref()
            .map_or(message.entry.start, |flags| flags.start)
            ..message.entry.end();
        template.add(range, texts, move |texts, filler| {
            message.write(texts, filler)
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// A message of a catalog.
#[derive(Debug)]
struct Entry {
    /// Where `msgctxt` or `msgid` begins.
    start: usize,
    /// The line of flags, without its end.
    flags: Option<Range<usize>>,
    flag_names: String,
    context: Option<String>,
    id: String,
    plural: Option<String>,
    strings: Vec<Translation>,
}

/// A `msgstr` of a message.
#[derive(Debug)]
struct Translation {
    /// Where the keyword begins.
    start: usize,
    /// From the first quote to the last.
    range: Range<usize>,
    value: String,
}

impl Entry {
    fn is_fuzzy(&self) -> bool {
        self.flag_names
            .split(',')
            .any(|flag| flag.trim() == "fuzzy")
    }

    fn end(&self) -> usize {
        self.strings
            .last()
            .map_or(self.start, |string| string.range.end)
    }
}

/// What the next string of a catalog belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Context,
    Id,
    Plural,
    String,
}

/// All messages, and where obsolete ones are.
fn entries(source: &str) -> Result<(Vec<Entry>, Vec<usize>), Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut obsolete = Vec::new();
    let mut field = None;
    let mut flags: Option<Range<usize>> = None;
    let mut offset = start_of(source);
    for line in source[offset..].split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let text = line.trim();
        let problem = |what: &str| {
            let what = format!("{what}; check the file with `msgfmt --check`");
            Err(Problem::at(source, start, what))
        };
        if text.is_empty() {
            continue;
        }
        if let Some(comment) = text.strip_prefix('#') {
            field = None;
            if comment.starts_with('~') && comment[1..].trim_start().starts_with("msgid ") {
                obsolete.push(start);
            }
            if comment.starts_with(',') && flags.is_none() {
                let end = start + line.trim_end().len();
                flags = Some(start..end);
            }
            if comment.starts_with('~') {
                flags = None;
            }
            continue;
        }
        let quote = text.find('"');
        let (keyword, _) = text.split_at(quote.unwrap_or(text.len()));
        let keyword = keyword.trim_end();
        if !keyword.is_empty() {
            let new = match keyword {
                "msgctxt" => Field::Context,
                "msgid" => Field::Id,
                "msgid_plural" => Field::Plural,
                _ if keyword.starts_with("msgstr") => Field::String,
                _ => {
                    return problem(&format!(
                        "expected a keyword such as msgid or a string in quotes, found {:?}",
                        excerpt(text)
                    ));
                }
            };
            let complete = entries.last().is_none_or(|entry| !entry.strings.is_empty());
            if new == Field::Context
                || (new == Field::Id && (complete || field != Some(Field::Context)))
            {
                if !complete {
                    return problem("the message before this one has no msgstr");
                }
                entries.push(Entry {
                    start,
                    flag_names: flags.clone().map_or_else(String::new, |range| {
                        source[range]
                            .trim_start()
                            .trim_start_matches("#,")
                            .to_owned()
                    }),
                    flags: flags.take(),
                    context: None,
                    id: String::new(),
                    plural: None,
                    strings: Vec::new(),
                });
            }
            field = Some(new);
        }
        let Some(entry) = entries.last_mut() else {
            return problem("expected msgid before anything else");
        };
        let Some(quote) = quote else {
            return problem("a string in quotes is missing");
        };
        let Some(value) = unquoted(&text[quote..]) else {
            return problem("a string has no end, or something behind its end");
        };
        let indent = line.len() - line.trim_start().len();
        let range = start + indent + quote..start + indent + text.len();
        match field {
            None => return problem("a string without a keyword"),
            Some(Field::Context) => entry.context.get_or_insert_default().push_str(&value),
            Some(Field::Id) => entry.id.push_str(&value),
            Some(Field::Plural) => entry.plural.get_or_insert_default().push_str(&value),
            Some(Field::String) if keyword.is_empty() => {
                if let Some(string) = entry.strings.last_mut() {
                    string.range.end = range.end;
                    string.value.push_str(&value);
                }
            }
            Some(Field::String) => entry.strings.push(Translation {
                start: start + indent,
                range,
                value,
            }),
        }
    }
    if let Some(last) = entries.last().filter(|entry| entry.strings.is_empty()) {
        return Err(Problem::at(
            source,
            last.start,
            "this message has no msgstr; the file may be cut off, copy it again",
        ));
    }
    Ok((entries, obsolete))
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The characters of a string in quotes.
fn unquoted(text: &str) -> Option<String> {
    let inside = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = inside.chars();
    loop {
        match chars.next()? {
            '"' => return chars.as_str().is_empty().then_some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                other @ ('"' | '\\') => value.push(other),
                other => {
                    value.push('\\');
                    value.push(other);
                }
            },
            other => value.push(other),
        }
    }
}

/// A string in quotes, over several lines where it is long or has line breaks.
fn quoted(text: &str, ends: &str) -> String {
    let escaped = |text: &str| {
        // An escape that was not understood when reading comes back as it was.
        let mut new = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' => new.push_str("\\n"),
                '\t' => new.push_str("\\t"),
                '\r' => new.push_str("\\r"),
                '"' => new.push_str("\\\""),
                '\\' if chars
                    .peek()
                    .is_some_and(|next| "abfvx01234567".contains(*next)) =>
                {
                    new.push('\\')
                }
                '\\' => new.push_str("\\\\"),
                c => new.push(c),
            }
        }
        new
    };
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .flat_map(|line| {
            let mut lines = wrapped(&escaped(line), WIDTH - 3, |_| true);
            let last = lines.len() - 1;
            lines[..last].iter_mut().for_each(|line| line.push(' '));
            lines
        })
        .collect();
    match &lines[..] {
        [] => "\"\"".to_owned(),
        [line] => format!("\"{line}\""),
        lines => {
            let lines: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
            format!("\"\"{ends}{}", lines.join(ends))
        }
    }
}

/// The number of plural forms that a header names.
fn plural_forms(header: &str) -> Option<usize> {
    let rest = header.split("nplurals=").nth(1)?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok().filter(|forms| (1..=10).contains(forms))
}

fn check_charset(source: &str, entry: &Entry, header: &str) -> Result<(), Problem> {
    let Some(charset) = header.split("charset=").nth(1) else {
        return Ok(());
    };
    let charset = charset.split_whitespace().next().unwrap_or_default();
    let known = ["UTF-8", "UTF8", "ASCII", "US-ASCII", "CHARSET"];
    if known
        .iter()
        .any(|known| known.eq_ignore_ascii_case(charset))
    {
        return Ok(());
    }
    let problem = format!(
        "the header says that the file is in {charset}; convert it with `msgconv -t UTF-8`"
    );
    Err(Problem::at(source, entry.start, problem))
}

/// A message that is translated.
#[derive(Debug)]
struct Message {
    entry: Entry,
    ends: &'static str,
    one: Value,
    many: Option<Value>,
    /// So many texts are those of `msgid`.
    first: usize,
    /// How many plural forms, if it has them.
    forms: Option<usize>,
}

impl Message {
    fn write(&self, texts: &[Marked], filler: &Filler<'_>) -> String {
        let (one, many) = texts.split_at(self.first);
        let one = self.one.filled(one);
        let many = self.many.as_ref().map(|value| value.filled(many));
        let Entry {
            start,
            flags,
            strings,
            ..
        } = &self.entry;
        let ends = self.ends;
        let source = filler.source();
        let first = strings.first().map_or(*start, |string| string.start);
        let mut written = match flags {
            Some(flags) if self.entry.is_fuzzy() => source[flags.start..first].to_owned(),
            Some(flags) => format!("#, fuzzy,{}", &source[flags.start + 2..first]),
            None => format!("#, fuzzy{ends}{}", &source[*start..first]),
        };
        let keep = |number: usize| {
            let old = strings.get(number).filter(|old| !old.value.is_empty());
            old.filter(|_| !self.entry.is_fuzzy())
                .map(|old| &source[old.range.clone()])
        };
        let Some(forms) = self.forms else {
            let new = quoted(&one, ends);
            written.push_str(&format!("msgstr {}", keep(0).unwrap_or(&new)));
            return written;
        };
        let many = many.unwrap_or_default();
        for form in 0..forms {
            let text = if form == 0 && forms > 1 { &one } else { &many };
            let new = quoted(text, ends);
            let end = if form + 1 < forms { ends } else { "" };
            written.push_str(&format!(
                "msgstr[{form}] {}{end}",
                keep(form).unwrap_or(&new)
            ));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = r#"# A catalog.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3; plural=x;\n"

#: a.c:1
#, c-format
msgctxt "menu"
msgid "Open %s"
msgstr ""

msgid "Done"
msgstr "Fertig"

#, fuzzy
#| msgid "Old"
msgid "New\n"
msgstr "Alt\n"

msgid "one file"
msgid_plural "many files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "gone"
#~ msgstr "weg"
"#;

    #[test]
    fn what_is_missing_or_fuzzy_is_translated_and_marked() {
        let template = read(CATALOG.to_owned()).unwrap();
        let texts: Vec<String> = template.texts.iter().map(Marked::text).collect();
        assert_eq!(texts, ["Open %s", "New", "one file", "many files"]);
        assert_eq!(template.fill(&template.texts, &template.texts), CATALOG);
        let new = ["%s \"öffnen\"", "Neu", "eine Datei", "Dateien"].map(Marked::plain);
        let filled = template.fill(&template.texts, &new);
        for part in [
            "#: a.c:1\n#, fuzzy, c-format\nmsgctxt \"menu\"\nmsgid \"Open %s\"\nmsgstr \"%s \\\"öffnen\\\"\"\n",
            "\nmsgid \"Done\"\nmsgstr \"Fertig\"\n",
            "\n#, fuzzy\n#| msgid \"Old\"\nmsgid \"New\\n\"\nmsgstr \"Neu\\n\"\n",
            "\n#, fuzzy\nmsgid \"one file\"\nmsgid_plural \"many files\"\nmsgstr[0] \"eine Datei\"\nmsgstr[1] \
             \"Dateien\"\nmsgstr[2] \"Dateien\"\n\n#~ msgid",
        ] {
            assert!(filled.contains(part), "{part}\n--- is not in ---\n{filled}");
        }
        let reasons: Vec<(usize, Reason)> = template
            .skipped
            .iter()
            .map(|skipped| (skipped.line, skipped.reason))
            .collect();
        assert_eq!(
            reasons,
            [(13, Reason::AlreadyTranslated), (26, Reason::Obsolete)]
        );
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (source, line) in [
            ("msgid \"a\"\nmsgid \"b\"\n", 2),
            ("msgid \"a\n", 1),
            ("\nhello\n", 2),
            ("\"a\"\n", 1),
            ("msgid \"a\"\n", 1),
            ("msgid \"\"\nmsgstr \"charset=ISO-8859-1\\n\"\n", 1),
        ] {
            assert_eq!(
                read(source.to_owned()).unwrap_err().line,
                Some(line),
                "{source}"
            );
        }
    }

    #[test]
    fn long_strings_are_wrapped_as_gettext_does() {
        assert_eq!(quoted("", "\n"), "\"\"");
        assert_eq!(quoted("a\n", "\n"), "\"a\\n\"");
        assert_eq!(quoted("a\nb", "\n"), "\"\"\n\"a\\n\"\n\"b\"");
        let long = quoted("word ".repeat(40).trim_end(), "\n");
        assert!(
            long.lines().all(|line| line.chars().count() <= WIDTH + 2),
            "{long}"
        );
        assert_eq!(
            long.lines()
                .skip(1)
                .filter_map(unquoted)
                .collect::<String>(),
            "word ".repeat(40).trim_end()
        );
    }
}
