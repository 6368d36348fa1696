//! TOML and `key=value` overrides -> plain values, with a place for every key.
//!
//! Serde stops at the first mistake, and a user with three mistakes should not need four attempts.
//! So every key is tried alone: is it known, and does its value have the right type? What is good is
//! kept, what is not becomes a [`Problem`] with its line. Values then go to [`super::check`].

use std::collections::HashMap;

use attentive_model::config::Family;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::Recipe;
use super::error::{Place, Problem};
use super::keys::Known;

/// What a file and its overrides say.
pub(super) struct Document {
    /// Everything that could be understood, and defaults for the rest.
    pub recipe: Recipe,
    /// Where each key was set.
    pub places: HashMap<String, Place>,
    /// Unknown keys, wrong types, wrong syntax.
    pub problems: Vec<Problem>,
    /// The text is not TOML, so nothing at all can be said about its contents.
    pub unreadable: bool,
}

/// Reads the text, then lets the overrides have the last word.
pub(super) fn read(text: &str, overrides: &[String]) -> Document {
    let mut document = Document {
        recipe: Recipe::default(),
        places: HashMap::new(),
        problems: Vec::new(),
        unreadable: false,
    };
    let mut settings: Vec<Setting> = Vec::new();

    let (parsed, errors) = DeTable::parse_recoverable(text);
    let values: Table = if errors.is_empty() {
        toml::from_str(text).unwrap_or_default()
    } else {
        Table::new()
    };
    let family = family_of(&values, overrides);
    let known = Known::new(family);
    if errors.is_empty() {
        let places = lines_of_keys(text, parsed.get_ref(), "");
        walk(
            &known,
            &values,
            "",
            &places,
            &mut settings,
            &mut document.problems,
        );
    } else {
        document.unreadable = true;
        document.problems.extend(errors.iter().map(|error| Problem {
            place: Place::Line(error.span().map_or(1, |span| line_at(text, span.start))),
            message: format!("not valid TOML: {}", error.message().replace('\n', ", ")),
        }));
    }
    for text in overrides {
        match read_override(&known, text) {
            Ok(setting) => settings.push(setting),
            Err(message) => document.problems.push(Problem {
                place: Place::Override(text.clone()),
                message,
            }),
        }
    }

    let mut table = Table::new();
    for setting in settings {
        match setting.understood(family) {
            Ok(value) => {
                insert(&mut table, &setting.key, value);
                document.places.insert(setting.key, setting.place);
            }
            Err(message) => document.problems.push(Problem {
                place: setting.place,
                message,
            }),
        }
    }
    match table.try_into() {
        Ok(recipe) => document.recipe = Recipe::of_its_family(recipe),
        // Every key was read alone before, so this can hardly be; but if it is, it is said.
        Err(error) => document.problems.push(Problem {
            place: Place::Recipe,
            message: error.message().to_owned(),
        }),
    }
    document
}

/// The key that decides which other keys there are.
const FAMILY: &str = "model.family";

/// The family that a file and its overrides name; the usual one if they name none that exists, which is a problem
/// of its own.
fn family_of(values: &Table, overrides: &[String]) -> Family {
    let overridden = overrides.iter().rev().find_map(|text| {
        let (key, value) = text.split_once('=')?;
        (key.trim() == FAMILY).then(|| typed(value.trim()))
    });
    let written = || values.get("model")?.get("family").cloned();
    let family = overridden.or_else(written);
    family
        .and_then(|family| family.try_into().ok())
        .unwrap_or_default()
}

/// One key, its value and where it was said.
struct Setting {
    key: String,
    value: Value,
    place: Place,
}

impl Setting {
    /// The value, if it has the type that the key needs.
    fn understood(&self, family: Family) -> Result<Value, String> {
        let fits = |value: &Value| -> Result<(), toml::de::Error> {
            // Alone, but for the family, which decides what the keys of [model] are.
            let mut alone = Table::new();
            insert(&mut alone, FAMILY, family.name().into());
            insert(&mut alone, &self.key, value.clone());
            alone.try_into::<Recipe>().map(|_| ())
        };
        let error = match fits(&self.value) {
            Ok(()) => return Ok(self.value.clone()),
            Err(error) => error,
        };
        // `--set data.dir=2016` is a folder of that name.
        if let Place::Override(text) = &self.place {
            let bare = text.split_once('=').map_or("", |(_, value)| value.trim());
            let bare = Value::String(bare.to_owned());
            if fits(&bare).is_ok() {
                return Ok(bare);
            }
        }
        let message = error.message().lines().next().unwrap_or("not understood");
        let message = message
            .replace("unknown variant", "unknown value")
            .replace("usize", "a whole number");
        let message = message
            .replace("u64", "a whole number")
            .replace("f64", "a number");
        // Backticks mark keys in messages; serde puts values between them.
        Err(format!(
            "`{}`: {}",
            self.key,
            message.replace('`', "\"").replace("\"\"", "\"")
        ))
    }
}

/// Takes the settings out of a table, and what is no setting as a problem.
fn walk(
    known: &Known,
    table: &Table,
    prefix: &str,
    places: &HashMap<String, Place>,
    settings: &mut Vec<Setting>,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        let place = places.get(&key).cloned().unwrap_or(Place::Recipe);
        match (known.is_section(&key), value) {
            (true, Value::Table(inner)) => {
                // An empty `[data.synthetic]` still says that the task is synthetic.
                if inner.is_empty() {
                    settings.push(Setting {
                        key: key.clone(),
                        value: value.clone(),
                        place,
                    });
                }
                walk(known, inner, &format!("{key}."), places, settings, problems);
            }
            (true, _) => problems.push(Problem {
                place,
                message: format!("`{key}` is a section: write [{key}] and its keys below it"),
            }),
            (false, _) => match known.refuse(&key) {
                None => settings.push(Setting {
                    key,
                    value: value.clone(),
                    place,
                }),
                Some(message) => problems.push(Problem { place, message }),
            },
        }
    }
}

/// Reads `key=value`; the error says what is wrong with it.
fn read_override(known: &Known, text: &str) -> Result<Setting, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("not of the form key=value, such as training.seed=2".to_owned());
    };
    let key = key.trim().to_owned();
    if known.is_section(&key) {
        let example = known.example(&key);
        return Err(format!(
            "`{key}` is a section; set one of its keys, such as `{example}`"
        ));
    }
    if let Some(message) = known.refuse(&key) {
        return Err(message);
    }
    Ok(Setting {
        key,
        value: typed(value.trim()),
        place: Place::Override(text.to_owned()),
    })
}

/// The value as TOML, or, if it is none, the bare text.
fn typed(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}"));
    match parsed {
        // A line break would smuggle in a second key.
        Ok(mut table) if table.len() == 1 => table.remove("value").expect("the only key"),
        _ => Value::String(text.to_owned()),
    }
}

/// Sets `a.b.c` to the value, making the tables on the way.
fn insert(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

fn lines_of_keys(text: &str, table: &DeTable, prefix: &str) -> HashMap<String, Place> {
    let mut places = HashMap::new();
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            places.extend(lines_of_keys(text, inner, &format!("{key}.")));
        }
        places.insert(key, Place::Line(line_at(text, name.span().start)));
    }
    places
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}
