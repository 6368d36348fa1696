//! Arrays as NumPy and Marian (through cnpy) read them: `.npy` files in a zip that compresses nothing.
//!
//! Written by hand, as a zip without compression is a header before each file and a list at the end, and what is read
//! (`files`) needs no library either.

use std::io::{self, Write};
use std::path::Path;

use attentive_model::durable::DurableFile;
use flate2::Crc;

/// One array and its name in the zip.
pub(super) struct Array {
    name: String,
    npy: Vec<u8>,
}

impl Array {
    /// f32 numbers.
    pub fn f32(name: &str, shape: [usize; 2], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        let shape = format!("({}, {})", shape[0], shape[1]);
        Self::new(name, "<f4", &shape, bytes)
    }

    /// Text as 8-bit numbers.
    pub fn bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self::new(name, "|i1", &format!("({},)", bytes.len()), bytes)
    }

    fn new(name: &str, kind: &str, shape: &str, values: impl IntoIterator<Item = u8>) -> Self {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        // Magic, version and length are 10 bytes; values begin at a multiple of 64, behind a line feed.
        let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend((padded as u16).to_le_bytes());
        npy.extend(format!("{header:width$}\n", width = padded - 1).into_bytes());
        npy.extend(values);
        Self {
            name: format!("{name}.npy"),
            npy,
        }
    }
}

/// Writes the zip, whole or not at all.
pub(super) fn write(path: &Path, arrays: &[Array]) -> io::Result<()> {
    let mut file = DurableFile::create(path)?;
    let (mut directory, mut offset) = (Vec::new(), 0);
    for array in arrays {
        let about = array.about()?;
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&about);
        directory.extend([0; 10]); // no comment, the first disk, no attributes
        directory.extend(size(offset)?.to_le_bytes());
        directory.extend(array.name.as_bytes());
        file.write_all(b"PK\x03\x04")?;
        file.write_all(&about)?;
        file.write_all(array.name.as_bytes())?;
        file.write_all(&array.npy)?;
        offset += 4 + about.len() + array.name.len() + array.npy.len();
    }
    file.write_all(&directory)?;
    let count = u16::try_from(arrays.len())
        .map_err(|_| too_large())?
        .to_le_bytes();
    file.write_all(b"PK\x05\x06\x00\x00\x00\x00")?;
    file.write_all(&count)?;
    file.write_all(&count)?;
    file.write_all(&size(directory.len())?.to_le_bytes())?;
    file.write_all(&size(offset)?.to_le_bytes())?;
    file.write_all(&[0, 0])?;
    file.commit()
}

impl Array {
    /// What both headers of a file say: version 2.0, no flags, stored, no time, checksum, sizes, length of the name.
    fn about(&self) -> io::Result<Vec<u8>> {
        let mut checksum = Crc::new();
        checksum.update(&self.npy);
        let length = size(self.npy.len())?.to_le_bytes();
        let name = u16::try_from(self.name.len()).map_err(|_| too_large())?;
        let mut about = vec![0x14, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]; // 0x21: the first day that a zip can name
        about.extend(checksum.sum().to_le_bytes());
        about.extend(length);
        about.extend(length);
        about.extend(name.to_le_bytes());
        about.extend([0, 0]);
        Ok(about)
    }
}

fn size(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::Error::other("a zip of this kind holds at most 4 GB")
}
