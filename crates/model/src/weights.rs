//! The weights file of a model directory: named tensors in the safetensors format, f32 as trained or
//! int8 for translating.
//!
//! Reading maps the file into memory, so that opening is instant and several processes share one
//! copy; a file that is part of the program is in memory already. Written by `attentive-train`
//! (checkpoints), read by whatever builds a model.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use memmap2::Mmap;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use serde::Deserialize;

use crate::durable::DurableFile;
use crate::error::{ModelError, Result};
use crate::int8;
use crate::tensors::{Role, TensorSpec};

/// A weights file, mapped into memory or part of the program.
#[derive(Debug)]
pub struct Weights {
    path: PathBuf,
    file: Contents,
    /// What the system says about the file that is mapped.
    about: Option<fs::Metadata>,
    metadata: Metadata,
    /// Where the values begin, behind the header.
    data_start: usize,
}

impl Weights {
    /// Maps the file and checks its header against its size; no values are read yet.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(ModelError::io("open", path))?;
        // SAFETY: the map is only sound while nobody shortens the file in place. We never do:
        // `write` replaces files by renaming, which leaves mapped ones as they are.
        let map = unsafe { Mmap::map(&file) }.map_err(ModelError::io("map", path))?;
        let mut weights = Self::read(path, Contents::Mapped(map))?;
        weights.about = file.metadata().ok();
        Ok(weights)
    }

    /// As [`Weights::open`], for a file that is part of the program; errors call it `name`.
    pub fn from_static(name: impl AsRef<Path>, bytes: &'static [u8]) -> Result<Self> {
        Self::read(name.as_ref(), Contents::Static(bytes))
    }

    fn read(path: &Path, file: Contents) -> Result<Self> {
        let damaged = |reason| ModelError::DamagedWeights {
            path: path.to_path_buf(),
            reason,
        };
        if let Contents::Mapped(map) = &file
            && !ends_within(map)
        {
            return Err(damaged(
                "a tensor ends behind the end of the file".to_owned(),
            ));
        }
        let (header, metadata) =
            SafeTensors::read_metadata(&file).map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            about: None,
            metadata,
            data_start: LENGTH_BYTES + header,
        })
    }

    /// The file this was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What tells this file from others, and from what was or will be under its name: path, size, time of the
    /// last change, and on Unix the number of the file. Nothing for a part of the program.
    pub fn identity(&self) -> Option<String> {
        let about = self.about.as_ref()?;
        let path = std::path::absolute(&self.path).ok()?;
        let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(about);
        #[cfg(not(unix))]
        let number = 0;
        let (size, nanoseconds) = (about.len(), modified.as_nanos());
        Some(format!("{size} {nanoseconds} {number} {}", path.display()))
    }

    /// The note that [`Weights::write_noted`] left in the file.
    pub fn note(&self) -> Option<&str> {
        let notes = self.metadata.metadata().as_ref()?;
        notes.get(NOTE).map(String::as_str)
    }

    /// The tensors' names in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// The shape of a tensor, if the file has it.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.metadata.info(name).map(|info| info.shape.as_slice())
    }

    /// Whether any tensor is int8, as quantizing writes them.
    pub fn is_int8(&self) -> bool {
        let tensors = self.metadata.tensors();
        tensors.values().any(|info| info.dtype == Dtype::I8)
    }

    /// A tensor's shape and values, row-major.
    pub fn tensor(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>)> {
        let (shape, place) = self.find(name, Dtype::F32)?;
        let values = self.bytes(place).as_chunks().0.iter();
        Ok((
            shape.to_vec(),
            values.map(|&value| f32::from_le_bytes(value)).collect(),
        ))
    }

    /// A matrix of 8-bit numbers output by output, and the scale of each output; nothing if the file has it as f32.
    pub fn int8_matrix(
        &self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Option<(Vec<i8>, Vec<f32>)>> {
        let scales = int8::scale_name(name);
        if self.shape(&scales).is_none() {
            return Ok(None);
        }
        let place = self.i8_place(name, &int8::packed_shape(inputs, outputs))?;
        let packed: Vec<i8> = self.bytes(place).iter().map(|&byte| byte as i8).collect();
        self.f32_place(&scales, &[outputs])?;
        let (_, scales) = self.tensor(&scales)?;
        Ok(Some((int8::unpack(&packed, outputs, inputs), scales)))
    }

    /// The values of a tensor of the schema in f32, row-major, also where the file has them as int8.
    pub fn unpacked(&self, tensor: &TensorSpec) -> Result<Vec<f32>> {
        let TensorSpec { name, shape, role } = tensor;
        if let &[rows, columns] = &shape[..] {
            // In a token table the tokens are the outputs.
            let by_output = *role == Role::Embedding;
            let (outputs, inputs) = if by_output {
                (rows, columns)
            } else {
                (columns, rows)
            };
            if let Some((values, scales)) = self.int8_matrix(name, outputs, inputs)? {
                let value = |output: usize, input: usize| {
                    f32::from(values[output * inputs + input]) * scales[output]
                };
                let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
                return Ok(cells
                    .map(|(row, column)| {
                        if by_output {
                            value(row, column)
                        } else {
                            value(column, row)
                        }
                    })
                    .collect());
            }
        }
        self.f32_place(name, shape)?;
        Ok(self.tensor(name)?.1)
    }

    /// Where the values of an f32 tensor of this shape are; see [`Weights::bytes`].
    pub fn f32_place(&self, name: &str, shape: &[usize]) -> Result<Range<usize>> {
        self.place(name, Dtype::F32, shape)
    }

    /// Where the values of an int8 tensor of this shape are.
    pub fn i8_place(&self, name: &str, shape: &[usize]) -> Result<Range<usize>> {
        self.place(name, Dtype::I8, shape)
    }

    /// Part of the file.
    pub fn bytes(&self, place: Range<usize>) -> &[u8] {
        &self.file[place]
    }

    /// Gives the memory of a mapped part of the file back to the system; reading again reads from the file.
    pub fn release(&self, place: Range<usize>) {
        // SAFETY: the map is of a file and never written to, so that nothing is lost. Where the advice
        // is not followed, the memory is merely not given back.
        #[cfg(unix)]
        if let Contents::Mapped(map) = &self.file {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            let _ = unsafe { map.unchecked_advise_range(advice, place.start, place.len()) };
        }
    }

    fn place(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Range<usize>> {
        let (found, place) = self.find(name, dtype)?;
        if found != shape {
            return Err(ModelError::WrongShape {
                path: self.path.clone(),
                name: name.to_string(),
                expected: shape.to_vec(),
                found: found.to_vec(),
            });
        }
        Ok(place)
    }

    fn find(&self, name: &str, dtype: Dtype) -> Result<(&[usize], Range<usize>)> {
        let info = self
            .metadata
            .info(name)
            .ok_or_else(|| ModelError::MissingTensor {
                path: self.path.clone(),
                name: name.to_string(),
                count: self.metadata.tensors().len(),
            })?;
        if info.dtype != dtype {
            return Err(ModelError::WrongNumberFormat {
                path: self.path.clone(),
                name: name.to_string(),
                found: format!("{:?}", info.dtype),
                expected: format!("{dtype:?}"),
            });
        }
        let (start, end) = info.data_offsets;
        Ok((&info.shape, self.data_start + start..self.data_start + end))
    }

    /// Writes `(name, shape, values)` tensors to `path`, in the order given.
    ///
    /// The file appears whole or not at all.
    pub fn write<'a>(
        path: impl AsRef<Path>,
        tensors: impl IntoIterator<Item = (&'a str, &'a [usize], &'a [f32])>,
    ) -> Result<()> {
        let tensors = tensors.into_iter();
        Self::write_mixed(
            path,
            tensors.map(|(name, shape, values)| (name, shape, Values::F32(values))),
        )
    }

    /// As [`Weights::write`], with tensors of either number format.
    pub fn write_mixed<'a>(
        path: impl AsRef<Path>,
        tensors: impl IntoIterator<Item = TensorRef<'a>>,
    ) -> Result<()> {
        Self::write_file(path.as_ref(), None, tensors.into_iter().collect())
    }

    /// As [`Weights::write_mixed`], with a note that says something about the whole.
    pub fn write_noted<'a>(
        path: impl AsRef<Path>,
        note: &str,
        tensors: impl IntoIterator<Item = TensorRef<'a>>,
    ) -> Result<()> {
        Self::write_file(path.as_ref(), Some(note), tensors.into_iter().collect())
    }

    fn write_file(path: &Path, note: Option<&str>, tensors: Vec<TensorRef<'_>>) -> Result<()> {
        let header = header(path, note, &tensors)?;
        write_all(path, &header, &tensors).map_err(ModelError::io("write", path))
    }
}

