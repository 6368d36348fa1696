//! The alignment error rate of cross-attention, on pairs with word alignments made by hand
//! (`fixtures/alignments.de-en.tsv`: links between units, `1-2` for certain ones and `1~2` for possible ones).

use std::collections::BTreeSet;
use std::path::Path;

use attentive_runtime::Translator;
use attentive_runtime::inspection::Inspect;
use attentive_runtime::search::SearchModel;
use attentive_text::markup::{Bare, Marked, Part, units, units_of_tokens};
use attentive_text::special::source_ids;

type Pairs = BTreeSet<(usize, usize)>;

struct Gold {
    src: String,
    tgt: String,
    sure: Pairs,
    possible: Pairs,
}

fn gold() -> Vec<Gold> {
    let read = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let pairs = |sign: char| -> Pairs {
            let pair = |link: &str| {
                let (src, tgt) = link.split_once(sign)?;
                Some((src.parse().ok()?, tgt.parse().ok()?))
            };
            columns[2].split(' ').filter_map(pair).collect()
        };
        let sure = pairs('-');
        Gold {
            src: columns[0].to_owned(),
            tgt: columns[1].to_owned(),
            possible: &pairs('~') | &sure,
            sure,
        }
    };
    include_str!("fixtures/alignments.de-en.tsv")
        .lines()
        .map(read)
        .collect()
}

fn model(name: &str) -> Translator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../models")
        .join(name);
    Translator::open(path).expect("the repository holds this model")
}

/// Weights `[tgt_len + 1][src_len]` to links between units: for each target token the strongest source token, or the
/// other way around.
fn links(translator: &Translator, src: &str, tgt: &str, weights: &[f32], columns: bool) -> Pairs {
    let tokenizers = translator.tokenizers();
    let (src_ids, tgt_ids) = (tokenizers.src.encode(src), tokenizers.tgt.encode(tgt));
    let src_units = units_of_tokens(&tokenizers.src.char_ends(&src_ids), src);
    let tgt_units = units_of_tokens(&tokenizers.tgt.char_ends(&tgt_ids), tgt);
    let width = src_ids.len() + 1;
    let weight = |t: usize, s: usize| weights[t * width + s];
    let strongest = |count: usize, weight: &dyn Fn(usize) -> f32| {
        (0..count).max_by(|&a, &b| weight(a).total_cmp(&weight(b)).then(b.cmp(&a)))
    };
    let mut pairs = Pairs::new();
    let mut link = |s: usize, t: usize| {
        for src_unit in src_units[s].clone() {
            pairs.extend(tgt_units[t].clone().map(|tgt_unit| (src_unit, tgt_unit)));
        }
    };
    if columns {
        for s in 0..src_ids.len() {
            strongest(tgt_ids.len(), &|t| weight(t, s))
                .into_iter()
                .for_each(|t| link(s, t));
        }
    } else {
        for t in 0..tgt_ids.len() {
            strongest(src_ids.len(), &|s| weight(t, s))
                .into_iter()
                .for_each(|s| link(s, t));
        }
    }
    pairs
}

fn mean<'a>(heads: impl Iterator<Item = &'a Vec<f32>>) -> Vec<f32> {
    let heads: Vec<&Vec<f32>> = heads.collect();
    let sum = |place: usize| heads.iter().map(|head| head[place]).sum::<f32>() / heads.len() as f32;
    (0..heads[0].len()).map(sum).collect()
}

/// Och and Ney (2003), §3.
fn error_rate(found: &[Pairs], gold: &[Gold]) -> f64 {
    let (mut right, mut all) = (0, 0);
    for (found, gold) in found.iter().zip(gold) {
        right += (found & &gold.sure).len() + (found & &gold.possible).len();
        all += found.len() + gold.sure.len();
    }
    1.0 - right as f64 / all as f64
}

