//! sacreBLEU's short flags of several letters (`-tok`, `-lc`), which people's scripts use.
//!
//! Command lines here have one letter after one dash; after `attentive score` the flags of several letters
//! are put in their long form before anything else reads them.

use std::ffi::OsString;

/// sacreBLEU's short flags and the long ones they stand for.
const FLAGS: [(&str, &str); 15] = [
    ("-nr", "--num-refs"),
    ("-sl", "--sentence-level"),
    ("-sv", "--smooth-value"),
    ("-tok", "--tokenize"),
    ("-lc", "--lowercase"),
    ("-cc", "--chrf-char-order"),
    ("-cw", "--chrf-word-order"),
    ("-ci", "--confidence"),
    ("-cin", "--confidence-n"),
    ("-par", "--paired-ar"),
    ("-pbs", "--paired-bs"),
    ("-parn", "--paired-ar-n"),
    ("-pbsn", "--paired-bs-n"),
    ("-sh", "--short"),
    ("-nc", "--no-color"),
];

/// The arguments of the program, with sacreBLEU's flags in their long form.
pub fn expand(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let is_option = |argument: &OsString| argument.to_string_lossy().starts_with('-');
    let command = arguments
        .iter()
        .skip(1)
        .position(|argument| !is_option(argument));
    let Some(command) = command.map(|position| position + 1) else {
        return arguments;
    };
    if arguments[command] != "score" {
        return arguments;
    }
    for argument in &mut arguments[command + 1..] {
        if argument == "--" {
            break;
        }
        if let Some(long) = argument.to_str().and_then(long_form) {
            *argument = long.into();
        }
    }
    arguments
}

/// `-tok` as `--tokenize`, `-tok=zh` as `--tokenize=zh`.
fn long_form(argument: &str) -> Option<String> {
    let (flag, value) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    let (_, long) = FLAGS.iter().find(|(short, _)| *short == flag)?;
    Some(match value {
        Some(value) => format!("{long}={value}"),
        None => (*long).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> String {
        let arguments = expand(line.split(' ').map(OsString::from));
        let arguments: Vec<String> = arguments
            .into_iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        arguments.join(" ")
    }

    #[test]
    fn only_the_score_command_has_flags_of_several_letters() {
        assert_eq!(
            expanded("attentive -q score ref -tok zh -lc -i -sh"),
            "attentive -q score ref --tokenize zh --lowercase -i --short"
        );
        let other = "attentive translate -sh -tok";
        assert_eq!(expanded(other), other);
        assert_eq!(
            expanded("attentive score -tok=zh -- -lc"),
            "attentive score --tokenize=zh -- -lc"
        );
    }
}
