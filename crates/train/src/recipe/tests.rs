//! What a recipe must refuse, and how it must say so.

use attentive_model::config::{
    Activation, AnyConfig, Autoregression, EmbeddingNorm, Family, FinalNorm, GptConfig,
    ModelConfig, NormPlacement, PositionKind, Preset, TransformerConfig, Tying,
};
use attentive_text::tokenizer::{TokenizerKind, TokenizerOptions};
use proptest::prelude::*;

use super::*;

const FILES: &str = "[data]\nsrc = \"a.de\"\ntgt = \"a.en\"\n";

fn parse(text: &str) -> Recipe {
    parse_with(text, &[])
}

fn parse_with(text: &str, overrides: &[&str]) -> Recipe {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Recipe::from_toml_str("my.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn transformer(recipe: &Recipe) -> &TransformerConfig {
    TransformerConfig::of(&recipe.model.config).expect("an encoder-decoder")
}

fn refusal(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    match Recipe::from_toml_str("my.toml", text, &overrides) {
        Ok(recipe) => panic!("this should be refused: {recipe:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_recipe_without_options_learns_what_tokenizer_train_learns() {
    let recipe = super::TokenizerSection::default();
    assert_eq!(recipe.options(), TokenizerOptions::default());
    assert_eq!(recipe.kind, TokenizerKind::Unigram);
}

#[test]
fn what_a_recipe_does_not_mention_has_its_default() {
    let recipe = parse(FILES);
    assert_eq!(recipe.data.src, ["a.de"]);
    assert_eq!(recipe.training, Training::default());
    assert_eq!(
        recipe.model,
        Model::from_preset(Family::Transformer, Preset::Small)
    );
    assert_eq!(recipe.optimizer.beta2, 0.98);
}

#[test]
fn a_misspelled_key_is_refused_with_its_line_and_the_right_spelling() {
    let message = refusal(&format!("{FILES}[training]\nepoch = 3\n"), &[]);
    assert_eq!(
        message,
        "my.toml: line 5: unknown key `training.epoch`; did you mean `training.epochs`?"
    );
}

#[test]
fn every_kind_of_slip_gets_a_suggestion() {
    for (wrong, right) in [
        ("[training]\nbatch_token = 1", "`training.batch_tokens`"),
        ("[training]\ndropout = 0.1", "`model.dropout`"),
        ("[optimiser]\nbeta1 = 0.9", "`optimizer`"),
        (
            "[training]\nbatchsentence = 3",
            "`training.batch_sentences`",
        ),
        ("[model]\nd_modle = 3", "`model.d_model`"),
        ("[tokenizer]\nvocabsize = 3", "`tokenizer.vocab_size`"),
        ("[validaton]\n", "`validation`"),
        ("[data.synthetic]\nsymbol = 3", "`data.synthetic.symbols`"),
        ("[training]\nagreement = 5.0", "`training.r_drop`"),
        ("[training]\nagreement_after = 2", "`training.r_drop_after`"),
    ] {
        let message = refusal(wrong, &[]);
        let suggestion = message
            .split("did you mean")
            .nth(1)
            .unwrap_or_else(|| panic!("{message}"));
        assert!(suggestion.contains(right), "{message}");
    }
}

#[test]
fn a_key_like_no_other_gets_the_list_of_keys_or_sections() {
    let message = refusal("[zzz]\nqqqqqqq = 3", &[]);
    assert!(
        message.contains("[data]") && message.contains("[checkpoints]"),
        "{message}"
    );
    assert!(!message.contains("did you mean"), "{message}");
    let message = refusal("[model]\nlayers = 3", &[]);
    assert!(
        message.contains("the keys of [model] are") && message.contains(" encoder_layers,"),
        "{message}"
    );
}

#[test]
fn all_problems_are_reported_at_once_from_top_to_bottom() {
    let text = "[data]\nsrc = \"a.de\"\ntgt = [\"a.en\", \"b.en\"]\n[model]\nheads = 7\n[training]\n\
                epochs = \"many\"\n[schedule]\nkind = \"linear\"\n[optimizer]\nbeta3 = 1\n\
                [checkpoints]\nkeep_last = 0\n";
    let message = refusal(text, &["validation.beam=0"]);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "my.toml: 7 problems");
    for (line, part) in [
        (
            1,
            "line 2: `data.src` (1 file) and `data.tgt` (2 files) must pair file by file",
        ),
        (
            2,
            "line 5: `model.d_model` (256) must be divisible by `model.heads` (7)",
        ),
        (
            3,
            "line 7: `training.epochs`: invalid type: string \"many\", expected a whole number",
        ),
        (4, "line 9: `schedule.kind`: unknown value \"linear\""),
        (5, "line 11: unknown key `optimizer.beta3`"),
        (6, "line 13: `checkpoints.keep_last` (0) must be at least 1"),
        (
            7,
            "--set validation.beam=0: `validation.beam` (0) must be at least 1",
        ),
    ] {
        assert!(lines[line].contains(part), "{message}");
    }
}

#[test]
fn a_misspelled_key_does_not_cause_a_second_complaint_about_what_it_should_have_set() {
    let message = refusal("[data]\nscr = \"a.de\"\ntgt = \"a.en\"\n", &[]);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("`data.src`?"), "{message}");
    let message = refusal("[dta]\nsrc = \"a.de\"\ntgt = \"a.en\"\n", &[]);
    assert_eq!(
        message,
        "my.toml: line 1: unknown key `dta`; did you mean `data`?"
    );
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    let message = refusal("[data]\nsrc = \"a.de\ntgt = 1\n", &[]);
    assert!(message.contains("line 2: not valid TOML"), "{message}");
    assert!(!message.contains("missing"), "{message}");
}

#[test]
fn a_recipe_without_data_says_what_to_name() {
    let message = refusal("", &[]);
    assert!(
        message.contains("`data.src` and `data.tgt` are missing"),
        "{message}"
    );
    assert!(message.contains("[data.synthetic]"), "{message}");
}

#[test]
fn a_value_in_place_of_a_section_is_explained() {
    let message = refusal(&format!("training = 5\n{FILES}"), &[]);
    assert!(
        message.contains("line 1: `training` is a section: write [training]"),
        "{message}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Recipe::load(Path::new("no/such.toml"), &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot read the recipe no/such.toml"),
        "{error}"
    );
}

