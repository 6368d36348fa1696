//! The stack machine that a pickle is a program for. It makes values and calls nothing.
//!
//! Of Python's opcodes those are known that protocol 2 and later write for plain data; any other is an error. Each
//! step takes from the budget what it adds to the memory.

use std::collections::HashMap;

use super::{Call, Global, Node, NodeId};
use crate::error::{ConvertError, Result};
use crate::files::cursor::Cursor;
use crate::files::limits::{Budget, MAX_NAME};

/// The stack, the memo and the values that were made so far.
pub(super) struct Machine<'a, 'b> {
    cursor: &'b mut Cursor<'a>,
    budget: &'b mut Budget,
    allowed: fn(&Global<'_>) -> bool,
    nodes: Vec<Node<'a>>,
    stack: Vec<NodeId>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, NodeId>,
}

/// A vector that grows holds up to three times its contents while it moves.
const GROWTH: usize = 3;

impl<'a, 'b> Machine<'a, 'b> {
    /// At the beginning of a pickle.
    pub fn new(
        cursor: &'b mut Cursor<'a>,
        budget: &'b mut Budget,
        allowed: fn(&Global<'_>) -> bool,
    ) -> Self {
        Self {
            cursor,
            budget,
            allowed,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    /// Runs the program until its end, and gives all values with the number of the last.
    pub fn run(mut self) -> Result<(Vec<Node<'a>>, NodeId)> {
        loop {
            let opcode = self.cursor.u8("an opcode of the pickle")?;
            if opcode == b'.' {
                let root = self.pop()?;
                return Ok((self.nodes, root));
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        let cursor = &mut *self.cursor;
        match opcode {
            // Protocol and frame: they announce, and change nothing.
            0x80 => cursor.u8("a protocol").map(drop),
            0x95 => cursor.u64("the length of a frame").map(drop),

            b'N' => self.push(Node::None),
            0x88 => self.push(Node::Bool(true)),
            0x89 => self.push(Node::Bool(false)),
            b'K' => {
                let number = cursor.u8("a number")?;
                self.push(Node::Int(number.into()))
            }
            b'M' => {
                let number = cursor.u16("a number")?;
                self.push(Node::Int(number.into()))
            }
            b'J' => {
                let number = i32::from_le_bytes(cursor.array("a number")?);
                self.push(Node::Int(number.into()))
            }
            0x8a => {
                let length = cursor.u8("the length of a number")?;
                self.long(length.into())
            }
            0x8b => {
                let length = cursor.u32("the length of a number")?;
                self.long(length as usize)
            }
            b'G' => {
                let number = f64::from_be_bytes(cursor.array("a number")?);
                self.push(Node::Float(number))
            }

            b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e | b'T' | b'U' => self.string(opcode),

            b'(' => {
                self.budget
                    .take(GROWTH * size_of::<usize>(), || self.cursor.place())?;
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(drop),
            b'1' => self.pop_to_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.push_id(top)
            }

            b')' | b']' | 0x8f => self.push(Node::List(Vec::new())),
            b'}' => self.push(Node::Dict(Vec::new())),
            b't' | b'l' | 0x91 => {
                let elements = self.pop_to_mark()?;
                self.push(Node::List(elements))
            }
            0x85..=0x87 => {
                let elements = self.pop_many(usize::from(opcode - 0x84))?;
                self.push(Node::List(elements))
            }
            b'd' => {
                let elements = self.pop_to_mark()?;
                self.push(Node::Dict(Vec::new()))?;
                self.set_items(elements)
            }
            b'a' => {
                let element = self.pop_many(1)?;
                self.append(element)
            }
            b'e' | 0x90 => {
                let elements = self.pop_to_mark()?;
                self.append(elements)
            }
            b's' => {
                let pair = self.pop_many(2)?;
                self.set_items(pair)
            }
            b'u' => {
                let pairs = self.pop_to_mark()?;
                self.set_items(pairs)
            }

            b'q' => {
                let number = cursor.u8("a number of the memo")?;
                self.remember(number.into())
            }
            b'r' => {
                let number = cursor.u32("a number of the memo")?;
                self.remember(number)
            }
            0x94 => self.remember(self.memo.len() as u32),
            b'h' => {
                let number = cursor.u8("a number of the memo")?;
                self.recall(number.into())
            }
            b'j' => {
                let number = cursor.u32("a number of the memo")?;
                self.recall(number)
            }

            b'c' | 0x93 => self.global(opcode),
            b'R' | 0x81 | 0x92 => self.call(opcode),
            b'b' => self.build(),
            b'Q' => {
                let id = self.pop()?;
                self.push(Node::Persistent(id))
            }
            other => {
                let found = format!("the opcode {:?} ({other:#04x})", char::from(other));
                Err(cursor.damaged("an opcode that weights need", found))
            }
        }
    }

    fn long(&mut self, length: usize) -> Result<()> {
        let bytes = self.cursor.take(length, "a number")?;
        if length > size_of::<i64>() {
            return self.push(Node::LongInt(bytes));
        }
        // The sign is that of the last byte.
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..length].copy_from_slice(bytes);
        self.push(Node::Int(i64::from_le_bytes(wide)))
    }

    fn string(&mut self, opcode: u8) -> Result<()> {
        let cursor = &mut *self.cursor;
        let what = "the length of a string";
        let length = match opcode {
            0x8c | b'C' | b'U' => cursor.u8(what)?.into(),
            b'X' | b'B' | b'T' => cursor.u32(what)? as usize,
            _ => cursor.size_u64(what)?,
        };
        let bytes = cursor.take(length, "a string")?;
        let text = std::str::from_utf8(bytes).ok();
        match (opcode, text) {
            (b'X' | 0x8c | 0x8d, None) => Err(cursor.damaged("a text in UTF-8", "other bytes")),
            // Python 2 has one type for texts and bytes.
            (b'X' | 0x8c | 0x8d | b'T' | b'U', Some(text)) => self.push(Node::Text(text)),
            _ => self.push(Node::Bytes),
        }
    }

    /// A global by two lines of text, or by two strings on the stack.
    fn global(&mut self, opcode: u8) -> Result<()> {
        let place = self.cursor.place();
        let global = if opcode == 0x93 {
            let names = self.pop_many(2)?;
            let mut texts = names.iter().map(|&id| match self.nodes[id as usize] {
                Node::Text(text) if text.len() <= MAX_NAME => Some(text),
                _ => None,
            });
            let names = texts.next().flatten().zip(texts.next().flatten());
            let (module, name) =
                names.ok_or_else(|| self.cursor.damaged("the names of a global", "others"))?;
            Global { module, name }
        } else {
            Global {
                module: self.line()?,
                name: self.line()?,
            }
        };
        if !(self.allowed)(&global) {
            return Err(ConvertError::ForbiddenGlobal {
                path: self.cursor.path().to_path_buf(),
                place,
                global: format!("{}.{}", global.module, global.name),
            });
        }
        self.push(Node::Global(global))
    }

    fn line(&mut self) -> Result<&'a str> {
        let length = self.cursor.find(b'\n', MAX_NAME);
        let length = length.ok_or_else(|| self.cursor.damaged("the name of a global", "no end"))?;
        let line = self.cursor.name(length, "the name of a global")?;
        self.cursor.u8("the end of a line")?;
        Ok(line)
    }

    fn call(&mut self, opcode: u8) -> Result<()> {
        if opcode == 0x92 {
            // Arguments by keyword: what they are for only the class knows.
            self.pop()?;
        }
        let args = self.pop()?;
        let callee = self.pop()?;
        let Node::Global(global) = self.nodes[callee as usize] else {
            return Err(self.cursor.damaged("a global to call", "another value"));
        };
        if !matches!(self.nodes[args as usize], Node::List(_)) {
            return Err(self.cursor.damaged("a tuple of arguments", "another value"));
        }
        self.budget
            .take(size_of::<Call<'_>>(), || self.cursor.place())?;
        self.push(Node::Call(Box::new(Call {
            global,
            args,
            state: None,
            items: Vec::new(),
        })))
    }

    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let object = self.top()?;
        match &mut self.nodes[object as usize] {
            Node::Call(call) => call.state = Some(state),
            _ => return Err(self.cursor.damaged("an object to fill", "another value")),
        }
        Ok(())
    }

    fn append(&mut self, elements: Vec<NodeId>) -> Result<()> {
        let bytes = GROWTH * size_of::<NodeId>() * elements.len();
        self.budget.take(bytes, || self.cursor.place())?;
        let list = self.top()?;
        match &mut self.nodes[list as usize] {
            Node::List(list) => list.extend(elements),
            _ => return Err(self.cursor.damaged("a list to append to", "another value")),
        }
        Ok(())
    }

    fn set_items(&mut self, elements: Vec<NodeId>) -> Result<()> {
        let (pairs, rest) = elements.as_chunks();
        if !rest.is_empty() {
            return Err(self.cursor.damaged("a value for each key", "a key without"));
        }
        let bytes = GROWTH * size_of::<NodeId>() * elements.len();
        self.budget.take(bytes, || self.cursor.place())?;
        let dict = self.top()?;
        let items = match &mut self.nodes[dict as usize] {
            Node::Dict(items) => items,
            Node::Call(call) => &mut call.items,
            _ => return Err(self.cursor.damaged("a dictionary", "another value")),
        };
        items.extend(pairs.iter().map(|&[key, value]| (key, value)));
        Ok(())
    }

    fn remember(&mut self, number: u32) -> Result<()> {
        const ENTRY: usize = GROWTH * 2 * size_of::<(u32, NodeId)>();
        self.budget.take(ENTRY, || self.cursor.place())?;
        let top = self.top()?;
        self.memo.insert(number, top);
        Ok(())
    }

    fn recall(&mut self, number: u32) -> Result<()> {
        let found = self.memo.get(&number).copied();
        let missing = || self.cursor.damaged("a number that the memo has", number);
        let id = found.ok_or_else(missing)?;
        self.push_id(id)
    }

    fn push(&mut self, node: Node<'a>) -> Result<()> {
        const BYTES: usize = GROWTH * size_of::<Node<'_>>();
        self.budget.take(BYTES, || self.cursor.place())?;
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node);
        self.push_id(id)
    }

    fn push_id(&mut self, id: NodeId) -> Result<()> {
        // Twice: on the stack, and in the list that is made of it.
        const BYTES: usize = 2 * GROWTH * size_of::<NodeId>();
        self.budget.take(BYTES, || self.cursor.place())?;
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self) -> Result<NodeId> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top(&self) -> Result<NodeId> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack[floor..].last().copied();
        top.ok_or_else(|| self.underflow())
    }

    /// The last `count` values, none of them below the last mark.
    fn pop_many(&mut self, count: usize) -> Result<Vec<NodeId>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count) {
            Some(rest) if rest >= floor => Ok(self.stack.split_off(rest)),
            _ => Err(self.underflow()),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<NodeId>> {
        let mark = self.marks.pop().ok_or_else(|| self.underflow())?;
        Ok(self.stack.split_off(mark))
    }

    fn underflow(&self) -> ConvertError {
        self.cursor
            .damaged("a value or a mark on the stack", "none")
    }
}