/// How well elements around one to three words are placed: the mean F1 of the words that are in them, over all such
/// elements that the gold alignment has words for.
fn placement(found: &[Pairs], gold: &[Gold]) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for (found, gold) in found.iter().zip(gold) {
        let links: Vec<_> = found.iter().copied().collect();
        let src_units = units(&gold.src);
        for first in 0..src_units.len() {
            for last in first..src_units.len().min(first + 3) {
                let inside = |(src, _): &&(usize, usize)| (first..=last).contains(src);
                let of = |pairs: &Pairs| -> BTreeSet<usize> {
                    pairs.iter().filter(inside).map(|(_, tgt)| *tgt).collect()
                };
                let (sure, possible) = (of(&gold.sure), of(&gold.possible));
                if sure.is_empty() {
                    continue;
                }
                let (start, end) = (src_units[first].start, src_units[last].end);
                let text = |range: std::ops::Range<usize>| Part::Text(gold.src[range].to_owned());
                let parts = vec![
                    text(0..start),
                    Part::Open(1),
                    text(start..end),
                    Part::Close(1),
                    text(end..gold.src.len()),
                ];
                let restored = Bare::of(&Marked { parts })
                    .restore(&gold.tgt, Some(&links))
                    .marked;
                let place = |part: Part| {
                    restored
                        .parts
                        .iter()
                        .position(|own| *own == part)
                        .expect("each tag once")
                };
                let length = |parts: &[Part]| {
                    Marked {
                        parts: parts.to_vec(),
                    }
                    .text()
                    .len()
                };
                let (open, close) = (place(Part::Open(1)), place(Part::Close(1)));
                let held = length(&restored.parts[..open])..length(&restored.parts[..close]);
                let tgt_units = units(&gold.tgt).into_iter().enumerate();
                let held = tgt_units.filter(|(_, unit)| held.contains(&unit.start));
                let held: BTreeSet<usize> = held.map(|(number, _)| number).collect();
                let precision = (&held & &possible).len() as f64 / held.len().max(1) as f64;
                let recall = (&held & &sure).len() as f64 / sure.len() as f64;
                sum += 2.0 * precision * recall / (precision + recall).max(1e-9);
                count += 1;
            }
        }
    }
    sum / f64::from(count)
}

#[test]
fn words_are_aligned_well_enough_for_tags() {
    let (gold, forward, backward) = (gold(), model("de-en"), model("en-de"));
    assert!(gold.len() >= 30);
    let mut methods: Vec<(String, Vec<Pairs>)> = Vec::new();
    let mut add = |name: &str, found: Pairs| match methods.iter_mut().find(|(own, _)| own == name) {
        Some((_, all)) => all.push(found),
        None => methods.push((name.to_owned(), vec![found])),
    };
    for Gold { src, tgt, .. } in &gold {
        let tokenizers = forward.tokenizers();
        let (src_ids, tgt_ids) = (tokenizers.src.encode(src), tokenizers.tgt.encode(tgt));
        let cross = forward.model().inspect(&src_ids, &tgt_ids, 0).cross;
        let used = forward
            .model()
            .cross_attention(&source_ids(&*src_ids), &tgt_ids)
            .expect("it can say");
        let rows = links(&forward, src, tgt, &used, false);
        let columns = links(&forward, src, tgt, &used, true);
        add("as it is used", rows.clone());
        add("other direction", columns.clone());
        add("intersection", &rows & &columns);
        add("union", &rows | &columns);
        let back_cross = backward.model().inspect(&tgt_ids, &src_ids, 0).cross;
        for (layer, heads) in cross.iter().enumerate() {
            let weights = mean(heads.iter());
            let found = links(&forward, src, tgt, &weights, false);
            add(&format!("layer {layer}, mean"), found.clone());
            for (head, weights) in heads.iter().enumerate() {
                add(
                    &format!("layer {layer}, head {head}"),
                    links(&forward, src, tgt, weights, false),
                );
            }
            let back = links(&backward, tgt, src, &mean(back_cross[layer].iter()), false);
            let back: Pairs = back.into_iter().map(|(t, s)| (s, t)).collect();
            add(
                &format!("layer {layer}, intersection of both models"),
                &found & &back,
            );
        }
        for (name, first) in [("all layers", 0), ("layers from 1", 1)] {
            let weights = mean(cross[first..].iter().flatten());
            let rows = links(&forward, src, tgt, &weights, false);
            let columns = links(&forward, src, tgt, &weights, true);
            add(&format!("{name}, union"), &rows | &columns);
            add(&format!("{name}, intersection"), &rows & &columns);
            add(&format!("{name}, other direction"), columns);
            add(&format!("{name}, mean"), rows);
        }
    }
    let mut rates: Vec<(f64, &str)> = methods
        .iter()
        .map(|(name, found)| (error_rate(found, &gold), &**name))
        .collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (rate, name) in &rates {
        println!("{:.1} {name}", 100.0 * rate);
    }
    let mut placed: Vec<(f64, &str)> = methods
        .iter()
        .map(|(name, found)| (placement(found, &gold), &**name))
        .collect();
    placed.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (f1, name) in placed.iter().take(12) {
        println!("F1 {:.1} {name}", 100.0 * f1);
    }
    let used = rates
        .iter()
        .find(|(_, name)| *name == "as it is used")
        .expect("it was measured")
        .0;
    assert!(used < 0.25, "{used}");
}
