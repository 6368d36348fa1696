//! A sheet: a selection as one SVG drawing of heat maps, a row for each layer and a column for each head.
//!
//! The rows of a heat map are queries, its columns keys; the tokens stand beside the outer maps of the
//! grid. A single map is drawn large, with its weights in percent. [`crate::png`] makes pixels of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::color::{Color, ColorMap, Palette, Theme};
use crate::fonts;
use crate::label;
use crate::map::Map;
use crate::selection::Section;
use crate::svg::{Anchor, Style, Svg};

/// What stands above the heat maps.
#[derive(Debug, Clone)]
pub struct Heading {
    /// The source sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// Where the weights come from.
    pub model: String,
}

const MARGIN: f64 = 28.0;
const TEXT: f64 = 12.0;

/// Draws the sections one below the other.
pub fn draw(heading: &Heading, sections: &[Section], theme: Theme) -> String {
    let mut sheet = Sheet {
        svg: Svg::default(),
        palette: Palette::of(theme),
        map: ColorMap::sequential(theme),
    };
    let grids: Vec<Grid> = sections.iter().map(Grid::of).collect();
    let widest = grids.iter().map(Grid::width).fold(0.0, f64::max);
    let width = (widest + 2.0 * MARGIN).max(560.0);
    let mut y = sheet.heading(heading, width);
    for (section, grid) in sections.iter().zip(&grids) {
        y = sheet.section(section, grid, y);
    }
    let title = format!("Attention: {} → {}", heading.source, heading.target);
    sheet.svg.finish(
        width,
        y + MARGIN - SECTION_GAP,
        sheet.palette.background,
        &title,
    )
}

/// Where things are in a section; lengths in units of the drawing.
struct Grid {
    rows: usize,
    cols: usize,
    heads: usize,
    cell: f64,
    font: f64,
    /// Tokens as they are shown.
    queries: Vec<String>,
    keys: Vec<String>,
    query_width: f64,
    key_height: f64,
    upright_keys: bool,
    /// From one map to the next.
    across: f64,
    down: f64,
}

/// Room for `layer 1`, turned.
const LAYER_TITLE: f64 = 22.0;
const HEAD_TITLE: f64 = 20.0;
const SECTION_TITLE: f64 = 44.0;
const SECTION_GAP: f64 = 34.0;
const LABEL_GAP: f64 = 5.0;

impl Grid {
    fn of(section: &Section) -> Self {
        let heads = section
            .layers
            .iter()
            .map(|row| row.maps.len())
            .max()
            .unwrap_or(0);
        let alone = heads * section.layers.len() == 1;
        let (rows, cols) = (section.queries.len(), section.keys.len());
        let cell = cell_size(rows.max(cols), alone);
        let font = (cell * 0.86).clamp(6.0, 13.0);
        let columns = if alone { 20 } else { 14 };
        let shown = |labels: &[String]| -> Vec<String> {
            let shown = labels.iter().map(|text| label::shortened(text, columns));
            shown.collect()
        };
        let (queries, keys) = (shown(&section.queries), shown(&section.keys));
        let widest = |labels: &[String]| {
            let widths = labels.iter().map(|text| fonts::width(text) * font);
            widths.fold(0.0, f64::max)
        };
        let upright_keys = widest(&keys) <= cell - 3.0;
        let key_height = if upright_keys {
            font * 1.2
        } else {
            widest(&keys)
        };
        let head_title = section.layers.iter().flat_map(|row| &row.maps);
        let head_title = head_title
            .map(|(title, _)| fonts::width(title) * TEXT)
            .fold(0.0, f64::max);
        let layer_title = section
            .layers
            .iter()
            .map(|row| fonts::width(&row.title) * TEXT);
        let layer_title = layer_title.fold(0.0, f64::max);
        Self {
            rows,
            cols,
            heads,
            cell,
            font,
            query_width: widest(&queries) + LABEL_GAP,
            key_height: key_height + LABEL_GAP,
            queries,
            keys,
            upright_keys,
            across: (cols as f64 * cell).max(head_title) + 16.0,
            down: (rows as f64 * cell).max(layer_title) + 16.0,
        }
    }

    fn left(&self) -> f64 {
        MARGIN + LAYER_TITLE + self.query_width
    }

    /// Far from the left labels they are repeated.
    fn labels_right(&self) -> bool {
        self.heads > 4
    }

    fn width(&self) -> f64 {
        let right = if self.labels_right() {
            self.query_width
        } else {
            0.0
        };
        LAYER_TITLE + self.query_width + self.heads as f64 * self.across - 16.0 + right
    }
}