#[test]
fn an_override_has_the_last_word() {
    let text = format!("{FILES}[training]\nseed = 1\n[model]\nnorm = \"pre\"\n");
    let recipe = parse_with(
        &text,
        &[
            "training.seed=2",
            "model.norm=post",
            "data.dir=../x",
            "model.dropout = 0.25",
        ],
    );
    assert_eq!(
        (recipe.training.seed, recipe.data.dir.as_str()),
        (2, "../x")
    );
    assert_eq!(
        (transformer(&recipe).norm, transformer(&recipe).dropout),
        (NormPlacement::Post, 0.25)
    );
}

#[test]
fn an_override_can_name_one_file_or_several() {
    let recipe = parse_with(FILES, &["data.src=b.de", "data.tgt=[\"b.en\"]"]);
    assert_eq!(
        (recipe.data.src, recipe.data.tgt),
        (vec!["b.de".to_owned()], vec!["b.en".to_owned()])
    );
}

#[test]
fn a_folder_may_have_a_number_for_a_name() {
    assert_eq!(parse_with(FILES, &["data.dir=2016"]).data.dir, "2016");
    assert_eq!(parse_with(FILES, &["data.dir=true"]).data.dir, "true");
    assert_eq!(parse_with(FILES, &["data.dir=a=b"]).data.dir, "a=b");
}

#[test]
fn an_override_cannot_smuggle_in_a_second_key() {
    let recipe = parse_with(FILES, &["data.dir=1\nother = 2"]);
    assert_eq!(recipe.data.dir, "1\nother = 2");
}

