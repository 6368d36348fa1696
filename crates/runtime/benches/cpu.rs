//! How fast the CPU model is, without a peer: its kernels, whole batches, single sentences.
//!
//! ```sh
//! cargo bench -p attentive-runtime --bench cpu -- kernels [PART_OF_A_NAME]
//! cargo bench -p attentive-runtime --bench cpu -- MODEL_DIR SOURCE_FILE
//! ```
//!
//! The first one prints, for each kernel on one thread, its share of what the machine can do: of dot products
//! in registers, or of reading memory that lies outside of a core's own caches. `ATTENTIVE_ISA` chooses other
//! instructions than the best.
//!
//! `benchmarks/run translation` compares with CTranslate2; this one is for whoever changes a kernel.

use std::path::Path;
use std::time::Instant;

use attentive_model::ModelDir;
use attentive_runtime::cpu::roofline::{self, Kernel, Unit};
use attentive_runtime::cpu::{Compute, CpuModel, Isa};
use attentive_runtime::search::{Method, Request, SearchOptions, search};
use attentive_text::special::source_ids;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let (model, sources, filter) = match &arguments[..] {
        [what, filter @ ..] if what == "kernels" => return kernels(filter),
        [model, sources, filter @ ..] => (model, sources, filter),
        _ => {
            eprintln!(
                "usage: cargo bench -p attentive-runtime --bench cpu -- kernels [PART_OF_A_NAME]\n       \
                 cargo bench -p attentive-runtime --bench cpu -- MODEL_DIR SOURCE_FILE [WHAT]"
            );
            return;
        }
    };
    let dir = ModelDir::open(Path::new(model)).expect("a model directory");
    let text = std::fs::read_to_string(sources).expect("a text file");
    let source = |line| Request::new(source_ids(dir.tokenizers.src.encode(line)));
    let mut sources: Vec<Request> = text.lines().map(source).collect();
    sources.sort_by_key(|request| std::cmp::Reverse(request.source.len()));
    let wanted = |what: &str| {
        filter.is_empty() || filter.iter().any(|filter| what.contains(filter.as_str()))
    };
    for compute in [Compute::F32, Compute::Int8] {
        let started = Instant::now();
        let Ok(model) = CpuModel::open(&dir, compute) else {
            continue;
        };
        println!(
            "{compute:?}: opened in {:.1} ms",
            started.elapsed().as_secs_f64() * 1e3
        );
        for (name, method) in [
            ("greedy", Method::Greedy),
            ("beam4", Method::Beam { size: 4 }),
        ] {
            let options = SearchOptions {
                method,
                ..Default::default()
            };
            for batch in [16, 32, 64, 128] {
                let what = format!("{compute:?}-{name}-batch{batch}-");
                if wanted(&what) {
                    batches(&model, &sources, &options, batch, &what);
                }
            }
            let what = format!("{compute:?}-{name}-single-");
            if wanted(&what) {
                singles(&model, &sources, &options, &what);
            }
        }
    }
}

/// A table of the kernels whose names hold one of these words, all if there is none.
fn kernels(filter: &[String]) {
    let isa = Isa::detect().expect("an instruction set");
    let peaks = roofline::peaks(isa).into_iter();
    let peaks: Vec<(Unit, f64)> = peaks.map(|mut peak| (peak.unit, rate(&mut peak))).collect();
    println!("| kernel ({}) | rate | of peak |", isa.name());
    println!("| --- | --- | --- |");
    for (unit, peak) in &peaks {
        let what = match unit {
            Unit::Int8 => "peak: int8 in registers",
            Unit::F32 => "peak: f32 in registers",
            Unit::Bytes => "peak: reading far memory",
        };
        println!("| {what} | {} | |", shown(*unit, *peak));
    }
    for mut kernel in roofline::kernels(isa) {
        if filter.is_empty() || filter.iter().any(|part| kernel.name.contains(&**part)) {
            let (unit, rate) = (kernel.unit, rate(&mut kernel));
            let peak = peaks.iter().find(|(of, _)| *of == unit);
            let share = rate / peak.expect("every unit has a peak").1;
            println!(
                "| {} | {} | {:.0}% |",
                kernel.name,
                shown(unit, rate),
                100.0 * share
            );
        }
    }
}

fn shown(unit: Unit, rate: f64) -> String {
    match unit {
        Unit::Int8 | Unit::F32 => format!("{:.0} GOP/s", 2e-9 * rate),
        Unit::Bytes => format!("{:.0} GB/s", 1e-9 * rate),
    }
}

/// Work per second: the median of some rounds.
fn rate(kernel: &mut Kernel) -> f64 {
    let mut round = |runs: usize| {
        let started = Instant::now();
        (0..runs).for_each(|_| kernel.run());
        started.elapsed().as_secs_f64()
    };
    let mut runs = 1;
    while round(runs) < 0.01 {
        runs *= 2;
    }
    let mut seconds: Vec<f64> = (0..9).map(|_| round(runs)).collect();
    seconds.sort_by(f64::total_cmp);
    (runs * kernel.work) as f64 / seconds[4]
}

/// One thread for each core, each with every other batch.
fn batches(
    model: &CpuModel,
    sources: &[Request],
    options: &SearchOptions,
    batch: usize,
    what: &str,
) {
    for threads in [1, 2] {
        let started = Instant::now();
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(batch) = sources.chunks(batch).nth(i) else {
                            break;
                        };
                        search(model, batch, options);
                    }
                });
            }
        });
        let rate = sources.len() as f64 / started.elapsed().as_secs_f64();
        println!("{what} {threads} threads: {rate:.0} sentences/s");
    }
}

fn singles(model: &CpuModel, sources: &[Request], options: &SearchOptions, what: &str) {
    let mut times: Vec<f64> = sources
        .iter()
        .map(|source| {
            let started = Instant::now();
            search(model, &[source], options);
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("{what} p50 {:.2} ms, p95 {:.2} ms", at(0.5), at(0.95));
}
