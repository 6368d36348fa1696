//! Attention over long sequences, timed and weighed: the Rust side of `benchmarks/run attention`.
//!
//! `attention op LEN MASK DROPOUT RUNS` is the operation alone, forward and backward; `attention encoder LEN
//! DROPOUT RUNS` a training step of a `small` encoder. Each prints one JSON line: the median of the seconds of a
//! run, and the memory that the runs added to the process at their peak.

use std::time::Instant;

use attentive_model::config::{Preset, TransformerConfig};
use attentive_nn::{
    attention::dot_product::{Heads, scaled_dot_product},
    mask::Mask,
    models::transformer::Transformer,
    ops::Precision,
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Distribution, Int, Tensor};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HEADS: usize = 8;
const HEAD_DIM: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // As the binary does it: freed pages are kept (`mi_option_purge_delay` = 15, never).
    // SAFETY: sets an integer inside the allocator; allowed at any time.
    unsafe { libmimalloc_sys::mi_option_set(15, -1) };
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["op", len, mask @ ("open" | "causal"), dropout, runs] => {
            let mask = if mask == "open" {
                Mask::Open
            } else {
                Mask::Causal
            };
            let (dropout, runs) = (dropout.parse()?, runs.parse()?);
            operation(len.parse()?, &mask, dropout, runs);
        }
        ["encoder", len, dropout, runs] => {
            encoder(len.parse()?, dropout.parse()?, runs.parse()?);
        }
        _ => {
            return Err(
                "usage: attention op LEN open|causal DROPOUT RUNS | attention encoder LEN DROPOUT RUNS"
                    .into(),
            );
        }
    }
    Ok(())
}

/// Forward and backward of one sequence.
fn operation(len: usize, mask: &Mask, dropout: f64, runs: usize) {
    let heads = Heads {
        query: HEADS,
        key_value: HEADS,
    };
    let run = |[query, key, value]: &[Tensor<3>; 3], index: usize| {
        let pass = &mut Pass::training(1, index as u64, Precision::F32);
        let [q, k, v] = [query, key, value].map(Clone::clone);
        let values = scaled_dot_product(q, k, v, heads, mask, dropout, pass).values;
        let gradients = values.backward();
        [query, key, value].map(|input| input.grad(&gradients).expect("a gradient"))
    };
    let inputs = |len| {
        let shape = [1, len, HEADS * HEAD_DIM];
        let device = Device::flex().autodiff();
        [(); 3].map(|()| {
            Tensor::<3>::random(shape, Distribution::Normal(0.0, 1.0), &device).require_grad()
        })
    };
    run(&inputs(80), 0);
    let before = Memory::reset();
    let inputs = inputs(len);
    report(before, runs, |index| drop(run(&inputs, index)));
}

/// Forward and backward of the encoder of a `small` model.
fn encoder(len: usize, dropout: f64, runs: usize) {
    let config = TransformerConfig {
        dropout,
        decoder_layers: 1,
        ..Preset::Small.config(1000, 1000)
    };
    let device = Device::flex().autodiff();
    let model = Transformer::new(&config, 1, &device);
    let run = |len: usize, index: usize| {
        let tokens = Tensor::<1, Int>::arange(4..4 + len as i64, &device)
            .remainder_scalar(990)
            .add_scalar(4)
            .reshape([1, len]);
        let pass = &mut Pass::training(1, index as u64, Precision::F32);
        let hidden = model.encode(tokens, pass).hidden;
        parameters::gradients(&model, hidden.backward())
    };
    run(80, 0);
    let before = Memory::reset();
    report(before, runs, |index| drop(run(len, index)));
}

/// Runs it once to warm up and `runs` times more, and prints what was found.
fn report(before: Memory, runs: usize, run: impl Fn(usize)) {
    let mut seconds: Vec<f64> = (0..=runs)
        .map(|index| {
            let start = Instant::now();
            run(index);
            start.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds[seconds.len() / 2],
            "peak_mib": Memory::now().peak - before.resident,
        })
    );
}

/// The memory of this process in MiB, as the kernel counts it.
struct Memory {
    resident: f64,
    peak: f64,
}

impl Memory {
    /// Forgets the peak so far.
    fn reset() -> Self {
        std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
        Self::now()
    }

    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let mib = |key: &str| -> f64 {
            let line = status.lines().find(|line| line.starts_with(key));
            let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
            kib.expect("a number of kB") / 1024.0
        };
        Self {
            resident: mib("VmRSS:"),
            peak: mib("VmHWM:"),
        }
    }
}
