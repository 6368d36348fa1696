//! The training step alone, timed: the Rust side of `benchmarks/run training` and `benchmarks/run recurrent`.
//!
//! `training batches FILE ...` plans real batches and writes them for all contenders;
//! `training time FILE ...` trains a Transformer on them and prints one JSON line, `training recurrent FILE ...` a
//! recurrent translator; `training peak ...` times one large matrix product. The model, the loss and the optimizer are the trainer's own; reading, validating and saving are
//! left out on both sides.

use std::{path::PathBuf, time::Instant};

use attentive_model::config::{
    Context, ModelConfig, NormPlacement, Preset, RecurrentConfig, TransformerConfig, Tying,
};
use attentive_nn::{
    models::{EncoderDecoder, recurrent::Recurrent, transformer::Transformer},
    ops::{Precision, project},
    parameters,
    pass::Pass,
};
use attentive_train::{
    Recipe,
    data::batches::{Batch, Budget, plan},
    data::corpus::CorpusText,
    optim::optimizer::{Optimizer, Step, global_norm},
    task::translation::batch_loss,
};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What both contenders read.
#[derive(Serialize, Deserialize)]
struct Work {
    vocab: usize,
    d_model: usize,
    d_ff: usize,
    heads: usize,
    layers: usize,
    dropout: f64,
    label_smoothing: f64,
    learning_rate: f64,
    batches: Vec<Rows>,
}

/// A padded batch, row-major.
#[derive(Serialize, Deserialize)]
struct Rows {
    rows: usize,
    src_len: usize,
    tgt_len: usize,
    src: Vec<u32>,
    tgt: Vec<u32>,
    tokens: usize,
}

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
        ["batches", preset, data, count, file] => write_batches(preset, data, count.parse()?, file),
        // Inside the pool, as the binary does it.
        ["time", file, warm_up, precision] => {
            let (warm_up, precision) = (warm_up.parse()?, precision_of(precision)?);
            let work = Work::read(file)?;
            let config = work.transformer();
            rayon::scope(|_| time::<Transformer>(&work, &config, warm_up, precision));
            Ok(())
        }
        ["recurrent", file, warm_up, precision, context] => {
            let (warm_up, precision) = (warm_up.parse()?, precision_of(precision)?);
            let work = Work::read(file)?;
            let config = work.recurrent(context)?;
            rayon::scope(|_| time::<Recurrent>(&work, &config, warm_up, precision));
            Ok(())
        }
        ["peak", precision] => {
            let precision = precision_of(precision)?;
            println!("{}", rayon::scope(|_| matrix_peak(precision)));
            Ok(())
        }
        _ => Err(
            "usage: training batches PRESET DATA COUNT FILE | training time FILE WARM_UP PRECISION | \
             training recurrent FILE WARM_UP PRECISION fixed|attention | training peak PRECISION"
                .into(),
        ),
    }
}

fn precision_of(name: &str) -> Result<Precision, String> {
    let precision = match name {
        "f32" => Precision::F32,
        "bf16" => Precision::Bf16,
        _ => return Err(format!("{name}: the precision is f32 or bf16")),
    };
    if !precision.available() {
        return Err(format!("this processor has no product in {name}"));
    }
    Ok(precision)
}

/// Plans the first `count` batches of Multi30k for a model of this size.
fn write_batches(
    preset: &str,
    data: &str,
    count: usize,
    file: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let recipe = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../recipes/multi30k.toml");
    let recipe = Recipe::load(
        &recipe,
        &[
            format!("data.dir={data}"),
            format!("model.preset={preset}"),
            "training.batch_tokens=4096".into(),
        ],
    )?;
    let text = CorpusText::read(&recipe)?;
    let tokenizers = text.train_tokenizers(&recipe)?;
    let corpus = text.encode(&recipe, &tokenizers)?;
    let config = Preset::config(
        recipe.model.preset,
        tokenizers.src.vocab_size(),
        tokenizers.tgt.vocab_size(),
    );
    let batches = plan(&corpus.train, Budget::of(&recipe.training), 1, 0)
        .iter()
        .take(count)
        .map(|indices| Batch::collect(&corpus.train, indices))
        .map(|batch| Rows {
            rows: batch.rows(),
            src_len: batch.src_len,
            tgt_len: batch.tgt_len,
            tokens: batch.tgt_tokens(),
            src: batch.src,
            tgt: batch.tgt,
        })
        .collect();
    let work = Work {
        vocab: config.tgt_vocab,
        d_model: config.d_model,
        d_ff: config.d_ff,
        heads: config.heads,
        layers: config.encoder_layers,
        dropout: 0.1,
        label_smoothing: 0.1,
        learning_rate: 1e-4,
        batches,
    };
    std::fs::write(file, serde_json::to_vec(&work)?)?;
    Ok(())
}