/// Whether every tensor that the header names ends within the file, as far as the header can be read. The library adds up
/// what it reads there, and would overflow with numbers that are made up.
fn ends_within(file: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Entry {
        data_offsets: Option<(u64, u64)>,
    }
    let header = file.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        serde_json::from_slice::<HashMap<String, Entry>>(rest.get(..length)?).ok()
    });
    let mut entries = header.iter().flat_map(HashMap::values);
    entries.all(|entry| {
        entry
            .data_offsets
            .is_none_or(|(_, end)| end <= file.len() as u64)
    })
}

/// Where the bytes of a weights file are.
#[derive(Debug)]
enum Contents {
    Mapped(Mmap),
    Static(&'static [u8]),
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Static(bytes) => bytes,
        }
    }
}

/// The header's own length stands before it as a little-endian u64.
const LENGTH_BYTES: usize = size_of::<u64>();

/// The note's key among what the format calls metadata.
const NOTE: &str = "note";

/// Values begin on a cache line, for the sake of those who compute with them where they are mapped.
const ALIGNMENT: usize = 64;

/// A tensor that is to be written: name, shape, values.
pub type TensorRef<'a> = (&'a str, &'a [usize], Values<'a>);

/// The values of a tensor that is to be written.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// As trained.
    F32(&'a [f32]),
    /// Quantized.
    I8(&'a [i8]),
}

impl Values<'_> {
    fn len(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I8(values) => values.len(),
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::I8(_) => Dtype::I8,
        }
    }
}

