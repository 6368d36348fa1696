//! What a translation should keep as it is, and the marks that stand in for it.
//!
//! A small model copies a web address or an emoji badly. So such a thing is replaced by a mark before
//! the text is translated, and put back afterwards. Training teaches the model to carry the marks over
//! (`[augmentation] marks` of a recipe, `attentive-train`).

/// The marks, in the order in which they are used: characters that no text has (private use).
pub const MARKS: [char; 8] = [
    '\u{E000}', '\u{E001}', '\u{E002}', '\u{E003}', '\u{E004}', '\u{E005}', '\u{E006}', '\u{E007}',
];
