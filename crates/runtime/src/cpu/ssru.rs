//! The simpler simple recurrent unit, which some decoders have instead of self-attention.
//!
//! `f = sigmoid(x Wf + bf)`, `c = f * c + (1 - f) * (x W)`, and `relu(c)` is added to the stream ("From Research to
//! Production and Back: Ludicrously Fast Neural Machine Translation", Kim et al. 2019, §3.2). The cell `c` is all
//! that a layer remembers. Each position keeps its own, in a page of one position ([`super::pages`]), and reads that
//! of the position before: so beams share their past without copies, tokens can be forgotten again, and several
//! positions in a row go through a layer one after the other. Neighbors: [`super::decoder`] calls this.

use super::CpuModel;
use super::activation::sigmoid;
use super::decoder::Row;
use super::layers::{Scratch, Strides};
use super::load::Ssru;
use super::pages::Pages;
use super::rowwise::Norm;
use super::simd::{LANES, Simd, Work};
use attentive_model::config::Autoregression;

/// A page of the target so far.
pub(super) struct PastPage {
    /// How many positions it holds.
    pub positions: usize,
    /// How many numbers it has, for all layers together.
    pub size: usize,
}

impl CpuModel {
    /// Keys and values of [`LANES`] positions, or the cells of one.
    pub(super) fn past_page(&self) -> PastPage {
        let layers = self.network.decoder.len();
        match self.config.autoregression {
            Autoregression::SelfAttention => PastPage {
                positions: LANES,
                size: layers * self.heads.page(),
            },
            Autoregression::Ssru => PastPage {
                positions: 1,
                size: layers * self.strides().model,
            },
        }
    }

    /// The recurrent sub-layer of decoder layer `number` with its residual connection.
    pub(super) fn recur(
        &self,
        scratch: &mut Scratch,
        past: &mut Pages,
        rows: &[Row],
        number: usize,
        ssru: &Ssru,
        norm: &Norm,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let width = self.config.d_model;
        self.project(scratch, rows.len(), norm, &[&ssru.input, &ssru.forget]);
        let part = number * model;
        for (i, row) in rows.iter().enumerate() {
            let projected = &scratch.qkv[i * qkv..][..2 * width];
            let before = row.position.checked_sub(1).map(|before| row.past[before]);
            let before = before.map_or(std::ptr::null(), |page| {
                past.memory()[page + part..][..model].as_ptr()
            });
            let after = &mut past.page_mut(row.past[row.position])[part..][..model];
            self.isa.run(Recur {
                input: projected.as_ptr(),
                forget: projected[width..].as_ptr(),
                before,
                after: after.as_mut_ptr(),
                x: scratch.x[i * model..][..model].as_mut_ptr(),
                width,
            });
        }
        self.normalize_sum(&mut scratch.x, rows.len(), norm);
    }
}

/// One position of one row.
pub(super) struct Recur {
    /// `x W`, `[width]`
    pub input: *const f32,
    /// `x Wf + bf`, `[width]`
    pub forget: *const f32,
    /// The cell of the position before, up to a whole vector; null for zeros.
    pub before: *const f32,
    /// The cell of this position, like `x` up to a whole vector.
    pub after: *mut f32,
    /// Gets `relu(c)` added.
    pub x: *mut f32,
    pub width: usize,
}

impl Work for Recur {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let whole = self.width / LANES * LANES;
        unsafe {
            for i in (0..whole).step_by(LANES) {
                let input = S::load(self.input.add(i));
                let forget = S::load(self.forget.add(i));
                self.update::<S>(i, input, forget);
            }
            if whole < self.width {
                // Behind the end both are 0, and so is all that follows from them.
                let count = self.width - whole;
                let input = S::load_some(self.input.add(whole), count, 0.0);
                let forget = S::load_some(self.forget.add(whole), count, 0.0);
                self.update::<S>(whole, input, forget);
            }
        }
    }
}

impl Recur {
    #[inline(always)]
    unsafe fn update<S: Simd>(&self, i: usize, input: S::F, forget: S::F) {
        unsafe {
            let before = if self.before.is_null() {
                S::splat(0.0)
            } else {
                S::load(self.before.add(i))
            };
            // f * c + (1 - f) * input
            let cell = S::fma(sigmoid::<S>(forget), S::sub(before, input), input);
            S::store(self.after.add(i), cell);
            let x = self.x.add(i);
            S::store(x, S::add(S::load(x), S::max(cell, S::splat(0.0))));
        }
    }
}
