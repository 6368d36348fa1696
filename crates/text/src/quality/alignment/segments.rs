//! From cells to stretches: the test of cumulative sums.
//!
//! How often each cell occurs where lines belong together is counted over the own lines of the corpus, and where they do
//! not over lines that are far apart. Their logarithmic ratio is the evidence of a cell. In a stretch that is shifted
//! by k lines the evidence of line i + k exceeds that of line i again and again; sums of such differences, less a drift,
//! rise only there. A long shifted stretch spoils the first counts, so they are taken again without what was found.

use rayon::prelude::*;

use super::lexical::CELLS;
use super::{FARTHEST, Fault, SHIFTS, Stretch};

/// The cell of a line that is not there.
pub(super) const NO_LINE: u8 = u8::MAX;

/// The cells of a file: of each line with those around it, and with one far away.
#[derive(Default)]
pub(super) struct Cells {
    pub(super) rows: Vec<[u8; SHIFTS + 1]>,
}

/// A sum that chance does not reach, in millions of lines and sixteen shifts: less often than once in e^30 places.
const SHIFTED_SUM: f32 = 30.0;

/// Free translations come together, so that lines are unrelated needs more than chance allows.
const UNRELATED_SUM: f32 = 60.0;

/// The part of the evidence that is to be expected in a stretch, which each line must exceed.
const DRIFT: f32 = 0.35;

/// A single line says at most so much.
const MOST_EVIDENCE: f32 = 4.0;

/// A sum that has fallen by so much below its peak ends its stretch.
const FALL: f32 = 12.0;

/// Lines that say little within a stretch.
const GAP: usize = 50;

/// Fewer lines are no stretch.
const FEWEST_LINES: usize = 4;

/// The stretches of all files, in their order.
pub(super) fn find(files: &[Cells]) -> Vec<Stretch> {
    let first = search(files, &Evidence::count(files, &[]));
    let mut found = search(files, &Evidence::count(files, &first));
    found.sort_by_key(|stretch| (stretch.file, stretch.first));
    joined(found)
}

/// A shift that goes on after some lines that say little, or seem unrelated, is one stretch.
fn joined(found: Vec<Stretch>) -> Vec<Stretch> {
    let mut kept: Vec<Stretch> = Vec::new();
    for stretch in found {
        let between =
            |other: &&Stretch| other.file == stretch.file && other.fault == Fault::Unrelated;
        let before = kept.len() - kept.iter().rev().take_while(between).count();
        if stretch.fault != Fault::Unrelated
            && let Some(last) = before.checked_sub(1)
            && (kept[last].file, kept[last].fault) == (stretch.file, stretch.fault)
        {
            let unrelated = kept[before..].iter().map(|other| other.end - other.first);
            if stretch.first - kept[last].end <= unrelated.sum::<usize>() + GAP {
                kept.truncate(before);
                kept[last].end = stretch.end;
                continue;
            }
        }
        kept.push(stretch);
    }
    kept
}

/// What a cell says for lines that belong together.
struct Evidence {
    of_cell: [f32; 256],
    /// What is expected of a line that is shifted, and of one that is unrelated.
    shifted: f32,
    unrelated: f32,
}

impl Evidence {
    /// Counts the cells of all lines but those of the stretches.
    fn count(files: &[Cells], without: &[Stretch]) -> Self {
        let (mut own, mut other) = ([1.0f32; CELLS], [1.0f32; CELLS]);
        for (file, cells) in files.iter().enumerate() {
            let mut skip = vec![false; cells.rows.len()];
            for stretch in without.iter().filter(|stretch| stretch.file == file) {
                skip[stretch.first..stretch.end].fill(true);
            }
            for (row, _) in cells.rows.iter().zip(skip).filter(|(_, skip)| !skip) {
                if let (Some(a), Some(b)) = (
                    own.get_mut(row[FARTHEST] as usize),
                    other.get_mut(row[SHIFTS] as usize),
                ) {
                    *a += 1.0;
                    *b += 1.0;
                }
            }
        }
        let all: f32 = own.iter().sum();
        let mut of_cell = [0.0; 256];
        let (mut expected_own, mut expected_other) = (0.0, 0.0);
        for cell in 0..CELLS {
            let evidence = (own[cell] / other[cell])
                .ln()
                .clamp(-MOST_EVIDENCE, MOST_EVIDENCE);
            of_cell[cell] = evidence;
            expected_own += evidence * own[cell] / all;
            expected_other -= evidence * other[cell] / all;
        }
        Self {
            of_cell,
            shifted: (expected_own + expected_other).max(0.5),
            unrelated: expected_other.max(0.5),
        }
    }
}

fn search(files: &[Cells], evidence: &Evidence) -> Vec<Stretch> {
    let tasks: Vec<(usize, usize)> = (0..files.len())
        .flat_map(|file| (0..SHIFTS).map(move |shift| (file, shift)))
        .collect();
    let found: Vec<Vec<(f32, Stretch)>> = tasks
        .into_par_iter()
        .map(|(file, shift)| one_shift(file, &files[file].rows, shift, evidence))
        .collect();
    let mut found: Vec<(f32, Stretch)> = found.into_iter().flatten().collect();
    // Of stretches that overlap the one with the most evidence stays; that lines are shifted says more than that they
    // are unrelated.
    found.sort_by(|a, b| {
        let unrelated = |found: &(f32, Stretch)| found.1.fault == Fault::Unrelated;
        let order = unrelated(a).cmp(&unrelated(b));
        order.then(b.0.total_cmp(&a.0))
    });
    let mut kept: Vec<Stretch> = Vec::new();
    for (_, stretch) in found {
        let overlaps = |other: &Stretch| {
            other.file == stretch.file && other.first < stretch.end && stretch.first < other.end
        };
        if !kept.iter().any(overlaps) {
            kept.push(stretch);
        }
    }
    kept
}

/// The stretches of a file for one distance; the distance 0 looks for lines that are unrelated.
fn one_shift(
    file: usize,
    rows: &[[u8; SHIFTS + 1]],
    shift: usize,
    evidence: &Evidence,
) -> Vec<(f32, Stretch)> {
    let (fault, least, drift) = if shift == FARTHEST {
        (Fault::Unrelated, UNRELATED_SUM, DRIFT * evidence.unrelated)
    } else {
        let distance = shift as i64 - FARTHEST as i64;
        (
            Fault::Shifted(distance),
            SHIFTED_SUM,
            DRIFT * evidence.shifted,
        )
    };
    let mut found = Vec::new();
    let (mut sum, mut start) = (0.0f32, 0);
    let (mut peak, mut peak_end) = (0.0f32, 0);
    let mut end_run = |peak: f32, start: usize, end: usize| {
        if peak >= least && end - start >= FEWEST_LINES {
            found.push((
                peak,
                Stretch {
                    file,
                    first: start,
                    end,
                    fault,
                },
            ));
        }
    };
    for (line, row) in rows.iter().enumerate() {
        let own = evidence.of_cell[row[FARTHEST] as usize];
        let gain = match fault {
            Fault::Unrelated => -own,
            Fault::Shifted(_) if row[shift] == NO_LINE => 0.0,
            Fault::Shifted(_) => evidence.of_cell[row[shift] as usize] - own,
        };
        sum += gain - drift;
        if sum > peak {
            (peak, peak_end) = (sum, line + 1);
        }
        if sum <= 0.0 || sum < peak - FALL {
            end_run(peak, start, peak_end);
            (sum, peak, start) = (0.0, 0.0, line + 1);
        }
    }
    end_run(peak, start, peak_end);
    found
}