/// Large enough to read the labels beside it, and small enough for the page.
fn cell_size(tokens: usize, alone: bool) -> f64 {
    match (alone, tokens) {
        (true, ..=12) => 44.0,
        (true, ..=20) => 32.0,
        (true, ..=30) => 24.0,
        (true, ..=45) => 18.0,
        (true, _) => 14.0,
        (false, ..=8) => 22.0,
        (false, ..=14) => 16.0,
        (false, ..=24) => 13.0,
        (false, ..=40) => 10.0,
        (false, _) => 8.0,
    }
}

struct Sheet {
    svg: Svg,
    palette: &'static Palette,
    map: &'static ColorMap,
}

impl Sheet {
    /// The two sentences and the scale; returns where the sections begin.
    fn heading(&mut self, heading: &Heading, width: f64) -> f64 {
        let Palette {
            foreground, muted, ..
        } = self.palette;
        let mut y = MARGIN + 8.0;
        let left = MARGIN + 58.0;
        let room = width - MARGIN - left;
        for (caption, text, size, color) in [
            ("source", &heading.source, 15.0, *foreground),
            ("target", &heading.target, 15.0, *foreground),
            ("model", &heading.model, TEXT, *muted),
        ] {
            self.svg
                .text(MARGIN, y, Style::new(TEXT, *muted), caption, None);
            for line in label::wrapped(text, room / size) {
                self.svg.text(left, y, Style::new(size, color), &line, None);
                y += size + 9.0;
            }
        }
        self.scale(y - 6.0);
        y + 44.0
    }

    /// What the colors mean.
    fn scale(&mut self, y: f64) {
        let (left, width, steps) = (MARGIN + 58.0, 200.0, 100);
        let muted = Style::new(TEXT, self.palette.muted);
        self.svg.text(MARGIN, y + 10.0, muted, "weight", None);
        let step = width / f64::from(steps);
        self.svg.open("shape-rendering=\"crispEdges\"");
        for i in 0..steps {
            let color = self.map.at(i as f32 / (steps - 1) as f32);
            self.svg
                .rect(left + f64::from(i) * step, y, step, 12.0, color);
        }
        self.svg.close();
        self.svg.frame(left, y, width, 12.0, self.palette.line);
        for (share, text) in [(0.0, "0"), (0.5, "50"), (1.0, "100 %")] {
            let style = Style::new(10.0, self.palette.muted).anchored(Anchor::Middle);
            self.svg
                .text(left + share * width, y + 25.0, style, text, None);
        }
    }

    /// One kind; returns where the next begins.
    fn section(&mut self, section: &Section, grid: &Grid, y: f64) -> f64 {
        let Palette {
            foreground, muted, ..
        } = self.palette;
        self.svg.open(&format!("id=\"{}\"", section.kind.name()));
        let title = Style::new(16.0, *foreground).bold();
        self.svg
            .text(MARGIN, y + 10.0, title, section.kind.title(), None);
        let axes = Style::new(11.0, *muted);
        self.svg
            .text(MARGIN, y + 28.0, axes, section.kind.axes(), None);
        let mut top = y + SECTION_TITLE;
        let key_room = HEAD_TITLE + grid.key_height;
        for (number, row) in section.layers.iter().enumerate() {
            if number == 0 {
                self.head_titles(row, grid, top);
                top += key_room;
                self.keys(grid, row.maps.len(), top - LABEL_GAP, Anchor::Start);
            }
            let middle = top + grid.rows as f64 * grid.cell / 2.0;
            let style = Style::new(TEXT, *muted)
                .anchored(Anchor::Middle)
                .turned(-90.0);
            self.svg
                .text(MARGIN + TEXT, middle, style, &row.title, None);
            self.queries(section, grid, top);
            for (head, (title, map)) in row.maps.iter().enumerate() {
                let x = grid.left() + head as f64 * grid.across;
                self.cells(map, grid, x, top, &format!("{}, {title}", row.title));
            }
            top += grid.down;
        }
        let mut bottom = top - 16.0;
        if section.layers.len() > 2 {
            let heads = section.layers.last().map_or(0, |row| row.maps.len());
            let gap = grid.down - 16.0 - grid.rows as f64 * grid.cell;
            self.keys(grid, heads, bottom - gap + LABEL_GAP, Anchor::End);
            bottom += grid.key_height;
        }
        self.svg.close();
        bottom + SECTION_GAP
    }

    fn head_titles(&mut self, row: &crate::selection::Row, grid: &Grid, top: f64) {
        for (head, (title, _)) in row.maps.iter().enumerate() {
            let x = grid.left() + head as f64 * grid.across;
            let style = Style::new(TEXT, self.palette.muted);
            self.svg.text(x, top + TEXT, style, title, None);
        }
    }