#[test]
fn wrong_overrides_are_refused_as_wrong_keys_are() {
    for (text, part) in [
        ("training.epoch=3", "did you mean `training.epochs`?"),
        ("epochs=3", "did you mean `training.epochs`?"),
        ("training.epochs", "not of the form key=value"),
        ("training=3", "`training` is a section"),
        ("training.epochs=few", "`training.epochs`: invalid type"),
        ("=3", "unknown key"),
        ("", "not of the form key=value"),
    ] {
        let message = refusal(FILES, &[text]);
        assert!(
            message.contains(part) && message.contains(&format!("--set {text}")),
            "{message}"
        );
    }
}

#[test]
fn a_preset_fills_in_what_the_section_does_not_mention() {
    let recipe = parse(&format!("{FILES}[model]\npreset = \"base\"\nd_ff = 1000\n"));
    let expected = TransformerConfig {
        d_ff: 1000,
        ..Preset::Base.config(0, 0)
    };
    assert_eq!(*transformer(&recipe), expected);
    let config: TransformerConfig = recipe.model.with_vocabularies(100, 200).unwrap();
    assert_eq!(
        (
            config.src_vocab,
            config.tgt_vocab,
            config.d_model,
            config.d_ff
        ),
        (100, 200, 512, 1000)
    );
}

#[test]
fn an_override_can_choose_the_preset() {
    assert_eq!(
        parse_with(FILES, &["model.preset=big"]).model,
        Model::from_preset(Family::Transformer, Preset::Big)
    );
}

#[test]
fn kv_heads_follow_heads_unless_they_are_set() {
    assert_eq!(
        transformer(&parse(&format!("{FILES}[model]\nheads = 8\n"))).kv_heads,
        8
    );
    assert_eq!(
        transformer(&parse(&format!(
            "{FILES}[model]\nheads = 8\nkv_heads = 2\n"
        )))
        .kv_heads,
        2
    );
}

#[test]
fn every_key_of_the_model_but_its_vocabularies_can_be_set() {
    let text = "[model]\npreset = \"tiny\"\nd_model = 32\nd_ff = 33\nheads = 8\nkv_heads = 4\n\
                encoder_layers = 5\ndecoder_layers = 6\ndropout = 0.25\nnorm = \"post\"\n\
                activation = \"gelu_tanh\"\npositions = \"timing_signal\"\nposition_offset = 2\n\
                max_positions = 300\ntying = \"output\"\nnorm_epsilon = 0.00001\nembedding_scale = 1.5\n\
                embedding_norm = \"layer_norm\"\nfinal_norm = \"none\"\nautoregression = \"ssru\"\n";
    let model = parse(&format!("{FILES}{text}")).model;
    let expected = TransformerConfig {
        d_model: 32,
        d_ff: 33,
        heads: 8,
        kv_heads: 4,
        encoder_layers: 5,
        decoder_layers: 6,
        dropout: 0.25,
        norm: NormPlacement::Post,
        activation: Activation::GeluTanh,
        positions: PositionKind::TimingSignal,
        position_offset: 2,
        max_positions: 300,
        tying: Tying::Output,
        norm_epsilon: 1e-5,
        embedding_scale: Some(1.5),
        embedding_norm: EmbeddingNorm::LayerNorm,
        final_norm: FinalNorm::None,
        autoregression: Autoregression::Ssru,
        ..Preset::Tiny.config(7, 9)
    };
    assert_eq!(model.with_vocabularies(7, 9), Some(expected));
    // Written out, the keys stand in the order of the configuration.
    let written = parse(&format!("{FILES}{text}")).to_toml();
    let section = written.split("[model]\n").nth(1).unwrap();
    let keys: Vec<&str> = section
        .lines()
        .map_while(|line| Some(line.split_once(" = ")?.0))
        .collect();
    let given: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    assert_eq!(keys, given);
    for key in ["src_vocab", "tgt_vocab"] {
        let message = refusal(&format!("{FILES}[model]\n{key} = 100\n"), &[]);
        assert!(message.contains(&format!("line 5: unknown key `model.{key}`")));
    }
}

