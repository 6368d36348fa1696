//! `attentive translate --format html` and `xml`: pages in, the same pages with translated text out.
//!
//! [`Page`] finds the texts, the translator moves their tags to the words that they belong to.

use std::io::Write;

use attentive_hub::route::Route;
use attentive_runtime::translator::{MarkedTranslation, TranslatorOptions};
use attentive_text::markup::{Marked, Page, Syntax, XmlTags};
use clap::ValueEnum;

use super::TranslateArgs;
use crate::decoding::notices::Notices;
use crate::exit::Ending;
use crate::model::{self, Choice, only_for_the_cpu};
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::plural;

/// How the text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Plain text, line by line
    Text,
    /// A page, or a part of one
    Html,
    /// Elements that stand beside text are part of it, all others are texts of their own
    Xml,
}

impl TextFormat {
    /// Nothing for plain text.
    pub fn syntax(self) -> Option<Syntax> {
        match self {
            Self::Text => None,
            Self::Html => Some(Syntax::Html),
            Self::Xml => Some(Syntax::Xml(XmlTags::default())),
        }
    }
}

/// Translates pages: each sentence of the command line is one, or a file is.
pub fn run(
    args: &TranslateArgs,
    syntax: &Syntax,
    asked: Option<Route<Choice>>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if args.json || args.scores || args.alignments || args.alternatives.is_some() {
        let problem = "--json, --scores, --alignments and --alternatives belong to lines: leave them out with \
                       --format html and xml";
        return Err(Ending::Usage(problem.to_owned()).into());
    }
    let is_given = args.input.is_given();
    let pages = args.input.read_whole()?;
    let pages: Vec<Page> = pages
        .into_iter()
        .map(|page| Page::read(page, syntax))
        .collect();
    let texts: Vec<Marked> = pages.iter().flat_map(Page::texts).cloned().collect();
    let route = match asked {
        Some(route) => route,
        None => {
            let text: Vec<String> = texts.iter().take(1000).map(Marked::text).collect();
            args.direction.detect(&text.join("\n"), terminal)?
        }
    };
    let found = args.translate_marked(&route, &texts)?;

    let (mut notices, mut unplaced) = (Notices::default(), 0);
    for (number, found) in (1..).zip(&found) {
        unplaced += found.unplaced.len();
        if let Some(warning) = notices.add(number, &found.translation) {
            terminal.warn(warning);
        }
    }
    let translated: Vec<Marked> = found.into_iter().map(|found| found.marked).collect();
    let mut rest = &translated[..];
    let mut output = Output::open(args.output.as_deref())?;
    for page in &pages {
        let (own, others) = rest.split_at(page.texts().len());
        rest = others;
        output.write_all(page.write(own).as_bytes())?;
        if is_given {
            output.write_all(b"\n")?;
        }
    }
    output.finish()?;
    notices.tell(terminal);
    if unplaced > 0 {
        let tags = plural(unplaced, "tag stands", "tags stand");
        terminal.warn(format_args!(
            "{tags} beside the nearest word, as the translation has no words for what was in it"
        ));
    }
    Ok(())
}

impl TranslateArgs {
    fn translate_marked(
        &self,
        route: &Route<Choice>,
        texts: &[Marked],
    ) -> anyhow::Result<Vec<MarkedTranslation>> {
        if self.device.device != "cpu" {
            return Err(only_for_the_cpu("--format html and xml are"));
        }
        let window = TranslatorOptions::default().window;
        match route {
            Route::Direct(choice) => {
                let directory = choice.open()?;
                let options = self.options(choice, &directory, window)?;
                let translator = model::translator(directory, self.decoding.compute, options)?;
                Ok(translator.translate_marked(texts))
            }
            Route::ThroughEnglish(first, second) => {
                Ok(self.chain(first, second, window)?.translate_marked(texts))
            }
        }
    }
}