/// The JSON header, padded with spaces so that the values behind it are aligned.
fn header(path: &Path, note: Option<&str>, tensors: &[TensorRef<'_>]) -> Result<Vec<u8>> {
    let mut seen = BTreeSet::new();
    let mut infos = Vec::with_capacity(tensors.len());
    let mut offset = 0;
    for &(name, shape, values) in tensors {
        let unwritable = |reason: String| ModelError::UnwritableTensor {
            path: path.to_path_buf(),
            name: name.to_string(),
            reason,
        };
        if !seen.insert(name) {
            return Err(unwritable("the name occurs twice".to_string()));
        }
        if shape.iter().product::<usize>() != values.len() {
            return Err(unwritable(format!(
                "shape {shape:?} does not hold {} values",
                values.len()
            )));
        }
        if let Values::I8(values) = values
            && values.contains(&i8::MIN)
        {
            let reason = "-128 is a byte that int8 weights never have: their range is symmetric";
            return Err(unwritable(reason.to_string()));
        }
        let dtype = values.dtype();
        let end = offset + values.len() * dtype.bitsize() / 8;
        let info = TensorInfo {
            dtype,
            shape: shape.to_vec(),
            data_offsets: (offset, end),
        };
        infos.push((name.to_string(), info));
        offset = end;
    }
    let damaged = |reason: String| ModelError::DamagedWeights {
        path: path.to_path_buf(),
        reason,
    };
    let notes = note.map(|note| HashMap::from([(NOTE.to_string(), note.to_string())]));
    let metadata = Metadata::new(notes, infos).map_err(|error| damaged(error.to_string()))?;
    let mut header = serde_json::to_vec(&metadata).map_err(|error| damaged(error.to_string()))?;
    let whole = (LENGTH_BYTES + header.len()).next_multiple_of(ALIGNMENT);
    header.resize(whole - LENGTH_BYTES, b' ');
    Ok(header)
}

fn write_all(path: &Path, header: &[u8], tensors: &[TensorRef<'_>]) -> std::io::Result<()> {
    let mut file = DurableFile::create(path)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header)?;
    for (_, _, values) in tensors {
        match values {
            Values::F32(values) => {
                let mut bytes = [[0; 4]; 4096];
                for values in values.chunks(bytes.len()) {
                    for (bytes, value) in bytes.iter_mut().zip(values) {
                        *bytes = value.to_le_bytes();
                    }
                    file.write_all(bytes[..values.len()].as_flattened())?;
                }
            }
            Values::I8(values) => {
                let mut bytes = [0; 16_384];
                for values in values.chunks(bytes.len()) {
                    for (byte, value) in bytes.iter_mut().zip(values) {
                        *byte = value.cast_unsigned();
                    }
                    file.write_all(&bytes[..values.len()])?;
                }
            }
        }
    }
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    type F32Tensor<'a> = (&'a str, &'a [usize], &'a [f32]);

    fn written(dir: &Path) -> PathBuf {
        let path = dir.join("model.safetensors");
        let (wide, bias) = ([1.5, -2.0, f32::MIN_POSITIVE, 0.0, 4.0, 5.0], [7.25]);
        Weights::write(
            &path,
            [
                ("z.weight", &[2, 3][..], &wide[..]),
                ("a.bias", &[1], &bias),
            ],
        )
        .expect("a writable directory");
        path
    }

    #[test]
    fn what_was_written_is_read_back() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let weights = Weights::open(written(dir.path())).expect("the file just written");
        assert_eq!(weights.names(), ["z.weight", "a.bias"]);
        assert_eq!(weights.shape("z.weight"), Some(&[2, 3][..]));
        let (shape, values) = weights.tensor("z.weight").expect("a tensor just written");
        assert_eq!(shape, [2, 3]);
        assert_eq!(values, [1.5, -2.0, f32::MIN_POSITIVE, 0.0, 4.0, 5.0]);
        assert_eq!(
            weights.tensor("a.bias").expect("a tensor just written").1,
            [7.25]
        );
    }

    #[test]
    fn bytes_of_the_program_are_read_like_a_file_and_errors_have_their_name() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let bytes = fs::read(written(dir.path())).expect("the file just written");
        let bytes: &'static [u8] = bytes.leak();
        let weights = Weights::from_static("built-in x", bytes).expect("a sound file");
        assert_eq!(
            weights.tensor("a.bias").expect("a tensor just written").1,
            [7.25]
        );
        let inside = weights.bytes(weights.data_start..bytes.len());
        assert_eq!(
            inside.as_ptr_range().end,
            bytes.as_ptr_range().end,
            "nothing was copied"
        );
        weights.release(0..bytes.len());
        assert!(weights.tensor("z.weight").is_ok());

        let cut = Weights::from_static("built-in x", &bytes[..bytes.len() - 1]);
        let message = cut.expect_err("a cut file").to_string();
        assert!(message.starts_with("built-in x is damaged"), "{message}");
    }

    #[test]
    fn a_note_is_read_back_and_a_file_without_one_has_none() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let plain = Weights::open(written(dir.path())).expect("the file just written");
        assert_eq!(plain.note(), None);
        let path = dir.path().join("noted.safetensors");
        let many: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
        let tensors = [("many", &[100, 100][..], Values::F32(&many))];
        Weights::write_noted(&path, "made of \"x\"", tensors).expect("a writable directory");
        let weights = Weights::open(&path).expect("the file just written");
        assert_eq!(weights.note(), Some("made of \"x\""));
        assert_eq!(weights.names(), ["many"]);
        assert_eq!(weights.tensor("many").expect("present").1, many);
    }

    #[test]
    fn a_file_has_another_identity_after_it_was_written_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let open = || Weights::open(dir.path().join("model.safetensors")).expect("just written");
        written(dir.path());
        let (first, again) = (open(), open());
        assert!(first.identity().is_some());
        assert_eq!(first.identity(), again.identity());
        written(dir.path());
        assert_ne!(first.identity(), open().identity());
        assert_eq!(first.identity(), again.identity(), "that of what is mapped");
    }

    #[test]
    fn scalars_and_empty_tensors_survive() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("odd.safetensors");
        let odd: [F32Tensor; 2] = [("scalar", &[], &[3.0]), ("empty", &[0, 4], &[])];
        Weights::write(&path, odd).expect("a writable directory");
        let weights = Weights::open(&path).expect("the file just written");
        assert_eq!(
            weights.tensor("scalar").expect("present"),
            (vec![], vec![3.0])
        );
        assert_eq!(
            weights.tensor("empty").expect("present"),
            (vec![0, 4], vec![])
        );
    }

    #[test]
    fn writing_leaves_exactly_one_file_and_overwrites_the_old_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = written(dir.path());
        let old = Weights::open(&path).expect("the file just written");
        Weights::write(&path, [("new", &[1][..], &[1.0][..])]).expect("a writable directory");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
        assert_eq!(Weights::open(&path).expect("the new file").names(), ["new"]);
        // Whoever mapped the old file still sees the old values.
        assert_eq!(old.tensor("a.bias").expect("still mapped").1, [7.25]);
    }

    #[test]
    fn a_file_cut_anywhere_is_reported_as_damaged_with_its_name() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = written(dir.path());
        let whole = fs::read(&path).expect("the file just written");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a writable directory");
            let message = Weights::open(&path).expect_err("a cut file").to_string();
            assert!(message.contains("model.safetensors"), "{message}");
            assert!(message.contains("copy it again"), "{message}");
        }
    }

    #[test]
    fn damaged_headers_are_errors_and_never_panics() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = written(dir.path());
        let whole = fs::read(&path).expect("the file just written");
        let header_end = 8 + u64::from_le_bytes(whole[..8].try_into().expect("8 bytes")) as usize;
        for place in 0..header_end {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x55;
            fs::write(&path, &damaged).expect("a writable directory");
            if let Ok(weights) = Weights::open(&path) {
                // A flipped bit may only have renamed a tensor; reading must still be safe.
                for name in weights.names() {
                    let _ = weights.tensor(&name);
                }
            }
        }
    }

    #[test]
    fn sizes_that_would_overflow_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("absurd.safetensors");
        let end = u64::MAX;
        let header =
            format!(r#"{{"a":{{"dtype":"I8","shape":[{end}],"data_offsets":[0,{end}]}}}}"#);
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        fs::write(&path, file).expect("a writable directory");
        let message = Weights::open(&path)
            .expect_err("an absurd size")
            .to_string();
        assert!(
            message.contains("ends behind the end of the file"),
            "{message}"
        );
    }

    #[test]
    fn a_missing_tensor_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let weights = Weights::open(written(dir.path())).expect("the file just written");
        let message = weights
            .tensor("encoder.0")
            .expect_err("no such tensor")
            .to_string();
        assert!(
            message.contains("no tensor `encoder.0` among its 2"),
            "{message}"
        );
    }

    #[test]
    fn a_shape_that_does_not_fit_and_a_name_given_twice_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("bad.safetensors");
        let misfit: [F32Tensor; 1] = [("w", &[2, 2], &[1.0])];
        let message = Weights::write(&path, misfit)
            .expect_err("three values lack")
            .to_string();
        assert!(
            message.contains("shape [2, 2] does not hold 1 values"),
            "{message}"
        );
        let twice: [F32Tensor; 2] = [("w", &[1], &[1.0]), ("w", &[1], &[1.0])];
        let message = Weights::write(&path, twice)
            .expect_err("two tensors `w`")
            .to_string();
        assert!(message.contains("occurs twice"), "{message}");
        assert!(!path.exists());
    }

    #[test]
    fn other_number_formats_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("half.safetensors");
        let header = br#"{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}  "#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend([0; 4]);
        fs::write(&path, bytes).expect("a writable directory");
        let weights = Weights::open(&path).expect("a sound file");
        let message = weights.tensor("w").expect_err("not F32").to_string();
        assert!(
            message.contains("`w` is stored as F16, expected F32"),
            "{message}"
        );
    }
}