#[test]
fn the_recipe_of_a_run_of_an_earlier_version_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(RECIPE_FILE);
    let text = format!("{FILES}[training]\nagreement = 5.0\nagreement_after = 2\n");
    std::fs::write(&path, text).unwrap();
    let training = Recipe::load_from_run(&path).unwrap().training;
    assert_eq!((training.r_drop, training.r_drop_after), (5.0, 2));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (text, part) in [
        (
            "[model]\ntying = \"all\"\n[tokenizer]\nshared = false",
            "`tokenizer.shared`",
        ),
        (
            "[model]\npositions = \"learned\"\nmax_positions = 256",
            "`model.max_positions` (256)",
        ),
        (
            "[training]\nbatch_tokens = 256",
            "`training.batch_tokens` (256)",
        ),
        (
            "[tokenizer]\nvocab_size = 100",
            "`tokenizer.vocab_size` (100)",
        ),
        (
            "[optimizer]\nweight_decay = 0.1",
            "`optimizer.kind` = \"adamw\"",
        ),
        (
            "[schedule]\nkind = \"cosine\"",
            "`schedule.total_steps` (0)",
        ),
        ("[schedule]\nwarmup = 0", "`schedule.warmup` (0)"),
        (
            "[schedule]\nkind = \"cosine_restarts\"",
            "`schedule.cycle` (0)",
        ),
        ("[schedule]\nkind = \"step\"", "`schedule.decay` (0)"),
        (
            "[schedule]\nkind = \"one_cycle\"\nwarmup = 9",
            "`schedule.total_steps` (0)",
        ),
        (
            "[optimizer]\nkind = \"sgd\"\nmomentum = 1.0",
            "`optimizer.momentum` (1)",
        ),
        (
            "[schedule]\nkind = \"trapezoid\"\ndecay = 10\nwarmup = 5\ntotal_steps = 14",
            "`schedule.total_steps` (14) must hold",
        ),
        (
            "[schedule]\nkind = \"trapezoid\"\ndecay = 0\ntotal_steps = 9000",
            "`schedule.decay` (0)",
        ),
        (
            "[augmentation]\nlowercase = 1.5",
            "`augmentation.lowercase` (1.5)",
        ),
        (
            "[augmentation]\nsubword_dropout = 0.1\n[tokenizer]\nkind = \"bpe\"",
            "`augmentation.subword_dropout` (0.1) needs `tokenizer.kind`",
        ),
        (
            "[validation]\npatience = 3",
            "`validation.patience` (3) needs validation data",
        ),
        (
            "[training]\nlabel_smoothing = 1.0",
            "`training.label_smoothing` (1)",
        ),
        (
            "[training]\nlabel_smoothing = nan",
            "`training.label_smoothing` (NaN)",
        ),
        (
            "[training]\nmax_minutes = -1",
            "`training.max_minutes` (-1)",
        ),
        ("[training]\nepochs = -1", "`training.epochs`"),
        (
            "[training]\nsimilar_lengths = false",
            "`training.similar_lengths` = false needs `training.batch_sentences`",
        ),
        (
            "[training]\nr_drop_after = 2",
            "`training.r_drop_after` (2) does nothing",
        ),
    ] {
        let message = refusal(&format!("{FILES}{text}\n"), &[]);
        assert!(
            message.contains(part) && message.contains("line "),
            "{text}: {message}"
        );
    }
}

#[test]
fn bleu_must_be_measured_to_choose_the_best_model_by_it() {
    let text =
        format!("{FILES}val_src = \"v.de\"\nval_tgt = \"v.en\"\n[validation]\nbleu = false\n");
    assert!(refusal(&text, &[]).contains("`validation.best_by`"));
    parse_with(&text, &["validation.best_by=loss"]);
}

#[test]
fn every_file_has_a_weight_above_zero_or_none_has_one() {
    let two = "[data]\nsrc = [\"a.de\", \"b.de\"]\ntgt = [\"a.en\", \"b.en\"]\n";
    assert_eq!(
        parse_with(two, &["data.weights=[0.5, 2.0]"]).data.weights,
        [0.5, 2.0]
    );
    let few = refusal(two, &["data.weights=[0.5]"]);
    assert!(
        few.contains("`data.weights` (1 numbers) needs one for each file of `data.src` (2 files)"),
        "{few}"
    );
    let zero = refusal(two, &["data.weights=[0.0, 1.0]"]);
    assert!(zero.contains("which must be more than 0"), "{zero}");
    let made_up = "[data]\nweights = [1.0]\nsynthetic = { task = \"copy\" }\n";
    assert!(refusal(made_up, &[]).contains("`data.weights` are for files"));
}

