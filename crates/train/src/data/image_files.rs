//! Files of images: IDX files as MNIST has them (also gzip'd), and PNG files.
//!
//! Neighbors: [`super::images`] puts images and classes together, `image_size` scales images of another size.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use attentive_model::config::Resize;
use flate2::read::MultiGzDecoder;

use super::image_size::scaled;
use super::images::ImageShape;

/// What can be wrong with images.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The system refuses.
    #[error("could not read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Not what an IDX file begins with, or another kind of it.
    #[error(
        "{} is not {expected}: {found}. IDX files are those of MNIST, such as train-images-idx3-ubyte(.gz) and \
         train-labels-idx1-ubyte(.gz)",
        path.display()
    )]
    NotIdx {
        /// The file.
        path: PathBuf,
        /// An IDX file of images, or of labels.
        expected: &'static str,
        /// What it begins with.
        found: String,
    },
    /// Fewer or more bytes than its beginning says.
    #[error(
        "{} is not whole: it should hold {expected} bytes behind its first {header}, and holds {found}; fetch it again",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes of the header.
        header: usize,
        /// Bytes that the header announces.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Not a PNG, or a damaged one.
    #[error("{} cannot be read as a PNG: {reason}", path.display())]
    NotPng {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        reason: String,
    },
    /// An image of another size.
    #[error(
        "{} has {} x {} pixels, and the model reads {expected} x {expected}: scale it, or use a model with \
         `model.resize` = \"bilinear\"",
        path.display(), found.0, found.1
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Width and height.
        found: (usize, usize),
        /// Of the model.
        expected: usize,
    },
    /// As many labels as images are needed.
    #[error("{} has {labels} labels, and {} has {images} images", path.display(), of.display())]
    Counts {
        /// The labels.
        path: PathBuf,
        /// How many.
        labels: usize,
        /// The images.
        of: PathBuf,
        /// How many.
        images: usize,
    },
    /// Images without classes.
    #[error(
        "{} holds images without their classes: name the IDX file of the labels too ({key}), or give a folder \
         with one folder of PNG files for each class",
        path.display()
    )]
    NoLabels {
        /// The images.
        path: PathBuf,
        /// Where they are named.
        key: &'static str,
    },
    /// Labels of nothing.
    #[error("there are more files of labels than IDX files of images: {} is left", path.display())]
    LeftOver {
        /// The first of them.
        path: PathBuf,
    },
    /// A class that the model does not know.
    #[error("the class {class} is not one of the model's {known}: {names}")]
    UnknownClass {
        /// The class.
        class: String,
        /// How many the model has.
        known: usize,
        /// Some of them.
        names: String,
    },
    /// A folder without images.
    #[error("{} holds no folders with PNG files in them, one for each class", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

pub(super) type Result<T> = std::result::Result<T, ImageError>;

/// Writes an IDX file of images of one channel, and one of their classes, as MNIST has them.
pub fn to_idx(pixels: &[u8], size: usize, labels: &[u8]) -> [Vec<u8>; 2] {
    let number = |number: usize| (number as u32).to_be_bytes();
    let mut images = vec![0, 0, 8, 3];
    for length in [labels.len(), size, size] {
        images.extend(number(length));
    }
    images.extend_from_slice(pixels);
    let mut classes = vec![0, 0, 8, 1];
    classes.extend(number(labels.len()));
    classes.extend_from_slice(labels);
    [images, classes]
}

/// What an IDX file must be.
pub(super) struct Kind {
    name: &'static str,
    dimensions: usize,
}

const IMAGES: Kind = Kind {
    name: "an IDX file of images",
    dimensions: 3,
};
pub(super) const LABELS: Kind = Kind {
    name: "an IDX file of labels",
    dimensions: 1,
};

