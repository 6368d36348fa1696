//! Writing SVG: shapes and text as a string, with every text escaped in one place.
//!
//! Text stays text, so that it can be searched and copied; the font names come with fallbacks that
//! every system has one of. Used by [`crate::sheet`] and [`crate::figure`]; [`crate::png`] draws it.

use std::fmt::Write;

use crate::color::Color;
use crate::label;

/// The first is the one that PNG files are drawn with; Verdana is as wide.
pub const FONTS: &str = "'DejaVu Sans', Verdana, 'Noto Sans', 'Segoe UI', Arial, sans-serif";

/// A drawing that grows.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// How a text is set.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// In pixels.
    pub size: f64,
    /// Its color.
    pub color: Color,
    /// Which point of the text is given.
    pub anchor: Anchor,
    /// Degrees, clockwise.
    pub turn: f64,
    /// Heavy or not.
    pub bold: bool,
}

/// Which point of a text is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Style {
    /// Upright text that starts at its point.
    pub fn new(size: f64, color: Color) -> Self {
        Self {
            size,
            color,
            anchor: Anchor::Start,
            turn: 0.0,
            bold: false,
        }
    }

    /// With another anchor.
    pub fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Turned.
    pub fn turned(self, turn: f64) -> Self {
        Self { turn, ..self }
    }

    /// Heavy.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

impl Svg {
    /// A filled rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Color) {
        let (x, y, width, height) = (n(x), n(y), n(width), n(height));
        self.raw(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        ));
    }

    /// The outline of a rectangle.
    pub fn frame(&mut self, x: f64, y: f64, width: f64, height: f64, stroke: Color) {
        let (x, y, width, height) = (n(x), n(y), n(width), n(height));
        self.raw(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"{stroke}\"/>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Color, width: f64) {
        let (x1, y1, x2, y2) = (n(from.0), n(from.1), n(to.0), n(to.1));
        self.raw(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        ));
    }

    /// A curve through points.
    pub fn curve(&mut self, points: &[(f64, f64)], stroke: Color, width: f64, dashes: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{} {}", n(*x), n(*y));
        }
        self.raw(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dashes}/>"
        ));
    }

    /// A filled shape, given as path commands.
    pub fn path(&mut self, commands: &str, fill: Color) {
        self.raw(format_args!("<path d=\"{commands}\" fill=\"{fill}\"/>"));
    }

    /// A filled dot.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, fill: Color) {
        let (x, y) = (n(x), n(y));
        self.raw(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"/>"
        ));
    }

    /// A text, whatever is in it. `full` is what a reader sees who points at it, if it was shortened.
    ///
    /// `unicode-bidi` keeps right-to-left text within itself, in an element that runs left to right:
    /// otherwise `end` would mean its left end.
    ///
    /// The mark of a space (`▁`) is drawn faintly: it belongs to the token, but it is not what is read.
    pub fn text(&mut self, x: f64, y: f64, style: Style, text: &str, full: Option<&str>) {
        if text.is_empty() {
            return;
        }
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let bold = if style.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        let (x, y) = (n(x), n(y));
        let turn = match style.turn {
            0.0 => String::new(),
            turn => format!(" transform=\"rotate({turn} {x} {y})\""),
        };
        let title = full
            .filter(|full| *full != text)
            .map(|full| format!("<title>{}</title>", escaped(full)))
            .unwrap_or_default();
        let text = escaped(text).replace('▁', "<tspan fill-opacity=\"0.3\">▁</tspan>");
        self.raw(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{bold}{turn} \
             style=\"direction:ltr;unicode-bidi:isolate\">{title}{text}</text>",
            n(style.size),
            style.color
        ));
    }

    /// Begins a group with these attributes.
    pub fn open(&mut self, attributes: &str) {
        self.raw(format_args!("<g {attributes}>"));
    }

    /// Ends a group.
    pub fn close(&mut self) {
        self.raw(format_args!("</g>"));
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{markup}");
    }

    /// The whole file.
    pub fn finish(self, width: f64, height: f64, background: Color, title: &str) -> String {
        let (width, height) = (width.ceil(), height.ceil());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{background}\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// A text that XML and HTML take as text; characters that they forbid are spelled out.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in label::visible(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A number with at most two decimals, and none that say nothing.
pub fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" {
        "0".to_owned()
    } else {
        short.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(n(1.0), "1");
        assert_eq!(n(1.2345), "1.23");
        assert_eq!(n(-0.001), "0");
        assert_eq!(n(120.5), "120.5");
        assert_eq!(n(100.0), "100");
    }

    #[test]
    fn markup_in_a_text_stays_text() {
        let mut svg = Svg::default();
        let nasty = "</text><script>alert(\"1\" & '2')</script>";
        svg.text(
            0.0,
            0.0,
            Style::new(10.0, Color(0, 0, 0)),
            nasty,
            Some(nasty),
        );
        let file = svg.finish(10.0, 10.0, Color(255, 255, 255), nasty);
        assert!(!file.contains("<script"), "{file}");
        assert!(file.contains("&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)"));
    }

    proptest! {
        #[test]
        fn whatever_the_text_the_file_is_valid_xml(
            // Not `any::<String>()`, which leaves out control characters.
            text in proptest::collection::vec(any::<char>(), 0..20),
        ) {
            let text: String = text.into_iter().collect();
            let mut svg = Svg::default();
            svg.text(0.0, 0.0, Style::new(10.0, Color(0, 0, 0)), &text, Some("full"));
            let file = svg.finish(10.0, 10.0, Color(255, 255, 255), &text);
            let parsed = resvg::usvg::roxmltree::Document::parse(&file);
            prop_assert!(parsed.is_ok(), "{:?} of {file}", parsed.err());
            let parsed = parsed.unwrap();
            let node = parsed.descendants().find(|node| node.has_tag_name("text"));
            let shown: String = node
                .into_iter()
                .flat_map(|node| node.descendants())
                .filter(|node| node.is_text() && !node.parent().unwrap().has_tag_name("title"))
                .filter_map(|node| node.text())
                .collect();
            let expected = if text.is_empty() { String::new() } else { label::visible(&text) };
            prop_assert_eq!(shown, expected);
        }
    }
}