#[test]
fn standard_input_is_no_training_corpus() {
    assert!(refusal(FILES, &["data.src=-"]).contains("`data.src` is standard input"));
}

#[test]
fn a_synthetic_task_needs_no_files_and_takes_none() {
    let recipe = parse("[data.synthetic]\n");
    assert_eq!(recipe.data.synthetic, Some(Synthetic::default()));
    assert!(recipe.data.has_validation());
    let inline = parse("[data]\nsynthetic = { task = \"copy\", lines = 5 }\n");
    assert_eq!(
        inline.data.synthetic.map(|s| (s.task, s.lines)),
        Some((SyntheticTask::Copy, 5))
    );
    assert!(refusal(&format!("{FILES}[data.synthetic]\n"), &[]).contains("exclude each other"));
    let crowded = "[data.synthetic]\nsymbols = 2\nmin_length = 1\nmax_length = 3\n";
    assert!(refusal(crowded, &[]).contains("`data.synthetic.val_lines` (500) are too many"));
}

#[test]
fn paths_are_in_the_folder_unless_they_are_absolute() {
    let data = parse_with(FILES, &["data.dir=corpus"]).data;
    let paths = data.paths(&["a.de".to_owned(), "/b.de".to_owned()]);
    assert_eq!(paths, [Path::new("corpus/a.de"), Path::new("/b.de")]);
    assert_eq!(
        Data::default().paths(&["a.de".to_owned()]),
        [Path::new("a.de")]
    );
}

#[test]
fn differences_name_the_key_and_both_values() {
    let run = parse(FILES);
    let recipe = parse_with(FILES, &["training.seed=2", "model.dropout=0.3"]);
    assert_eq!(
        run.differences(&recipe),
        [
            "`model.dropout`: 0.1 in the run, 0.3 in the recipe",
            "`training.seed`: 1 in the run, 2 in the recipe"
        ]
    );
    let synthetic = parse("[data.synthetic]\n");
    let found = synthetic.differences(&run);
    assert!(
        found.contains(
            &"`data.synthetic.lines`: 20000 in the run, nothing in the recipe".to_owned()
        )
    );
}

#[test]
fn what_only_decides_when_to_stop_or_what_to_keep_may_change() {
    let run = parse(FILES);
    let recipe = parse_with(
        FILES,
        &[
            "training.epochs=99",
            "training.max_steps=5",
            "training.max_minutes=1.5",
            "training.log_every=1",
            "checkpoints.keep_last=9",
            "checkpoints.every_minutes=1",
            "validation.samples=0",
            "data.dir=elsewhere",
        ],
    );
    assert_eq!(run.differences(&recipe), Vec::<String>::new());
}

#[test]
fn every_key_that_may_change_exists() {
    let text = parse(FILES).to_toml();
    let table: toml::Table = toml::from_str(&text).unwrap();
    for key in FREE_ON_RESUME {
        let (section, name) = key.split_once('.').unwrap();
        let section = table[section].as_table().unwrap();
        assert!(name.is_empty() || section.contains_key(name), "{key}");
    }
}

/// Every file of `recipes/` with its text.
fn recipe_files() -> Vec<(String, String)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                path,
            )
        })
        .map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    files
}

fn recipe_file(name: &str) -> Recipe {
    let files = recipe_files();
    let (_, text) = files.iter().find(|(file, _)| file == name).expect(name);
    parse(text)
}

#[test]
fn every_recipe_of_the_project_is_valid_and_comes_back_from_its_own_toml() {
    let files = recipe_files();
    assert!(files.len() >= 5, "{files:?}");
    for (name, text) in files {
        let recipe =
            Recipe::from_toml_str(&name, &text, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parse(&recipe.to_toml()), recipe, "{name}");
    }
}

