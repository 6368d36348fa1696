//! Edit distance between words inside a beam around the diagonal, in both directions.
//!
//! Cell (i, j) is the cost of turning the first i words of the output into the first j of the reference
//! ("forward"), or what follows them into what follows ("backward"). A shift changes only a stretch of the
//! output, so the cost after a shift needs only the rows of that stretch: forward rows before it and
//! backward rows behind it stay as they are. Cells outside the beam cost infinitely much, so the sums
//! are those of sacreBLEU's beam.

/// More than any cost, with room to add to.
const INFINITE: u32 = u32::MAX / 4;
/// How far the beam reaches to either side of the diagonal.
const BEAM_WIDTH: usize = 25;

/// The columns of each row that the beam covers, as start and end.
#[derive(Debug, Default)]
pub(super) struct Beam {
    rows: Vec<(usize, usize)>,
}

impl Beam {
    /// The beam for an output and a reference of these lengths.
    pub(super) fn set(&mut self, output_len: usize, reference_len: usize) {
        let ratio = reference_len as f64 / output_len as f64;
        // Very unequal lengths need a wider beam, or neighboring rows would not overlap.
        let width = if (BEAM_WIDTH as f64) < ratio / 2.0 {
            (ratio / 2.0 + BEAM_WIDTH as f64).ceil() as usize
        } else {
            BEAM_WIDTH
        };
        let columns = reference_len + 1;
        self.rows.clear();
        self.rows.push((0, columns));
        for i in 1..=output_len {
            let diagonal = (i as f64 * ratio).floor() as usize;
            let end = match i {
                last if last == output_len => columns,
                _ => columns.min(diagonal + width),
            };
            self.rows.push((diagonal.saturating_sub(width), end));
        }
        // The first row is known in full, but the second can only step down from what lies above it.
        if let Some(&(_, end)) = self.rows.get(1) {
            self.rows[0].1 = end;
        }
    }

    pub(super) fn row(&self, i: usize) -> (usize, usize) {
        self.rows[i]
    }
}

/// A matrix of costs; only cells inside the beam are ever read.
#[derive(Debug, Default)]
pub(super) struct CostMatrix {
    starts: Vec<usize>,
    offsets: Vec<usize>,
    cells: Vec<u32>,
}

impl CostMatrix {
    /// The cells of row `i` and the column of the first one.
    pub(super) fn row(&self, i: usize) -> (usize, &[u32]) {
        (
            self.starts[i],
            &self.cells[self.offsets[i]..self.offsets[i + 1]],
        )
    }

    /// One cell, infinite outside the beam.
    pub(super) fn get(&self, i: usize, j: usize) -> u32 {
        let (start, cells) = self.row(i);
        j.checked_sub(start)
            .and_then(|column| cells.get(column).copied())
            .unwrap_or(INFINITE)
    }

    /// Costs from the beginning of both texts.
    pub(super) fn fill_forward(&mut self, output: &[u32], reference: &[u32], beam: &Beam) {
        self.lay_out(output.len(), beam);
        let (_, end) = beam.row(0);
        for (j, cell) in self.cells[..end].iter_mut().enumerate() {
            *cell = j as u32;
        }
        let mut above = Row::new(reference.len());
        let mut row = Row::new(reference.len());
        above.load(0, &self.cells[..end]);
        for (i, &word) in output.iter().enumerate() {
            let (start, end) = beam.row(i + 1);
            row.step(&above, word, reference, start, end);
            self.cells[self.offsets[i + 1]..self.offsets[i + 2]]
                .copy_from_slice(row.cells(start, end));
            std::mem::swap(&mut above, &mut row);
        }
    }

    /// Costs to the end of both texts.
    pub(super) fn fill_backward(&mut self, output: &[u32], reference: &[u32], beam: &Beam) {
        self.lay_out(output.len(), beam);
        let columns = reference.len();
        let (start, end) = beam.row(output.len());
        for j in start..end {
            self.cells[self.offsets[output.len()] + j - start] = (columns - j) as u32;
        }
        for i in (0..output.len()).rev() {
            let (start, end) = beam.row(i);
            let (below_start, below_end) = beam.row(i + 1);
            let (head, tail) = self.cells.split_at_mut(self.offsets[i + 1]);
            let below = |j: usize| {
                if j >= below_start && j < below_end {
                    tail[j - below_start]
                } else {
                    INFINITE
                }
            };
            let row = &mut head[self.offsets[i]..];
            let mut right = INFINITE;
            for j in (start..end).rev() {
                let mut cost = (below(j) + 1).min(right + 1);
                if j < columns {
                    cost = cost.min(below(j + 1) + u32::from(output[i] != reference[j]));
                }
                right = cost.min(INFINITE);
                row[j - start] = right;
            }
        }
    }

