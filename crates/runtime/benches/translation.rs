//! Our side of `benchmarks/run translation`: a process that loads a model and then does what it is
//! told, line by line, so that contenders can take turns.
//!
//! ```text
//! translation encode MODEL < lines            one JSON array of token ids for each line
//! translation decode MODEL < ids              one line of text for each JSON array
//! translation quantize MODEL DIR              the model in int8
//! translation shortlist MODEL SRC TGT FILE    a shortlist, learned from a corpus
//! translation serve MODEL SOURCES COMPUTE THREADS [SHORTLIST]
//!     load                              -> {"seconds", "tokenizer_seconds", "start_kib", "loaded_kib"}
//!     speed BEAM BATCH [TOKENS]         -> {"seconds", "peak_kib"}, all sources; batch 0 is our choice
//!     latency BEAM COUNT                -> {"seconds": [...]}, one source after the other
//!     draft MODEL COMPUTE [SHORTLIST [MOST]]
//!                                       -> {}, for greedy search of single sentences from now on
//!     verify                            -> {"different", "tokens", "steps", "proposed", "accepted"}: all
//!                                          sources with the draft, beside greedy search without it
//!     outputs BEAM                      -> {"outputs": [[ids]]}
//! ```

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use attentive_model::Shortlist;
use attentive_model::directory::ModelDir;
use attentive_runtime::cpu::{Compute, CpuModel, quantize};
use attentive_runtime::search::draft::{self, Acceptance, Draft, ModelDraft};
use attentive_runtime::search::{Request, SearchOptions};
use attentive_runtime::{Translator, TranslatorOptions};
use attentive_text::special::source_ids;
use attentive_text::{Lexicon, PairOptions, TokenPairs};
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
        ["shortlist", model, src, tgt, out] => {
            let tokenizers = ModelDir::open(model)?.tokenizers;
            let (src, tgt) = ([src.into()], [tgt.into()]);
            let (src, tgt) = ((&src[..], &tokenizers.src), (&tgt[..], &tokenizers.tgt));
            let pairs = TokenPairs::read(src, tgt, &PairOptions::default(), |_| {})?;
            let lexicon = Lexicon::learn(&pairs, Lexicon::ROUNDS, |_| {});
            let (best, frequent) = (Shortlist::BEST, Shortlist::FREQUENT);
            let shortlist = Shortlist::new(&tokenizers, &lexicon, best, frequent);
            fs::write(out, shortlist.to_bytes())?;
            Ok(())
        }
        [
            "serve",
            model,
            sources,
            compute,
            threads,
            ref shortlist @ ..,
        ] => {
            let shortlist = shortlist.first().copied();
            Server::new(model, sources, compute, threads.parse()?, shortlist)?.serve()
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
    draft: Option<Arc<dyn Draft>>,
}

impl Server {
    fn new(
        model: &str,
        sources: &str,
        compute: &str,
        threads: usize,
        shortlist: Option<&str>,
    ) -> Answer<Self> {
        let sources = fs::read_to_string(sources)?;
        let sources = sources.lines().map(serde_json::from_str);
        let sources = sources.map(|source| source.map(Request::new));
        let sources = sources.collect::<Result<_, _>>()?;
        let compute = kind(compute);
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
        let network = CpuModel::open(&directory, compute)?.with_threads(threads);
        let mut options = options.within(directory.config.position_limit());
        if let Some(path) = shortlist {
            options.shortlist = Some(Arc::new(Shortlist::open(path)?));
        }
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
            draft: None,
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
                    json!({ "seconds": self.one_by_one(beam, count.parse()?)? })
                }
                ["draft", model, compute, ref more @ ..] => {
                    let directory = ModelDir::open(model)?;
                    let network = CpuModel::open(&directory, kind(compute))?;
                    let limit = directory.config.position_limit();
                    let mut draft = ModelDraft::new(network, limit);
                    if let [shortlist, ..] = more {
                        draft = draft.with_shortlist(Arc::new(Shortlist::open(shortlist)?));
                    }
                    if let [_, most] = more {
                        draft = draft.with_most(most.parse()?);
                    }
                    self.draft = Some(Arc::new(draft));
                    json!({})
                }
                ["verify"] => self.verify()?,
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

    fn verify(&mut self) -> Answer<serde_json::Value> {
        let Some(draft) = self.draft.clone() else {
            return Err("`draft` comes first".into());
        };
        self.set(1, 0)?;
        let options = &self.translator.options().search;
        let expected = self.translator.translate_tokens(&self.sources);
        let (mut different, mut tokens, mut sum) = (0, 0, Acceptance::default());
        for (source, expected) in self.sources.iter().zip(expected) {
            let model = self.translator.model();
            let (found, acceptance) = draft::search(model, source, options, &*draft);
            tokens += found.tokens.len() + 1;
            different += usize::from(vec![found] != expected);
            sum.steps += acceptance.steps;
            sum.proposed += acceptance.proposed;
            sum.accepted += acceptance.accepted;
        }
        Ok(json!({
            "different": different,
            "tokens": tokens,
            "steps": sum.steps,
            "proposed": sum.proposed,
            "accepted": sum.accepted,
        }))
    }

    fn one_by_one(&self, beam: &str, count: usize) -> Answer<Vec<f64>> {
        let mut translator = self
            .translator
            .with_options(self.translator.options().clone())?;
        if let (Some(draft), "1") = (&self.draft, beam) {
            translator = translator.with_draft(draft.clone())?;
        }
        let sources = self.sources.iter().take(count);
        let seconds = sources.map(|source| {
            let clock = Instant::now();
            translator.translate_tokens(std::slice::from_ref(source));
            clock.elapsed().as_secs_f64()
        });
        Ok(seconds.collect())
    }
}

/// What a number is computed with.
fn kind(compute: &str) -> Compute {
    compute.parse().unwrap_or_default()
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