#[test]
fn no_recipe_asks_for_what_many_machines_lack() {
    assert_eq!(Training::default().precision, PrecisionChoice::Auto);
    for (name, text) in recipe_files() {
        assert_ne!(
            parse(&text).training.precision,
            PrecisionChoice::Bf16,
            "{name}"
        );
    }
}

#[test]
fn the_reproduction_has_the_published_numbers() {
    let recipe = recipe_file("multi30k-reproduction.toml");
    assert_eq!(recipe.tokenizer.kind, TokenizerKind::Tabs);
    assert_eq!(
        (recipe.tokenizer.min_frequency, recipe.tokenizer.shared),
        (2, false)
    );
    assert_eq!(
        (recipe.data.vocab_src.len(), recipe.data.vocab_tgt.len()),
        (2, 2)
    );
    assert_eq!(
        recipe.model,
        Model::from_preset(Family::Transformer, Preset::Base)
    );
    assert_eq!(transformer(&recipe).norm, NormPlacement::Pre);
    let training = &recipe.training;
    assert_eq!(
        (
            training.batch_sentences,
            training.similar_lengths,
            training.accumulate,
            training.epochs
        ),
        (32, false, 10, 8)
    );
    assert_eq!(
        (training.loss, training.label_smoothing),
        (LossKind::LabelSmoothing, 0.1)
    );
    assert_eq!(
        (recipe.schedule.factor, recipe.schedule.warmup),
        (1.0, 3000)
    );
    assert_eq!(
        recipe.optimizer,
        Optimizer {
            kind: OptimizerKind::Adam,
            ..Optimizer::default()
        }
    );
}

