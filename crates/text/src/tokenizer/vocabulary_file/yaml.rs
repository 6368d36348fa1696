//! The YAML of Marian's vocabularies: `token: id` on each line, or `? token` on one and `: id` on the next.
//!
//! Tokens are plain, `'single quoted'` or `"double quoted"` with YAML's escapes. What else YAML has (nesting, lists,
//! anchors, tags, tokens over several lines) does not occur in a vocabulary and is refused with its line,
//! and so is a plain token that YAML would understand in another way.

use super::{Problem, Tokens};

/// The tokens and ids in the order of the file.
pub(super) fn entries(text: &str) -> Result<Vec<(String, u32)>, Problem> {
    let mut tokens = Tokens::default();
    let mut key: Option<(usize, String)> = None; // a token behind a `?`, whose id is yet to come
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let read = match key.take() {
            Some((_, token)) => id_behind(line).and_then(|id| tokens.insert(token, id)),
            None if is_skipped(line) => Ok(()),
            None => match line.strip_prefix("? ") {
                Some(token) => token_alone(token).map(|token| key = Some((number, token))),
                None => entry(line).and_then(|(token, id)| tokens.insert(token, id)),
            },
        };
        read.map_err(|problem| (Some(number), problem))?;
    }
    match key {
        Some((line, token)) => Err((Some(line), format!("found no id of {token:?}"))),
        None => Ok(tokens.entries),
    }
}

/// Empty lines, comments, and where a document begins and ends.
fn is_skipped(line: &str) -> bool {
    let line = line.trim_end();
    line.is_empty() || line.starts_with('#') || ["---", "..."].contains(&line)
}

/// A line of `token: id`.
fn entry(line: &str) -> Result<(String, u32), String> {
    let quoted = quoted(line).transpose()?;
    let (token, rest) = match quoted {
        Some(found) => found,
        None => {
            let at = line.rfind(": ").ok_or_else(|| format!("found {line:?}"))?;
            (plain(&line[..at])?, &line[at..])
        }
    };
    Ok((token, id_behind(rest.trim_start_matches(' '))?))
}

/// The token of a line that holds nothing else.
fn token_alone(line: &str) -> Result<String, String> {
    match quoted(line).transpose()? {
        Some((token, rest)) if rest.trim_end().is_empty() => Ok(token),
        Some((_, rest)) => Err(format!("found {rest:?} behind a token")),
        None => plain(line.trim_end()),
    }
}

/// The id in `: id`.
fn id_behind(text: &str) -> Result<u32, String> {
    let id = text.strip_prefix(": ").map(|id| id.trim_matches(' '));
    let digits = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    let id = digits.and_then(|digits| digits.parse().ok());
    id.ok_or_else(|| format!("found {text:?} where `: id` should stand"))
}

/// A token without quotation marks, if YAML understands it so.
fn plain(token: &str) -> Result<String, String> {
    let mut chars = token.chars();
    let (first, second) = (chars.next(), chars.next());
    let other = match first {
        None | Some(' ' | '\t') => true,
        Some('-' | '?' | ':') => matches!(second, Some(' ' | '\t')),
        Some(first) => "{}[],&*!|>'\"%@`#".contains(first),
    };
    if other || token.contains(": ") || token.contains(" #") || token.ends_with(' ') {
        return Err(format!("found {token:?}, which needs quotation marks"));
    }
    Ok(token.to_owned())
}

/// The token that a line begins with, if it begins with a quotation mark, and the rest of the line.
fn quoted(line: &str) -> Option<Result<(String, &str), String>> {
    let mark = line
        .chars()
        .next()
        .filter(|mark| ['\'', '"'].contains(mark))?;
    let mut token = String::new();
    let mut chars = line[1..].chars();
    loop {
        match chars.next() {
            Some('\'') if mark == '\'' && chars.as_str().starts_with('\'') => {
                chars.next();
                token.push('\'');
            }
            Some(char) if char == mark => return Some(Ok((token, chars.as_str()))),
            Some('\\') if mark == '"' => match escaped(&mut chars) {
                Ok(char) => token.push(char),
                Err(problem) => return Some(Err(problem)),
            },
            Some(char) => token.push(char),
            None => return Some(Err(format!("found {line:?} without a second {mark}"))),
        }
    }
}

/// The character that an escape stands for; its backslash was read.
fn escaped(chars: &mut std::str::Chars<'_>) -> Result<char, String> {
    let letter = chars.next();
    let digits = match letter {
        Some('0') => return Ok('\0'),
        Some('a') => return Ok('\x07'),
        Some('b') => return Ok('\x08'),
        Some('t' | '\t') => return Ok('\t'),
        Some('n') => return Ok('\n'),
        Some('v') => return Ok('\x0b'),
        Some('f') => return Ok('\x0c'),
        Some('r') => return Ok('\r'),
        Some('e') => return Ok('\x1b'),
        Some(same @ (' ' | '"' | '/' | '\\')) => return Ok(same),
        Some('N') => return Ok('\u{85}'),
        Some('_') => return Ok('\u{a0}'),
        Some('L') => return Ok('\u{2028}'),
        Some('P') => return Ok('\u{2029}'),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        other => {
            let found: String = other.into_iter().collect();
            return Err(format!("found the unknown escape \"\\{found}\""));
        }
    };
    let code: String = chars.take(digits).collect();
    let number = Some(&code)
        .filter(|code| code.len() == digits && code.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .and_then(|code| u32::from_str_radix(code, 16).ok());
    let char = number.and_then(char::from_u32);
    char.ok_or_else(|| format!("found the escape of {code:?}, which is no character"))
}
