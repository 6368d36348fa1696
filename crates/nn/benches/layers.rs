//! Recurrence, convolution and self-attention, measured: table 1 of the paper, the Rust side of `benchmarks/run layers`.
//!
//! `layers time KIND LEN WIDTH ROWS RUNS` times one layer, forward and backward; `layers path KIND LEN` counts how many
//! layers lie between the last output and the first input: it adds layers until the gradient is no longer zero, and
//! says how many steps of a layer wait for each other. Each prints one JSON line.

use std::time::Instant;

use attentive_nn::{
    attention::multi_head::{AttentionConfig, MultiHeadAttention},
    init::Init,
    layers::{convolution::Convolution, gru::Gru},
    mask::Mask,
    ops::{Direction, Precision},
    parameters,
    pass::Pass,
};
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `k` of the convolution.
const KERNEL: usize = 3;

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
        ["time", kind, len, width, rows, runs] => {
            let [len, width, rows, runs] = [len, width, rows, runs].map(str::parse::<usize>);
            let shape = [rows?, len?, width?];
            let runs = runs?;
            let layer = Layer::new(kind, shape[2], 1)?;
            let [forward, backward] = rayon::scope(|_| layer.time(shape, runs));
            println!(
                "{}",
                serde_json::json!({"forward": forward, "backward": backward})
            );
        }
        ["path", kind, len] => {
            let (layers, gradient) = path(kind, len.parse()?)?;
            let steps = Layer::new(kind, 1, 1)?.sequential_steps(len.parse()?);
            println!(
                "{}",
                serde_json::json!({"layers": layers, "steps": steps, "gradient": gradient})
            );
        }
        _ => {
            return Err(
                "usage: layers time recurrence|convolution|attention LEN WIDTH ROWS RUNS | \
                        layers path recurrence|convolution|attention LEN"
                    .into(),
            );
        }
    }
    Ok(())
}

/// One layer that reads a sequence.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // There is only one of them at a time.
enum Layer {
    Recurrence(Gru),
    Convolution(Convolution),
    Attention(MultiHeadAttention),
}

impl Layer {
    fn new(kind: &str, width: usize, seed: u64) -> Result<Self, String> {
        let (init, device) = (&mut Init::xavier_uniform(seed), &Device::flex().autodiff());
        let attention = AttentionConfig {
            d_model: width,
            heads: (width / 64).max(1),
            kv_heads: (width / 64).max(1),
            dropout: 0.0,
        };
        Ok(match kind {
            "recurrence" => Self::Recurrence(Gru::new(width, width, init, device)),
            "convolution" => {
                Self::Convolution(Convolution::new(KERNEL, width, width, init, device))
            }
            "attention" => Self::Attention(MultiHeadAttention::new(&attention, init, device)),
            _ => return Err(format!("{kind}: recurrence, convolution or attention")),
        })
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let pass = &mut Pass::evaluation();
        let [rows, len, _] = x.dims();
        match self {
            Self::Recurrence(layer) => {
                layer.forward(x, None, &vec![len; rows], Direction::Forward, pass)
            }
            Self::Convolution(layer) => layer.forward(x, Precision::F32),
            Self::Attention(layer) => layer.forward(x, &Mask::Causal, None, pass).hidden,
        }
    }

    /// Steps of one layer that cannot begin before another has ended.
    fn sequential_steps(&self, len: usize) -> usize {
        match self {
            Self::Recurrence(_) => len,
            Self::Convolution(_) | Self::Attention(_) => 1,
        }
    }

    /// The medians of the seconds of a forward and of a backward pass.
    fn time(&self, shape: [usize; 3], runs: usize) -> [f64; 2] {
        let x = Tensor::<3>::ones(shape, &Device::flex().autodiff()).require_grad();
        let mut seconds = [Vec::new(), Vec::new()];
        for _ in 0..=runs {
            let start = Instant::now();
            let sum = self.forward(x.clone()).sum();
            let forward = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let gradients = sum.backward();
            std::hint::black_box(parameters::gradients(self, gradients));
            seconds[0].push(forward);
            seconds[1].push(start.elapsed().as_secs_f64());
        }
        seconds.map(|mut seconds| {
            // The first run warms up.
            seconds.remove(0);
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2]
        })
    }
}

/// How many layers it takes until the last output depends on the first input, and how much it then does.
fn path(kind: &str, len: usize) -> Result<(usize, f64), String> {
    const WIDTH: usize = 8;
    let device = Device::flex().autodiff();
    let values = Init::xavier_uniform(7).matrix(len, WIDTH, &device);
    let mut layers = Vec::new();
    loop {
        layers.push(Layer::new(kind, WIDTH, layers.len() as u64 + 1)?);
        let x = values.clone().unsqueeze::<3>().detach().require_grad();
        let read = |x: Tensor<3>, layer: &Layer| layer.forward(x);
        let output = layers.iter().fold(x.clone(), read);
        let last = output.narrow(1, len - 1, 1).sum();
        let gradient = x.grad(&last.backward()).ok_or("no gradient")?;
        let first = gradient.narrow(1, 0, 1).abs().sum().into_scalar::<f32>();
        if first != 0.0 || layers.len() == len {
            return Ok((layers.len(), first.into()));
        }
    }
}