impl Work {
    fn read(file: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    fn transformer(&self) -> TransformerConfig {
        TransformerConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            heads: self.heads,
            kv_heads: self.heads,
            encoder_layers: self.layers,
            decoder_layers: self.layers,
            dropout: self.dropout,
            norm: NormPlacement::Pre,
            tying: Tying::All,
            ..Preset::Small.config(self.vocab, self.vocab)
        }
    }

    /// That of `benchmarks/recurrent.py`: 256 wide, dropout 0.2.
    fn recurrent(&self, context: &str) -> Result<RecurrentConfig, String> {
        let context = match context {
            "fixed" => Context::Fixed,
            "attention" => Context::Attention,
            _ => return Err(format!("{context}: the context is fixed or attention")),
        };
        let config = RecurrentConfig {
            context,
            tying: Tying::All,
            ..RecurrentConfig::from_preset(Preset::Small)
        };
        Ok(config.with_vocabularies(self.vocab, self.vocab))
    }
}

/// One pass over the batches; the first `warm_up` are not timed.
fn time<N: EncoderDecoder>(work: &Work, config: &N::Config, warm_up: usize, precision: Precision) {
    let mut model = N::create(config, 1, &Device::flex().autodiff());
    let settings = attentive_train::recipe::Optimizer::default();
    let mut optimizer = Optimizer::new(&settings, &config.tensors());
    let (mut tokens, mut loss_sum, mut started) = (0, 0.0, Instant::now());
    for (index, rows) in work.batches.iter().enumerate() {
        if index == warm_up {
            (tokens, started) = (0, Instant::now());
        }
        let batch = Batch {
            src: rows.src.clone(),
            tgt: rows.tgt.clone(),
            src_lens: Vec::new(),
            tgt_lens: vec![0; rows.rows],
            src_len: rows.src_len,
            tgt_len: rows.tgt_len,
            pairs: (0..rows.rows).collect(),
        };
        let pass = &mut Pass::training(1, index as u64, precision);
        let loss = batch_loss(&model, &batch, work.label_smoothing, pass);
        loss_sum = f64::from(loss.objective.clone().into_scalar::<f32>()) / rows.tokens as f64;
        let gradients = parameters::gradients(&model, loss.objective.backward());
        let norm = global_norm(&gradients) / rows.tokens as f64;
        assert!(norm.is_finite());
        let step = Step {
            number: index as u64 + 1,
            learning_rate: work.learning_rate,
            gradient_scale: 1.0 / rows.tokens as f64,
            precision,
        };
        model = optimizer.step(model, gradients, &step);
        tokens += rows.tokens;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({
            "tokens_per_second": tokens as f64 / seconds,
            "peak_mib": peak_memory_mib(),
            "last_loss": loss_sum,
        })
    );
}

/// The median speed of a product of two 2048 x 2048 matrices, in GFLOPS.
fn matrix_peak(precision: Precision) -> f64 {
    const SIZE: usize = 2048;
    let matrix = Tensor::<2>::ones([SIZE, SIZE], &Device::flex());
    let mut speeds: Vec<f64> = (0..12)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(project(matrix.clone(), matrix.clone(), precision));
            2.0 * (SIZE as f64).powi(3) / start.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}

/// The most memory that the process held, as the kernel counts it.
fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
