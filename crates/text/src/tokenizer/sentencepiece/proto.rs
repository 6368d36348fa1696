//! The protobuf wire format, as much of it as a SentencePiece file uses: bytes -> numbered fields.
//!
//! Nothing here knows what the fields mean; `model_file` does. Every length is checked against the bytes
//! that are there, so a damaged file is an error that names the byte.

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    /// The field's number in the message.
    pub number: u64,
    /// Where the field starts in the file.
    pub at: usize,
    value: Value<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64,
    /// Bytes and where they start in the file.
    Bytes(&'a [u8], usize),
}

/// The fields of a message, one after the other.
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Where the message starts in the file.
    start: usize,
}

impl<'a> Message<'a> {
    /// The whole file as a message.
    pub fn of_file(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            start: 0,
        }
    }

    /// The next field, or `None` at the end.
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, String> {
        if self.position == self.bytes.len() {
            return Ok(None);
        }
        let at = self.start + self.position;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Value::Fixed64
            }
            2 => {
                let length = self.varint()?;
                let start = self.start + self.position;
                Value::Bytes(self.take(length)?, start)
            }
            5 => {
                let mut word = [0; 4];
                word.copy_from_slice(self.take(4)?);
                Value::Fixed32(u32::from_le_bytes(word))
            }
            kind => return Err(format!("byte {at}: found a field of unknown kind {kind}")),
        };
        let number = key >> 3;
        if number == 0 {
            return Err(format!("byte {at}: found field number 0"));
        }
        Ok(Some(Field { number, at, value }))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let at = self.start + self.position;
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(format!("byte {at}: found a number of more than ten bytes"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.position..];
        let taken = usize::try_from(length).ok().and_then(|n| rest.get(..n));
        let at = self.start + self.position;
        let taken = taken.ok_or_else(|| {
            format!(
                "byte {at}: expected {length} more bytes, found {}",
                rest.len()
            )
        })?;
        self.position += taken.len();
        Ok(taken)
    }
}

impl<'a> Field<'a> {
    /// The field as a whole number.
    pub fn number(&self) -> Result<u64, String> {
        match self.value {
            Value::Varint(number) => Ok(number),
            _ => Err(self.unexpected("a whole number")),
        }
    }

    /// The field as yes or no.
    pub fn flag(&self) -> Result<bool, String> {
        Ok(self.number()? != 0)
    }

    /// The field as a floating-point number.
    pub fn float(&self) -> Result<f32, String> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.unexpected("a floating-point number")),
        }
    }

    /// The field as bytes.
    pub fn bytes(&self) -> Result<&'a [u8], String> {
        match self.value {
            Value::Bytes(bytes, _) => Ok(bytes),
            _ => Err(self.unexpected("bytes")),
        }
    }

    /// The field as text.
    pub fn text(&self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.unexpected("UTF-8 text"))
    }

    /// The field as a message of its own.
    pub fn message(&self) -> Result<Message<'a>, String> {
        match self.value {
            Value::Bytes(bytes, start) => Ok(Message {
                bytes,
                position: 0,
                start,
            }),
            _ => Err(self.unexpected("a message")),
        }
    }

    fn unexpected(&self, expected: &str) -> String {
        format!("byte {}: field {} is not {expected}", self.at, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_with_their_values() {
        let mut message = Message::of_file(&[0x08, 0x96, 0x01, 0x12, 2, b'h', b'i']);
        let first = message.next_field().unwrap().unwrap();
        assert_eq!((first.number, first.number().unwrap()), (1, 150));
        let second = message.next_field().unwrap().unwrap();
        assert_eq!((second.number, second.text().unwrap()), (2, "hi"));
        assert!(message.next_field().unwrap().is_none());
    }

    #[test]
    fn lengths_beyond_the_end_name_the_byte() {
        let error = Message::of_file(&[0x12, 9, b'h']).next_field().unwrap_err();
        assert_eq!(error, "byte 2: expected 9 more bytes, found 1");
        let endless = [0xff; 12];
        assert!(Message::of_file(&endless).next_field().is_err());
    }
}
