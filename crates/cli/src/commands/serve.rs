//! `attentive serve`: translation for other programs over HTTP.
//!
//! `attentive-server` does it; here models are chosen and opened, and refused is what nobody should do by accident.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use attentive_hub::{Store, StoredModel};
use attentive_model::ModelDir;
use attentive_runtime::translator::TranslatorOptions;
use attentive_server::languages::{UNKNOWN_SOURCE, UNKNOWN_TARGET};
use attentive_server::process::{self, Event};
use attentive_server::{Limits, Loader, Options, Served};
use attentive_text::language;
use clap::Args;

use crate::allocator;
use crate::arguments::positive;
use crate::decoding::{DecodingArgs, LinesArgs};
use crate::exit::Ending;
use crate::model::{Choice, choose_target, of_any, translator};
use crate::terminal::Terminal;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// A model directory, a training run, a built-in or a pulled model; its languages before it if its directory does not
    /// say them: de-en=DIR. May be given several times [default: all built-in and pulled models; with --run none]
    #[arg(long = "model", short, value_name = "[LANGUAGES=]MODEL")]
    models: Vec<String>,
    /// The folder of a training run to watch in a browser, at /run: curves, samples, attention after every checkpoint, and
    /// translating with the newest one. Languages as with --model; without any, those that the names of its files tell
    #[arg(long, value_name = "[LANGUAGES=]RUN")]
    run: Option<String>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 5000)]
    port: u16,
    /// A file with an API key in each line; requests need one of them then
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Let everybody translate who reaches an address that is not of this machine alone
    #[arg(long)]
    allow_public: bool,
    /// A name by which the server may be addressed, such as that of a proxy before it; may be given several times
    /// [default: localhost and 127.0.0.1 if it listens there, any name otherwise]
    #[arg(long = "allow-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// The most characters of a request
    #[arg(long, value_name = "N", default_value_t = Limits::default().characters, value_parser = positive())]
    max_characters: usize,
    /// The most requests that wait; further ones are told to come back
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue, value_parser = positive())]
    queue: usize,
    /// Seconds that a translation may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Megabytes for recent sentences; 0 remembers none
    #[arg(long, value_name = "MB", default_value_t = 16)]
    cache: usize,
    #[command(flatten)]
    lines: LinesArgs,
    #[command(flatten)]
    decoding: DecodingArgs,
}

const EXAMPLES: &str = "\
Examples:
  attentive serve
  attentive serve --port 8080 --model runs/multi30k --model de-en=multi30k-int8
  attentive serve --host 0.0.0.0 --api-key-file keys.txt
  attentive serve --run runs/multi30k                 # open http://127.0.0.1:5000/run
  curl localhost:5000/translate -d q='Guten Morgen!' -d source=auto -d target=en
  curl localhost:5000/v2/translate -H 'Authorization: DeepL-Auth-Key x' -d text='Guten Morgen!' -d target_lang=EN-US

Speaks LibreTranslate's API (/translate, /detect, /languages), DeepL's (/v2/translate) and its own (/v1/translate);
open it in a browser to translate there, or /docs to see all of it. /health, /ready and /metrics are for those who run it. SIGTERM finishes what was
accepted and ends; SIGHUP loads models and keys again.";

