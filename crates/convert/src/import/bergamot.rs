//! What comes beside the small models of Bergamot and Firefox: a lexical shortlist, files that are packed with gzip,
//! and the languages in file names. Their weights are those of [`super::marian`], with an SSRU for self-attention.

use std::path::Path;

use attentive_model::Shortlist;

use super::marian_options::Options;
use super::marian_vocabulary::Vocabularies;
use super::{files_of, folder_of, name_of, refused};
use crate::error::Result;
use crate::files::bytes::Bytes;
use crate::files::shortlist_bin;

/// The shortlist that the decoder's options name, or the only one beside the weights.
pub(super) fn shortlist(
    weights: &Path,
    decoder: Option<&Options>,
    vocabularies: &Vocabularies,
) -> Result<Option<Shortlist>> {
    let folder = folder_of(weights);
    let named = decoder.and_then(|decoder| Path::new(decoder.text("shortlist")?).file_name());
    let named = named
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    let found = files_of(folder)?.into_iter().find(|path| {
        let name = name_of(path);
        name.ends_with(".s2t.bin") || name.ends_with(".s2t.bin.gz")
    });
    let Some(path) = named.or(found) else {
        return Ok(None);
    };
    let list = shortlist_bin::read(&path)?;
    let Vocabularies {
        tokenizers,
        src,
        tgt,
        shared,
    } = vocabularies;
    let rows = list.offsets.len().saturating_sub(1);
    let src_rows = src
        .rows()
        .iter()
        .filter_map(|row| row.of_embedding())
        .max()
        .map_or(0, |row| row + 1);
    if rows != src_rows {
        let found = format!("lists for {rows} tokens, while the vocabulary has {src_rows}");
        return Err(refused(
            &path,
            "the shortlist",
            found,
            "use the model's own shortlist",
        ));
    }
    let ids = tgt.ids(
        tgt.rows()
            .iter()
            .filter_map(|row| row.of_embedding())
            .max()
            .map_or(0, |row| row + 1),
    );
    let our = |id: usize| ids.get(id).copied().flatten();
    let always = (0..list.first as usize).filter_map(our);
    let lists = src.rows().iter().map(|row| match row.of_embedding() {
        None => Vec::new(),
        Some(row) => {
            let range = list.offsets[row] as usize..list.offsets[row + 1] as usize;
            let translations = list.ids[range].iter().map(|id| *id as usize);
            // With one vocabulary for both languages, a token may be copied.
            let itself = shared.then_some(row);
            translations.chain(itself).filter_map(our).collect()
        }
    });
    Ok(Some(Shortlist::of_lists(tokenizers, always, lists)))
}

/// The languages in a name such as `model.enpt.intgemm.alphas.bin`.
pub(super) fn languages(weights: &Path) -> Option<(String, String)> {
    let mut parts = name_of(weights).split('.').skip(1);
    let pair =
        parts.find(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_lowercase()))?;
    let (from, to) = pair.split_at(2);
    Some((from.to_owned(), to.to_owned()))
}

/// A file that may be packed with gzip. What would unpack to much more than its own size is refused.
pub(super) fn unpacked(path: &Path) -> Result<Bytes> {
    let (bytes, _) = Bytes::map_or_unpack(path)?;
    Ok(bytes)
}