    /// The keys, above (`Start`) or below (`End`) the maps.
    fn keys(&mut self, grid: &Grid, heads: usize, y: f64, anchor: Anchor) {
        let style = Style::new(grid.font, self.palette.foreground);
        for head in 0..heads {
            let left = grid.left() + head as f64 * grid.across;
            for (key, text) in grid.keys.iter().enumerate() {
                let x = left + (key as f64 + 0.5) * grid.cell;
                if grid.upright_keys {
                    let y = if anchor == Anchor::Start {
                        y
                    } else {
                        y + grid.font * 0.8
                    };
                    let style = style.anchored(Anchor::Middle);
                    self.svg.text(x, y, style, text, None);
                } else {
                    let style = style.anchored(anchor).turned(-90.0);
                    self.svg.text(x + grid.font * 0.35, y, style, text, None);
                }
            }
        }
    }

    /// The queries, beside the maps.
    fn queries(&mut self, section: &Section, grid: &Grid, top: f64) {
        let style = Style::new(grid.font, self.palette.foreground);
        let right =
            grid.left() + (grid.heads - 1) as f64 * grid.across + grid.cols as f64 * grid.cell;
        for (query, (text, full)) in grid.queries.iter().zip(&section.queries).enumerate() {
            let y = top + (query as f64 + 0.5) * grid.cell + grid.font * 0.35;
            let left = style.anchored(Anchor::End);
            self.svg
                .text(grid.left() - LABEL_GAP, y, left, text, Some(full));
            if grid.labels_right() {
                self.svg.text(right + LABEL_GAP, y, style, text, None);
            }
        }
    }

    /// One heat map. Cells of one color are one path, and weights below half a percent are not drawn: a
    /// sheet of 144 maps stays small.
    fn cells(&mut self, map: &Map, grid: &Grid, x: f64, y: f64, title: &str) {
        let (width, height) = (map.cols() as f64 * grid.cell, map.rows() as f64 * grid.cell);
        let mut levels: BTreeMap<u32, String> = BTreeMap::new();
        for row in 0..map.rows() {
            let mut col = 0;
            for run in map.row(row).chunk_by(|a, b| percent(*a) == percent(*b)) {
                let level = percent(run[0]);
                if level > 0 {
                    let path = levels.entry(level).or_default();
                    let _ = write!(path, "M{col} {row}h{0}v1h-{0}z", run.len());
                }
                col += run.len();
            }
        }
        self.svg.open(&format!(
            "transform=\"translate({x:.2} {y:.2}) scale({})\" shape-rendering=\"crispEdges\"",
            grid.cell
        ));
        self.svg.raw(format_args!("<title>{title}</title>"));
        for (level, path) in &levels {
            self.svg.path(path, self.map.at(*level as f32 / 100.0));
        }
        self.svg.close();
        self.svg.frame(x, y, width, height, self.palette.line);
        if grid.cell >= 24.0 {
            self.numbers(map, grid, x, y);
        }
    }

    fn numbers(&mut self, map: &Map, grid: &Grid, x: f64, y: f64) {
        for row in 0..map.rows() {
            for (col, weight) in map.row(row).iter().enumerate() {
                if percent(*weight) == 0 {
                    continue;
                }
                let color = readable_on(self.map.at(*weight));
                let size = grid.cell * 0.3;
                let style = Style::new(size, color).anchored(Anchor::Middle);
                let (x, y) = (
                    x + (col as f64 + 0.5) * grid.cell,
                    y + (row as f64 + 0.5) * grid.cell,
                );
                self.svg.text(
                    x,
                    y + size * 0.36,
                    style,
                    &percent(*weight).to_string(),
                    None,
                );
            }
        }
    }
}

