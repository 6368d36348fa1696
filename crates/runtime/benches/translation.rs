//! Our side of `benchmarks/run translation`: a process that loads a model and then does what it is
//! told, line by line, so that contenders can take turns.
//!
//! ```text
//! translation encode MODEL < lines            one JSON array of token ids for each line
//! translation decode MODEL < ids              one line of text for each JSON array
//! translation quantize MODEL DIR              the model in int8
//! translation serve MODEL SOURCES COMPUTE THREADS
//!     load                              -> {"seconds", "tokenizer_seconds", "start_kib", "loaded_kib"}
//!     speed BEAM BATCH [TOKENS]         -> {"seconds", "peak_kib"}, all sources; batch 0 is our choice
//!     latency BEAM COUNT                -> {"seconds": [...]}, one source after the other
//!     outputs BEAM                      -> {"outputs": [[ids]]}
//! ```

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use attentive_model::directory::ModelDir;
use attentive_runtime::cpu::{Compute, CpuModel, quantize};
use attentive_runtime::search::{Request, SearchOptions};
use attentive_runtime::{Translator, TranslatorOptions};
use attentive_text::special::source_ids;
use serde_json::json;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> Answer<()> {
    // As in the binary, too.
    #[cfg(target_os = "linux")]
    // SAFETY: only tells the kernel how to back memory.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0)
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["encode", model] => {
            let tokenizer = ModelDir::open(model)?.tokenizers.src;
            each_line(|line| {
                let source = source_ids(tokenizer.encode(line));
                Ok(json!(source).to_string())
            })
        }
        ["decode", model] => {
            let tokenizer = ModelDir::open(model)?.tokenizers.tgt;
            each_line(|line| {
                let tokens: Vec<u32> = serde_json::from_str(line)?;
                Ok(tokenizer.decode(&tokens).replace(['\n', '\r'], " "))
            })
        }
        ["quantize", model, out] => {
            quantize(model.as_ref(), out.as_ref())?;
            Ok(())
        }
        ["serve", model, sources, compute, threads] => {
            Server::new(model, sources, compute, threads.parse()?)?.serve()
        }
        // `cargo bench` and `cargo test --benches` call it without work.
        _ => Ok(()),
    }
}

fn each_line(mut answer: impl FnMut(&str) -> Answer<String>) -> Answer<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        writeln!(output, "{}", answer(&line?)?)?;
        output.flush()?;
    }
    Ok(())
}

struct Server {
    translator: Translator,
    options: TranslatorOptions,
    sources: Vec<Request>,
    loading: serde_json::Value,
}

impl Server {
    fn new(model: &str, sources: &str, compute: &str, threads: usize) -> Answer<Self> {
        let sources = fs::read_to_string(sources)?;
        let sources = sources.lines().map(serde_json::from_str);
        let sources = sources.map(|source| source.map(Request::new));
        let sources = sources.collect::<Result<_, _>>()?;
        let compute = match compute {
            "f32" => Compute::F32,
            "int8" => Compute::Int8,
            _ => Compute::Auto,
        };
        let options = TranslatorOptions {
            threads: Some(threads),
            ..Default::default()
        };
        let start = memory_kib("VmRSS");
        // The tokenizer by itself, as other software has none.
        let clock = Instant::now();
        let mut directory = ModelDir::open(model)?;
        // As in the binary, but only if the variable names a folder.
        directory.cache = std::env::var_os("ATTENTIVE_CACHE").map(Into::into);
        let tokenizer_seconds = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let network = CpuModel::open(&directory, compute)?;
        let options = options.within(&directory.config);
        let translator = Translator::new(network, directory.tokenizers, options)?;
        let loading = json!({
            "seconds": clock.elapsed().as_secs_f64(),
            "tokenizer_seconds": tokenizer_seconds,
            "start_kib": start,
            "loaded_kib": memory_kib("VmRSS"),
        });
        Ok(Self {
            options: translator.options().clone(),
            translator,
            sources,
            loading,
        })
    }

    fn serve(mut self) -> Answer<()> {
        each_line(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let answer = match words[..] {
                ["load"] => self.loading.clone(),
                ["speed", beam, batch, ref tokens @ ..] => {
                    self.set(beam.parse()?, batch.parse()?)?;
                    if let [tokens] = tokens {
                        let mut options = self.translator.options().clone();
                        options.batch_tokens = tokens.parse()?;
                        self.translator = self.translator.with_options(options)?;
                    }
                    let clock = Instant::now();
                    self.translator.translate_tokens(&self.sources);
                    let seconds = clock.elapsed().as_secs_f64();
                    json!({ "seconds": seconds, "peak_kib": memory_kib("VmHWM") })
                }
                ["latency", beam, count] => {
                    self.set(beam.parse()?, 1)?;
                    json!({ "seconds": self.one_by_one(count.parse()?) })
                }
                ["outputs", beam] => {
                    self.set(beam.parse()?, 0)?;
                    let found = self.translator.translate_tokens(&self.sources);
                    let best = found.iter().map(|hypotheses| &hypotheses[0].tokens);
                    json!({ "outputs": best.collect::<Vec<_>>() })
                }
                _ => return Err(format!("unknown request {line:?}").into()),
            };
            Ok(answer.to_string())
        })
    }

    fn set(&mut self, beam: usize, batch: usize) -> Answer<()> {
        let mut options = self.options.clone();
        options.search = match beam {
            1 => SearchOptions::greedy(),
            size => SearchOptions::beam(size),
        };
        // Learned positions limit the length; `open` has found that out.
        options.search.max_length = self.options.search.max_length;
        options.batch_sentences = (batch > 0).then_some(batch);
        self.translator = self.translator.with_options(options)?;
        Ok(())
    }

    fn one_by_one(&self, count: usize) -> Vec<f64> {
        let sources = self.sources.iter().take(count);
        sources
            .map(|source| {
                let clock = Instant::now();
                self.translator
                    .translate_tokens(std::slice::from_ref(source));
                clock.elapsed().as_secs_f64()
            })
            .collect()
    }
}

/// A line of what the system says about this process (Linux only; 0 elsewhere).
fn memory_kib(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}