/// The lengths and the bytes of an IDX file.
pub(super) fn idx<'a>(path: &Path, bytes: &'a [u8], kind: &Kind) -> Result<(Vec<usize>, &'a [u8])> {
    let wrong = |found: String| ImageError::NotIdx {
        path: path.to_owned(),
        expected: kind.name,
        found,
    };
    let [0, 0, element, dimensions, rest @ ..] = bytes else {
        let start: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
        return Err(wrong(format!(
            "it begins with the bytes {}",
            start.join(" ")
        )));
    };
    let dimensions = usize::from(*dimensions);
    if *element != 8 || dimensions != kind.dimensions {
        return Err(wrong(format!(
            "it has {dimensions} dimensions of elements of kind {element:02x}, not {} of bytes",
            kind.dimensions
        )));
    }
    let header = 4 * dimensions;
    if rest.len() < header {
        return Err(wrong("it ends within its beginning".to_owned()));
    }
    let (header, values) = rest.split_at(header);
    let lengths: Vec<usize> = header
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
        .collect();
    let expected = lengths
        .iter()
        .fold(1usize, |all, one| all.saturating_mul(*one));
    if values.len() != expected {
        return Err(ImageError::Truncated {
            path: path.to_owned(),
            header: 4 + header.len(),
            expected,
            found: values.len(),
        });
    }
    Ok((lengths, values))
}

pub(super) fn idx_images(path: &Path, bytes: &[u8], shape: ImageShape) -> Result<Vec<u8>> {
    let (lengths, values) = idx(path, bytes, &IMAGES)?;
    let (height, width) = (lengths[1], lengths[2]);
    if (height, width, shape.channels) == (shape.size, shape.size, 1) {
        return Ok(values.to_vec());
    }
    let mut pixels = Vec::new();
    for image in values.chunks_exact((height * width).max(1)) {
        let plane = fitted(path, image, (width, height), shape)?;
        (0..shape.channels).for_each(|_| pixels.extend_from_slice(&plane));
    }
    Ok(pixels)
}

/// A plane of the model's size.
fn fitted(path: &Path, plane: &[u8], found: (usize, usize), shape: ImageShape) -> Result<Vec<u8>> {
    if found == (shape.size, shape.size) {
        return Ok(plane.to_vec());
    }
    match shape.resize {
        Resize::Bilinear if found.0 > 0 && found.1 > 0 => Ok(scaled(plane, found, shape.size)),
        _ => Err(ImageError::Size {
            path: path.to_owned(),
            found,
            expected: shape.size,
        }),
    }
}

/// The channels of a PNG file; what is transparent is not looked at.
pub(super) fn png(path: &Path, bytes: &[u8], shape: ImageShape) -> Result<Vec<u8>> {
    let Decoded {
        size: found,
        colors,
        bytes,
    } = decoded(bytes).map_err(|reason| ImageError::NotPng {
        path: path.to_owned(),
        reason,
    })?;
    let pixel = bytes.chunks_exact(colors);
    let planes: Vec<Vec<u8>> = match (shape.channels, colors) {
        (1, 3 | 4) => vec![pixel.map(gray).collect()],
        (1, _) => vec![pixel.map(|p| p[0]).collect()],
        (_, 3 | 4) => (0..3)
            .map(|c| pixel.clone().map(|p| p[c]).collect())
            .collect(),
        _ => vec![pixel.map(|p| p[0]).collect(); 3],
    };
    let mut pixels = Vec::with_capacity(shape.values());
    for plane in planes {
        pixels.extend(fitted(path, &plane, found, shape)?);
    }
    Ok(pixels)
}

/// Luma, by the weights of ITU-R 601 as other programs have them.
fn gray(pixel: &[u8]) -> u8 {
    let [r, g, b] = [0, 1, 2].map(|channel| u32::from(pixel[channel]));
    ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16) as u8
}

/// What a PNG file holds.
struct Decoded {
    /// Width and height.
    size: (usize, usize),
    /// Bytes of a pixel.
    colors: usize,
    /// The pixels, row by row.
    bytes: Vec<u8>,
}

fn decoded(bytes: &[u8]) -> std::result::Result<Decoded, String> {
    let mut decoder = png::Decoder::new(io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let size = reader.output_buffer_size().filter(|size| *size < 1 << 30);
    let mut buffer = vec![0; size.ok_or("it is too large")?];
    let info = reader
        .next_frame(&mut buffer)
        .map_err(|error| error.to_string())?;
    buffer.truncate(info.buffer_size());
    Ok(Decoded {
        size: (info.width as usize, info.height as usize),
        colors: info.color_type.samples(),
        bytes: buffer,
    })
}

/// A file, unpacked if it is gzip'd.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| ImageError::Io {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .map_err(failed)?;
        return Ok(unpacked);
    }
    Ok(bytes)
}

/// What a folder holds, by name; hidden files are none of ours.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| ImageError::Io {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !name_of(&path).starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub(super) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(ending))
}