    fn lay_out(&mut self, output_len: usize, beam: &Beam) {
        self.starts.clear();
        self.offsets.clear();
        let mut offset = 0;
        for i in 0..=output_len {
            let (start, end) = beam.row(i);
            self.starts.push(start);
            self.offsets.push(offset);
            offset += end - start;
        }
        self.offsets.push(offset);
        self.cells.clear();
        self.cells.resize(offset, INFINITE);
    }
}

/// One row of costs at full width, with a column of infinite cost before the first.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The cell of column j is at j + 1.
    costs: Vec<u32>,
}

impl Row {
    pub(super) fn new(reference_len: usize) -> Self {
        let mut row = Self::default();
        row.clear(reference_len);
        row
    }

    /// Makes all cells infinite.
    pub(super) fn clear(&mut self, reference_len: usize) {
        self.costs.clear();
        self.costs.resize(reference_len + 2, INFINITE);
    }

    /// Takes cells of a matrix row over.
    pub(super) fn load(&mut self, start: usize, cells: &[u32]) {
        self.costs[start + 1..start + 1 + cells.len()].copy_from_slice(cells);
    }

    pub(super) fn cells(&self, start: usize, end: usize) -> &[u32] {
        &self.costs[start + 1..end + 1]
    }

    /// Computes this row from the one above for one more word of the output; returns its lowest cost.
    ///
    /// Cells right of the beam are still infinite, because the beam never moves left.
    pub(super) fn step(
        &mut self,
        above: &Row,
        word: u32,
        reference: &[u32],
        start: usize,
        end: usize,
    ) -> u32 {
        self.costs[start] = INFINITE;
        let mut left = INFINITE;
        let mut lowest = INFINITE;
        let mut first = start;
        if start == 0 {
            left = above.costs[1] + 1;
            self.costs[1] = left;
            lowest = left;
            first = 1;
        }
        let diagonal = &above.costs[first..end];
        let up = &above.costs[first + 1..end + 1];
        let words = &reference[first - 1..end - 1];
        let cells = &mut self.costs[first + 1..end + 1];
        for (((cell, &diagonal), &up), &expected) in
            cells.iter_mut().zip(diagonal).zip(up).zip(words)
        {
            left = (left + 1)
                .min(up + 1)
                .min(diagonal + u32::from(word != expected));
            *cell = left;
            lowest = lowest.min(left);
        }
        lowest
    }

    /// The cheapest way through this row to the end of both texts.
    pub(super) fn join(&self, backward: (usize, &[u32])) -> u32 {
        let (start, cells) = backward;
        let here = self.cells(start, start + cells.len());
        let sums = here.iter().zip(cells).map(|(before, after)| before + after);
        sums.min().unwrap_or(INFINITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_meet_at_the_same_cost() {
        let output: Vec<u32> = (0..70).map(|i| (i * 7) % 31).collect();
        let reference: Vec<u32> = (0..60).map(|i| (i * 5) % 31).collect();
        let mut beam = Beam::default();
        beam.set(output.len(), reference.len());
        let (mut forward, mut backward) = (CostMatrix::default(), CostMatrix::default());
        forward.fill_forward(&output, &reference, &beam);
        backward.fill_backward(&output, &reference, &beam);
        let cost = forward.get(output.len(), reference.len());
        assert_eq!(cost, backward.get(0, 0));
        for i in 0..=output.len() {
            let mut row = Row::new(reference.len());
            let (start, cells) = forward.row(i);
            row.load(start, cells);
            assert_eq!(row.join(backward.row(i)), cost, "row {i}");
        }
    }

    #[test]
    fn very_unequal_lengths_still_overlap() {
        let reference: Vec<u32> = (0..200).collect();
        let mut beam = Beam::default();
        beam.set(2, reference.len());
        let mut forward = CostMatrix::default();
        forward.fill_forward(&[30, 150], &reference, &beam);
        assert_eq!(forward.get(2, 200), 198);
    }
}