#[test]
fn base_and_big_have_the_numbers_of_the_paper() {
    let (base, big) = (recipe_file("base.toml"), recipe_file("big.toml"));
    assert_eq!(
        (transformer(&base).dropout, transformer(&big).dropout),
        (0.1, 0.3)
    );
    assert_eq!(
        (base.training.max_steps, big.training.max_steps),
        (100_000, 300_000)
    );
    assert_eq!(
        (base.checkpoints.average_last, big.checkpoints.average_last),
        (5, 20)
    );
    assert_eq!(
        (transformer(&base).d_model, transformer(&big).d_model),
        (512, 1024)
    );
    for recipe in [base, big] {
        assert_eq!(
            (transformer(&recipe).norm, transformer(&recipe).tying),
            (NormPlacement::Post, Tying::All)
        );
        assert_eq!(
            (recipe.tokenizer.kind, recipe.tokenizer.vocab_size),
            (TokenizerKind::Bpe, 37_000)
        );
        assert_eq!(
            (recipe.training.batch_tokens, recipe.schedule.warmup),
            (25_000, 4_000)
        );
        assert_eq!(recipe.training.label_smoothing, 0.1);
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\[[a-z.]{1,12}\\]\n|[a-z_.]{1,9} = [0-9a-z\"\\[\\]{}.-]{0,9}\n|\\PC{0,20}){0,8}") {
        let _ = Recipe::from_toml_str("any.toml", &text, &[]);
    }

    #[test]
    fn no_override_makes_it_panic(text in "\\PC{0,30}", key in "(data\\.(dir|src|synthetic|max_length)|model\\.heads|training)", value in "\\PC{0,20}") {
        let _ = Recipe::from_toml_str("any.toml", FILES, &[text, format!("{key}={value}")]);
    }
}

#[test]
fn a_recipe_says_its_family_and_has_the_keys_of_that_family() {
    let text = "[data]\ntext = \"a.txt\"\nval_share = 0.1\n[model]\nfamily = \"gpt\"\npreset = \"tiny\"\n\
                layers = 2\nheads = 8\n[training]\nbatch_size = 12\n";
    let recipe = parse(text);
    let expected = GptConfig {
        layers: 2,
        heads: 8,
        kv_heads: 8,
        ..GptConfig::from_preset(Preset::Tiny)
    };
    assert_eq!(recipe.model.config, AnyConfig::Gpt(expected));
    assert_eq!(recipe.validation.best_by, BestBy::Loss);
    let written = recipe.to_toml();
    assert_eq!(parse(&written), recipe);
    for absent in ["[augmentation]", "tgt", "bleu", "label_smoothing"] {
        assert!(!written.contains(absent), "{written}");
    }
    assert_eq!(
        recipe.model.with_vocabularies::<TransformerConfig>(7, 7),
        None
    );
    let overridden = parse_with(
        "[data]\ntext = \"a.txt\"\n",
        &["model.family=gpt", "model.layers=3"],
    );
    assert_eq!(overridden.model.family(), Family::Gpt);
}

#[test]
fn keys_that_mean_nothing_for_the_family_are_refused_by_name() {
    let gpt = "[data]\ntext = \"a.txt\"\ntgt = \"a.en\"\n[model]\nfamily = \"gpt\"\nencoder_layers = 2\n\
               [augmentation]\nmarks = 0.1\n[data.synthetic]\nlines = 3\n";
    let message = refusal(gpt, &["validation.beam=4"]);
    for part in [
        "my.toml: 5 problems",
        "line 3: `data.tgt` means nothing for a model of the family \"gpt\"",
        "line 6: unknown key `model.encoder_layers`",
        "line 7: `augmentation` means nothing",
        "line 9: `data.synthetic` means nothing",
        "--set validation.beam=4: `validation.beam` means nothing",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = refusal(&format!("{FILES}text = \"a.txt\"\n"), &[]);
    assert!(
        message.contains(
            "line 4: `data.text` means nothing for a model of the family \"transformer\""
        ),
        "{message}"
    );
    let message = refusal(&format!("{FILES}[model]\nfamily = \"gtp\"\n"), &[]);
    assert!(
        message.contains("line 5: `model.family`: unknown value \"gtp\""),
        "{message}"
    );
}

#[test]
fn the_recipe_of_a_transformer_is_written_without_the_keys_of_other_families() {
    let recipe = parse(FILES);
    let all = toml::to_string_pretty(&recipe).unwrap();
    let others = [
        "text = ",
        "val_text = ",
        "val_share = ",
        "examples = ",
        "val_examples = ",
        "text_columns = ",
        "label_column = ",
        "vocabulary = ",
        "[pruning]",
        "soft_epochs = ",
        "temperature = ",
        "regularizer = ",
        "initial_threshold = ",
        "batch_size = ",
    ];
    let own = all
        .lines()
        .filter(|line| !others.iter().any(|key| line.starts_with(key)));
    let written = recipe.to_toml();
    let lines = written.lines().filter(|line| !line.is_empty());
    assert!(lines.eq(own.filter(|line| !line.is_empty())), "{written}");
}

#[test]
fn the_head_of_a_bert_decides_what_it_learns_from() {
    let bert = |rest: &str| format!("[model]\nfamily = \"bert\"\n{rest}");
    let message = refusal(&bert("head = \"classification\"\n"), &[]);
    for part in [
        "`tokenizer.kind` (\"unigram\") must be \"wordpiece\"",
        "`data.examples` is missing",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let wordpiece = ["tokenizer.kind=wordpiece"];
    assert!(refusal(&bert(""), &wordpiece).contains("`data.text` is missing"));
    assert!(refusal(&bert("head = \"none\"\n"), &wordpiece).contains("learns nothing"));
    let classes = bert("head = \"classification\"\n[data]\nexamples = \"a.tsv\"\n");
    let recipe = parse_with(&classes, &wordpiece);
    assert_eq!(recipe.validation.best_by, BestBy::Accuracy);
    let three = [wordpiece[0], "data.text_columns=[\"a\", \"b\", \"c\"]"];
    assert!(refusal(&classes, &three).contains("`data.text_columns` (3 names)"));
    let pruned = [wordpiece[0], "model.pruning=learned_thresholds"];
    let recipe = parse_with(&classes, &pruned);
    assert_eq!(recipe.validation.best_by, BestBy::PrunedAccuracy);
    let text = bert("[data]\ntext = \"a.txt\"\n");
    assert!(refusal(&text, &pruned).contains("`model.pruning` needs `model.head`"));
    let cold = [pruned[0], pruned[1], "pruning.temperature=0"];
    assert!(refusal(&classes, &cold).contains("`pruning.temperature` (0) must be more than 0"));
}