/// Serves.
pub fn run(args: ServeArgs, terminal: &Terminal) -> anyhow::Result<()> {
    allocator::return_pages();
    super::translate::without_huge_pages();
    if !args.host.is_loopback() && args.api_key_file.is_none() && !args.allow_public {
        return Err(Ending::Usage(format!(
            "{} can be reached by others: give an --api-key-file, or say --allow-public",
            args.host
        ))
        .into());
    }
    let run = args.run.as_deref().map(WatchedRun::parse).transpose()?;
    let models = args.models(terminal)?;
    let options = Options {
        address: SocketAddr::new(args.host, args.port),
        key_file: args.api_key_file.clone(),
        allowed_hosts: args.allowed_hosts.clone(),
        run: run.as_ref().map(|run| run.folder.clone()),
        threads: rayon::current_num_threads(),
        limits: Limits {
            characters: args.max_characters,
            queue: args.queue,
            cache: args.cache << 20,
            translation_time: Duration::from_secs(args.timeout),
            ..Limits::default()
        },
    };
    let (lines, decoding) = (args.lines, args.decoding);
    let loader: Loader = Box::new(move || {
        let newest = run.as_ref().and_then(WatchedRun::newest);
        let models: Vec<&Model> = newest.iter().chain(&models).collect();
        let load = |model: &Model| model.load(&lines, &decoding);
        thread::scope(|scope| {
            let loading: Vec<_> = models
                .iter()
                .map(|model| scope.spawn(|| load(model)))
                .collect();
            let loaded = loading.into_iter().map(|thread| match thread.join() {
                Ok(loaded) => loaded.map_err(Into::into),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            loaded.collect()
        })
    });
    let verbosity = terminal.verbosity();
    let tell = move |event| {
        let terminal = Terminal::new(verbosity);
        match event {
            Event::Listening(address) => {
                terminal.note(format_args!("listening on http://{address}"));
            }
            Event::Reloaded => terminal.note("models and keys were loaded again"),
            Event::NotReloaded(error) => terminal.warn(format_args!(
                "models and keys stay as they are, because loading them again failed: {error}"
            )),
            Event::Draining => terminal.note("finishing what was accepted, then ending"),
        }
    };
    process::run(options, loader, tell).context("serving failed")
}

/// A model and its languages.
#[derive(Debug, Clone)]
struct Model {
    choice: Choice,
    source: String,
    target: String,
}

impl ServeArgs {
    /// The models, with their languages.
    fn models(&self, terminal: &Terminal) -> anyhow::Result<Vec<Model>> {
        if self.models.is_empty() && self.run.is_some() {
            return Ok(Vec::new());
        }
        if self.models.is_empty() {
            let built_in = attentive_models::ALL.iter().map(Model::built_in);
            // Those that are part of the program come first: of two for the same languages, the first is used.
            let pulled = Store::from_env()?.list()?.into_iter();
            let pulled = pulled.filter_map(|(_, model)| Model::pulled(model.ok()?));
            return Ok(built_in.chain(pulled).collect());
        }
        self.models
            .iter()
            .map(|given| Model::parse(given, terminal))
            .collect()
    }
}

/// A run that is watched, and the languages that its model translates.
#[derive(Debug)]
struct WatchedRun {
    folder: PathBuf,
    source: String,
    target: String,
}

impl WatchedRun {
    /// `RUN`, or `de-en=RUN`.
    fn parse(given: &str) -> anyhow::Result<Self> {
        let (languages, path) = match given.split_once('=') {
            Some((languages, path)) if !Path::new(given).exists() => (Some(languages), path),
            _ => (None, given),
        };
        let folder = PathBuf::from(path);
        if !folder.join("recipe.toml").is_file() {
            return Err(Ending::Usage(format!(
                "--run {path}: this is no training run, which has a recipe.toml in it. Give the folder that `attentive \
                 train --out` made"
            ))
            .into());
        }
        let given = languages.and_then(|languages| languages.split_once('-'));
        let given = given.map(|(source, target)| (source.to_owned(), target.to_owned()));
        // The letters of a made-up task are in no language.
        let unknown = || (UNKNOWN_SOURCE.to_owned(), UNKNOWN_TARGET.to_owned());
        let pair = given.or_else(|| languages_of_files(&folder.join("recipe.toml")));
        let (source, target) = pair.unwrap_or_else(unknown);
        Ok(Self {
            folder,
            source,
            target,
        })
    }

    /// Its newest checkpoint, if there is one yet.
    fn newest(&self) -> Option<Model> {
        let last = self.folder.join("last");
        last.is_dir().then(|| Model {
            choice: Choice::Directory(last),
            source: self.source.clone(),
            target: self.target.clone(),
        })
    }
}

/// The languages that the names of a recipe's files end with: de and en of `train.de.gz` and `train.en.gz`.
fn languages_of_files(recipe: &Path) -> Option<(String, String)> {
    let recipe: toml::Table = fs::read_to_string(recipe).ok()?.parse().ok()?;
    let code = |side: &str| {
        let files = recipe.get("data")?.get(side)?;
        let file = files.as_str().or_else(|| files.get(0)?.as_str())?;
        let ending = file.trim_end_matches(".gz").rsplit('.').next()?;
        language::name(ending).map(|_| ending.to_owned())
    };
    Some((code("src")?, code("tgt")?))
}

impl Model {
    fn built_in(model: &'static attentive_models::BuiltIn) -> Self {
        Self {
            choice: Choice::BuiltIn(model),
            source: model.from.code().to_owned(),
            target: model.to.code().to_owned(),
        }
    }

    /// A model that was pulled, if its languages are known.
    fn pulled(model: StoredModel) -> Option<Self> {
        let (source, target) = model.languages.clone()?;
        Some(Self {
            choice: Choice::Pulled(model),
            source,
            target,
        })
    }

    /// `DIR`, or `de-en=DIR`.
    fn parse(given: &str, terminal: &Terminal) -> anyhow::Result<Self> {
        let (languages, path) = match given.split_once('=') {
            Some((languages, path)) if !Path::new(given).exists() => (Some(languages), path),
            _ => (None, given),
        };
        let choice = of_any(Path::new(path), terminal)?;
        let own = match &choice {
            Choice::BuiltIn(model) => Some(Self::built_in(model)),
            Choice::Pulled(model) => Self::pulled(model.clone()),
            Choice::Directory(_) | Choice::Into(..) => None,
        };
        if let (Some(own), None) = (own, languages) {
            return Ok(own);
        }
        let pair = match (languages, &choice) {
            (Some(languages), _) => languages
                .split_once('-')
                .map(|(a, b)| (a.to_owned(), b.to_owned())),
            (None, Choice::Directory(path)) => ModelDir::generation_of(path)?.languages(),
            (None, _) => None,
        };
        let (source, target) = pair.ok_or_else(|| {
            Ending::Usage(format!(
                "--model {given}: which languages does it translate? Write --model de-en={path}"
            ))
        })?;
        Ok(Self {
            choice,
            source,
            target,
        })
    }

    fn load(&self, lines: &LinesArgs, decoding: &DecodingArgs) -> anyhow::Result<Served> {
        let mut directory = self.choice.open()?;
        if !directory.generation.target_languages.is_empty() {
            choose_target(&mut directory, &self.target)?;
        }
        let mut options = decoding.options(TranslatorOptions::of(&directory)?, 1)?;
        options.lines = lines.of(&self.choice);
        options.source_language = Some(self.source.clone());
        let translator = translator(directory, decoding.compute, options)?;
        let name = self.choice.name();
        Ok(Served::new(name, &self.source, &self.target, translator))
    }
}

#[cfg(test)]
mod tests {
    use attentive_model::{Generation, fake_dir};

    use super::*;
    use crate::terminal::Verbosity;

    #[test]
    fn a_run_says_its_languages_by_its_files_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let message = WatchedRun::parse(&path).expect_err("no run").to_string();
        assert!(message.contains("no training run"), "{message}");
        for (recipe, languages) in [
            (
                "[data]\nsrc = [\"train.de.gz\"]\ntgt = [\"train.en\"]\n",
                ("de", "en"),
            ),
            (
                "[data.synthetic]\ntask = \"reverse\"\n",
                (UNKNOWN_SOURCE, UNKNOWN_TARGET),
            ),
        ] {
            fs::write(folder.path().join("recipe.toml"), recipe).expect("written");
            let run = WatchedRun::parse(&path).expect("a run");
            assert_eq!((&*run.source, &*run.target), languages);
            assert!(run.newest().is_none(), "there is no checkpoint yet");
        }
        let run = WatchedRun::parse(&format!("fr-it={path}")).expect("a run");
        assert_eq!((&*run.source, &*run.target), ("fr", "it"));
    }

    #[test]
    fn languages_come_from_the_argument_or_from_the_directory() {
        let terminal = Terminal::new(Verbosity::Quiet);
        let parse = |given: &str| Model::parse(given, &terminal);
        let model = parse("en-de").expect("it is built in");
        assert_eq!((&*model.source, &*model.target), ("en", "de"));
        let folder = tempfile::tempdir().expect("a folder");
        fake_dir::write(folder.path()).expect("written");
        let path = folder.path().display().to_string();
        let model = parse(&format!("de-en={path}")).expect("languages are given");
        assert_eq!((&*model.source, &*model.target), ("de", "en"));
        let message = parse(&path).expect_err("nobody knows").to_string();
        assert!(message.contains("Write --model de-en="), "{message}");
        let generation = Generation {
            source_language: Some("fr".to_owned()),
            target_language: Some("en".to_owned()),
            ..Generation::default()
        };
        generation.write(folder.path()).expect("written");
        let model = parse(&path).expect("the directory says it");
        assert_eq!((&*model.source, &*model.target), ("fr", "en"));
        let message = parse("no/such/model").expect_err("it is not there");
        assert!(message.to_string().contains("no/such/model"), "{message}");
    }
}