fn percent(weight: f32) -> u32 {
    (weight.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// Black or white, whichever can be read.
fn readable_on(Color(r, g, b): Color) -> Color {
    let light = 0.3 * f32::from(r) + 0.59 * f32::from(g) + 0.11 * f32::from(b);
    if light > 140.0 {
        Color(20, 22, 30)
    } else {
        Color(250, 250, 250)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;
    use crate::sample;
    use crate::selection::{Heads, Selection, Unit};

    fn sheet(source: &[&str], target: &[&str], heads: Heads, layer: Option<usize>) -> String {
        let record = sample::with_tokens(source, target, 2, 5);
        let selection = Selection {
            kinds: Kind::ALL.to_vec(),
            layer,
            heads,
            unit: Unit::Tokens,
        };
        let heading = Heading {
            source: record.source_text.clone(),
            target: record.target_text.clone(),
            model: "a model".into(),
        };
        draw(&heading, &selection.of(&record).unwrap(), Theme::Light)
    }

    #[test]
    fn every_map_and_every_token_is_there() {
        let svg = sheet(&["ein", "Hund", "</s>"], &["dog", "</s>"], Heads::All, None);
        for layer in 1..=2 {
            for head in 1..=5 {
                let title = format!("<title>layer {layer}, head {head}</title>");
                assert_eq!(svg.matches(&title).count(), 3, "{title}");
            }
        }
        for token in ["ein", "Hund", "dog", "&lt;s&gt;", "&lt;/s&gt;"] {
            assert!(svg.contains(&format!(">{token}</text>")), "{token}");
        }
    }

    #[test]
    fn the_color_of_a_cell_is_the_color_of_its_weight() {
        let record = sample::record(4, 3, 1, 1);
        let selection = Selection {
            kinds: vec![Kind::Cross],
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        let heading = Heading {
            source: String::new(),
            target: String::new(),
            model: String::new(),
        };
        let svg = draw(&heading, &selection.of(&record).unwrap(), Theme::Dark);
        let cells = svg
            .split("scale(44)")
            .nth(1)
            .unwrap()
            .split("</g>")
            .next()
            .unwrap();
        for (i, weight) in record.cross[0][0].weights().iter().enumerate() {
            let color = ColorMap::sequential(Theme::Dark).at(percent(*weight) as f32 / 100.0);
            let cell = format!("M{} {}h", i % 4, i / 4);
            let path = cells
                .lines()
                .find(|line| line.contains(&format!("fill=\"{color}\"")));
            let path = path.unwrap_or_else(|| panic!("no cell of {weight} in {cells}"));
            assert!(path.contains(&cell), "{cell} ({weight}) is not in {path}");
        }
    }

    #[test]
    fn nasty_tokens_stay_text_in_valid_xml() {
        let nasty = [
            "\"'&",
            "<script>alert(1)</script>",
            "👩‍👧",
            "שלום",
            "\u{202E}x",
            "\x1b",
            "</s>",
        ];
        for heads in [Heads::All, Heads::One(1)] {
            let svg = sheet(&nasty, &nasty, heads, Some(1));
            assert!(!svg.contains("<script"));
            let parsed = resvg::usvg::roxmltree::Document::parse(&svg).unwrap();
            let shown: Vec<_> = parsed
                .descendants()
                .filter_map(|node| node.text())
                .collect();
            for text in ["\"'&", "👩‍👧", "שלום", "U+202Ex", "U+001B"] {
                assert!(shown.contains(&text), "{text} is not in {shown:?}");
            }
        }
    }

    #[test]
    fn a_long_sentence_is_told_whole_in_several_lines() {
        let words: Vec<&str> = "Ein kleiner Hund rennt über die grüne Wiese und fängt einen Ball"
            .split(' ')
            .collect();
        let lines = label::wrapped(&words.join(" "), 20.0);
        assert!(
            lines.len() > 1 && lines.join(" ").split(' ').eq(words),
            "{lines:?}"
        );
        let wide = label::wrapped(&"w".repeat(200), 20.0);
        assert!(
            fonts::width(&wide[0]) <= 20.0 && wide[0].ends_with('…'),
            "{wide:?}"
        );
        assert!(label::wrapped(&"wort ".repeat(200), 20.0)[2].ends_with('…'));
    }

    #[test]
    fn from_two_to_sixty_tokens_everything_is_within_the_page() {
        for tokens in [1, 2, 20, 60] {
            let mut words = vec!["Donaudampfschifffahrt"; tokens - 1];
            words.push("</s>");
            for heads in [Heads::All, Heads::One(1)] {
                let svg = sheet(&words, &words, heads, None);
                let parsed = resvg::usvg::roxmltree::Document::parse(&svg).unwrap();
                let root = parsed.root_element();
                let number = |node: &resvg::usvg::roxmltree::Node<'_, '_>, name: &str| -> f64 {
                    node.attribute(name).unwrap().parse().unwrap()
                };
                let (width, height) = (number(&root, "width"), number(&root, "height"));
                for text in root.descendants().filter(|node| node.has_tag_name("text")) {
                    let (x, y) = (number(&text, "x"), number(&text, "y"));
                    let long = fonts::width(text.last_child().unwrap().text().unwrap())
                        * number(&text, "font-size");
                    let (before, after) = match text.attribute("text-anchor") {
                        None => (0.0, long),
                        Some("middle") => (long / 2.0, long / 2.0),
                        _ => (long, 0.0),
                    };
                    let inside = match text.attribute("transform") {
                        None => x - before >= 0.0 && x + after <= width && y <= height,
                        Some(_) => y + before <= height && y - after >= 0.0 && x <= width,
                    };
                    assert!(inside, "{tokens} tokens, {width} x {height}: {text:?}");
                }
            }
        }
    }
}
