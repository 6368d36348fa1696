//! Numbers as the bytes that go from process to process: f32, or half as many as bf16.

use half::bf16;

use crate::recipe::Wire;

impl Wire {
    /// The bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Wire::F32 => 4,
            Wire::Bf16 => 2,
        }
    }

    /// What the numbers become on the way.
    pub fn round(self, values: &mut [f32]) {
        if self == Wire::Bf16 {
            for value in values {
                *value = bf16::from_f32(*value).to_f32();
            }
        }
    }

    /// The numbers as bytes.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * self.bytes()];
        match self {
            Wire::F32 => {
                for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                }
            }
            Wire::Bf16 => {
                for (bytes, value) in bytes.chunks_exact_mut(2).zip(values) {
                    bytes.copy_from_slice(&bf16::from_f32(*value).to_le_bytes());
                }
            }
        }
        bytes
    }

    /// Hands the numbers that the bytes stand for to `each`, with those of `values` in their places.
    fn with(self, bytes: &[u8], values: &mut [f32], each: impl Fn(&mut f32, f32)) {
        match self {
            Wire::F32 => {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    each(value, f32::from_le_bytes(*bytes));
                }
            }
            Wire::Bf16 => {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    each(value, bf16::from_le_bytes(*bytes).to_f32());
                }
            }
        }
    }

    /// Writes the numbers of the bytes to `values`.
    pub fn decode(self, bytes: &[u8], values: &mut [f32]) {
        self.with(bytes, values, |value, new| *value = new);
    }

    /// Adds the numbers of the bytes to `values`.
    pub fn add(self, bytes: &[u8], values: &mut [f32]) {
        self.with(bytes, values, |value, new| *value += new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_rounded() {
        let values = [
            0.0,
            -0.0,
            1.0,
            -std::f32::consts::PI,
            1e-30,
            6.5e30,
            f32::INFINITY,
        ];
        for wire in [Wire::F32, Wire::Bf16] {
            let mut rounded = values;
            wire.round(&mut rounded);
            let bytes = wire.encode(&values);
            assert_eq!(bytes.len(), values.len() * wire.bytes());
            let mut back = [7.0; 7];
            wire.decode(&bytes, &mut back);
            assert_eq!(back.map(f32::to_bits), rounded.map(f32::to_bits));
            for (rounded, value) in rounded.iter().zip(values) {
                let error = (rounded - value).abs();
                assert!(
                    rounded == &value || error <= value.abs() / 256.0,
                    "{value} and {rounded}"
                );
            }
            let mut sum = values;
            wire.add(&bytes, &mut sum);
            assert_eq!(sum[2], 2.0);
        }
    }
}
