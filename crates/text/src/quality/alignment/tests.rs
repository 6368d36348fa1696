//! Stretches are found where they are, and nowhere else, in a made-up language.

use super::*;

/// A corpus of made-up sentences: word `w` is translated as `W`, in another order, with a little noise.
fn corpus(lines: usize, seed: u64) -> (Vec<String>, Vec<String>) {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut sides = (Vec::new(), Vec::new());
    for _ in 0..lines {
        let words: Vec<u64> = (0..3 + draw(12)).map(|_| draw(20) * draw(20)).collect();
        let src: Vec<String> = words.iter().map(|word| format!("q{word}x")).collect();
        let tgt = words.iter().rev().map(|word| {
            let word = if draw(10) == 0 { draw(400) } else { *word };
            format!("z{word}y")
        });
        sides.1.push(tgt.collect::<Vec<_>>().join(" "));
        sides.0.push(src.join(" "));
    }
    sides
}

fn found(src: &[String], tgt: &[String]) -> Vec<Stretch> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, lines: &[String]| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        path
    };
    let (src, tgt) = (file("src", src), file("tgt", tgt));
    let files = [(&*src, &*tgt)];
    let sample = Sample::read(&files, &mut |_| {}).unwrap();
    find(&files, &sample, &mut |_| {}).unwrap()
}

#[track_caller]
fn assert_near(stretch: &Stretch, first: usize, end: usize, fault: Fault) {
    assert_eq!(stretch.fault, fault, "{stretch:?}");
    assert!(
        stretch.first.abs_diff(first) <= 3 && stretch.end.abs_diff(end) <= 3,
        "{stretch:?}, not {first}..{end}"
    );
}

#[test]
fn nothing_is_found_where_all_is_well() {
    let (src, tgt) = corpus(20_000, 1);
    assert_eq!(found(&src, &tgt), []);
    assert_eq!(found(&src[..3], &tgt[..3]), []);
}

#[test]
fn shifted_stretches_are_found_with_their_distance() {
    let (src, mut tgt) = corpus(20_000, 2);
    // A line is missing, and some lines later there is one too much.
    let lost = tgt.remove(5000);
    tgt.insert(5040, lost);
    tgt.insert(12_000, "z1y z2y".into());
    tgt.insert(12_000, "z3y z4y z5y".into());
    tgt.drain(12_102..12_104);
    let found = found(&src, &tgt);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_near(&found[0], 5000, 5040, Fault::Shifted(-1));
    assert_near(&found[1], 12_000, 12_102, Fault::Shifted(2));
}

#[test]
fn a_shift_from_the_middle_to_the_end_is_found_too() {
    let (src, mut tgt) = corpus(9000, 3);
    tgt.remove(2500);
    tgt.push("z1y".into());
    let found = found(&src, &tgt);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_near(&found[0], 2500, 9000, Fault::Shifted(-1));
}

#[test]
fn lines_that_belong_nowhere_are_found() {
    let (src, mut tgt) = corpus(10_000, 4);
    let others = corpus(200, 5).1;
    tgt[3000..3200].clone_from_slice(&others);
    let found = found(&src, &tgt);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_near(&found[0], 3000, 3200, Fault::Unrelated);
}
