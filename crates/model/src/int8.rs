//! Int8 weights as a weights file holds them: packed bytes, and a scale for each output.
//!
//! A matrix is stored as I8 `[outputs / 16, inputs / 4, 16, 4]`, the order in which the runtime's kernels read it,
//! with zeros where `outputs` and `inputs` end earlier. `NAME.scale`, f32 `[outputs]`, says what a step of one is worth:
//! `weight = byte * scale`. In a token table the tokens are the outputs. Bytes are never -128: the kernels need
//! ranges that are symmetric.
//!
//! Whoever has int8 weights, from quantizing or from another program's file, packs them ([`pack`], [`pack_with`]),
//! collects them in an [`Int8Weights`] and writes them with [`crate::ModelDir::save_int8`].

use crate::weights::{TensorRef, Values};

/// Outputs that stand together: the lanes of a vector.
pub const LANES: usize = 16;

/// Inputs that stand together.
pub const GROUP: usize = 4;

/// The shape of a packed matrix.
pub fn packed_shape(inputs: usize, outputs: usize) -> [usize; 4] {
    [
        outputs.div_ceil(LANES),
        inputs.div_ceil(GROUP),
        LANES,
        GROUP,
    ]
}

/// How many bytes a packed matrix has.
pub fn packed_len(inputs: usize, outputs: usize) -> usize {
    packed_shape(inputs, outputs).iter().product()
}

/// Where the weight of an input and an output stands in a packed matrix.
pub fn packed_place(inputs: usize, input: usize, output: usize) -> usize {
    let groups = inputs.div_ceil(GROUP);
    let place = (output / LANES * groups + input / GROUP) * LANES + output % LANES;
    place * GROUP + input % GROUP
}

/// The name of the scales of an int8 tensor.
pub fn scale_name(name: &str) -> String {
    format!("{name}.scale")
}

/// Packs weights that stand output by output, `[outputs, inputs]`.
///
/// # Panics
/// If there are not `outputs * inputs` values.
pub fn pack(values: &[i8], outputs: usize, inputs: usize) -> Vec<i8> {
    assert_eq!(values.len(), outputs * inputs, "weights of a matrix");
    let mut packed = vec![0; packed_len(inputs, outputs)];
    pack_with(inputs, outputs, &mut packed, |input, output| {
        values[output * inputs + input]
    });
    packed
}

/// The weights of a packed matrix, output by output: what [`pack`] was given.
pub fn unpack(packed: &[i8], outputs: usize, inputs: usize) -> Vec<i8> {
    let row = |output| (0..inputs).map(move |input| packed[packed_place(inputs, input, output)]);
    (0..outputs).flat_map(row).collect()
}

/// Fills a packed matrix, which must be zeros, with the weight that `weight(input, output)` gives.
pub fn pack_with(
    inputs: usize,
    outputs: usize,
    packed: &mut [i8],
    weight: impl Fn(usize, usize) -> i8,
) {
    let group = GROUP * LANES;
    let panels = packed.chunks_exact_mut(inputs.div_ceil(GROUP) * group);
    for (panel, bytes) in panels.enumerate() {
        for (place, byte) in bytes.iter_mut().enumerate() {
            let input = place / group * GROUP + place % GROUP;
            let output = panel * LANES + place % group / GROUP;
            if input < inputs && output < outputs {
                *byte = weight(input, output);
            }
        }
    }
}

/// The tensors of an int8 model: packed matrices with their scales, and what stays f32.
#[derive(Debug, Default)]
pub struct Int8Weights {
    packed: Vec<(String, [usize; 4], Vec<i8>)>,
    floats: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Int8Weights {
    /// Adds a packed matrix or token table, with one scale for each output.
    ///
    /// # Panics
    /// If the bytes are not as many as [`packed_len`] says, or there is not a scale for each output.
    pub fn add_matrix(
        &mut self,
        name: &str,
        (inputs, outputs): (usize, usize),
        packed: Vec<i8>,
        scales: Vec<f32>,
    ) {
        assert_eq!(packed.len(), packed_len(inputs, outputs), "bytes of {name}");
        assert_eq!(scales.len(), outputs, "scales of {name}");
        self.add_floats(scale_name(name), &[outputs], scales);
        let shape = packed_shape(inputs, outputs);
        self.packed.push((name.to_string(), shape, packed));
    }

    /// Adds a tensor that stays f32: norms, biases and learned positions.
    pub fn add_floats(&mut self, name: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        self.floats.push((name.into(), shape.to_vec(), values));
    }

    /// How many tensors are int8.
    pub fn matrices(&self) -> usize {
        self.packed.len()
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = TensorRef<'_>> {
        // Bytes first: their sizes keep what follows on a cache line.
        let packed = self.packed.iter();
        let packed = packed.map(|(name, shape, bytes)| (&**name, &shape[..], Values::I8(bytes)));
        let floats = self.floats.iter();
        let floats = floats.map(|(name, shape, values)| (&**name, &**shape, Values::F32(values)));
        packed.chain(floats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Weights;

    #[test]
    fn every_weight_is_where_its_place_says_and_the_rest_is_zero() {
        for (inputs, outputs) in [(1, 1), (4, 16), (5, 17), (31, 33)] {
            let values: Vec<i8> = (0..inputs * outputs).map(|i| (i % 127) as i8 + 1).collect();
            let packed = pack(&values, outputs, inputs);
            assert_eq!(packed.len(), packed_len(inputs, outputs));
            for output in 0..outputs {
                for input in 0..inputs {
                    let found = packed[packed_place(inputs, input, output)];
                    assert_eq!(found, values[output * inputs + input]);
                }
            }
            let zeros = packed.iter().filter(|&&byte| byte == 0).count();
            assert_eq!(zeros, packed.len() - values.len(), "{inputs} {outputs}");
        }
    }

    #[test]
    fn packed_matrices_come_first_and_have_their_scales() {
        let mut weights = Int8Weights::default();
        weights.add_floats("bias", &[2], vec![1.0, 2.0]);
        weights.add_matrix(
            "a",
            (3, 2),
            pack(&[1, 2, 3, 4, 5, 6], 2, 3),
            vec![0.5, 0.25],
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.safetensors");
        Weights::write_mixed(&path, weights.tensors()).expect("a writable folder");
        let file = Weights::open(&path).expect("just written");
        assert_eq!(file.names(), ["a", "bias", "a.scale"]);
        assert_eq!(file.shape("a"), Some(&[1, 1, 16, 4][..]));
        assert_eq!(file.tensor("a.scale").expect("there").1, [0.5, 0.25]);
        let place = file.i8_place("a", &[1, 1, 16, 4]).expect("there");
        assert_eq!(file.bytes(place)[..8], [1, 2, 3, 0, 4, 5, 6, 0]);
    }

    #[test]
    fn the_byte_that_kernels_cannot_use_is_not_written() {
        let mut weights = Int8Weights::default();
        weights.add_matrix("a", (1, 1), pack(&[-128], 1, 1), vec![1.0]);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.safetensors");
        let error = Weights::write_mixed(&path, weights.tensors()).expect_err("-128");
        let message = error.to_string();
        assert!(
            message.contains("tensor `a`") && message.contains("-128"),
            "{message}"
        );
        assert!(!path.exists());
    }
}
