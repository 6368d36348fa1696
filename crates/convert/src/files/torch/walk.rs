//! Goes through what a PyTorch pickle describes: tensors are collected under dotted names, everything else becomes
//! JSON.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::files::cursor::Cursor;
use crate::files::limits::{Budget, MAX_NAME, MAX_RANK};
use crate::files::pickle::{Call, Global, Node, NodeId, Pickle};
use crate::files::strided::View;
use crate::files::{Tensor, Tensors};

use super::storage::{StorageRef, Storages, mismatch};

/// Checkpoints are nested a few levels deep.
const MAX_DEPTH: usize = 64;

/// What an entry of a JSON object takes, in tables that grow.
const ENTRY: usize = 4 * (size_of::<Value>() + size_of::<String>());

/// One walk through a pickle.
pub(super) struct Walk<'a, 'b> {
    cursor: &'b Cursor<'a>,
    pickle: &'b Pickle<'a>,
    storages: Storages<'b>,
    budget: &'b mut Budget,
    tensors: Tensors,
    /// The name of the value that is looked at.
    name: String,
}

impl<'a, 'b> Walk<'a, 'b> {
    /// At the root of a pickle; the cursor is for messages.
    pub fn new(
        cursor: &'b Cursor<'a>,
        pickle: &'b Pickle<'a>,
        storages: Storages<'b>,
        budget: &'b mut Budget,
    ) -> Self {
        Self {
            cursor,
            pickle,
            storages,
            budget,
            tensors: Tensors::new(cursor.path()),
            name: String::new(),
        }
    }

    /// Tensors and values of the whole pickle.
    pub fn run(mut self) -> Result<(Tensors, Value)> {
        let value = self.value(self.pickle.root(), 0)?;
        match value {
            Some(value @ (Value::Object(_) | Value::Array(_))) => Ok((self.tensors, value)),
            _ => Err(self.damaged("a dictionary of tensors", "a single value")),
        }
    }

    /// The value of a node, or nothing if it is a tensor.
    fn value(&mut self, id: NodeId, depth: usize) -> Result<Option<Value>> {
        if depth > MAX_DEPTH {
            let expected = format!("values within at most {MAX_DEPTH} others");
            return Err(self.damaged(&expected, "deeper or endless nesting"));
        }
        // Also for values that are looked at again: a pickle can refer to one value many times.
        self.budget
            .take(size_of::<Value>(), || format!("`{}`", self.name))?;
        let pickle = self.pickle;
        let value = match pickle.node(id) {
            Node::None | Node::LongInt(_) | Node::Bytes | Node::Persistent(_) => Value::Null,
            Node::Bool(value) => Value::from(*value),
            Node::Int(number) => Value::from(*number),
            Node::Float(number) => Value::from(*number),
            Node::Text(text) => {
                self.budget
                    .take(text.len(), || format!("`{}`", self.name))?;
                Value::from(*text)
            }
            Node::Global(Global { module, name }) => Value::from(format!("{module}.{name}")),
            Node::List(elements) => self.list(elements, depth)?,
            Node::Dict(items) => self.dict(items, depth)?,
            Node::Call(call) => return self.call(call, depth),
        };
        Ok(Some(value))
    }

    fn list(&mut self, elements: &[NodeId], depth: usize) -> Result<Value> {
        let bytes = elements.len() * size_of::<Value>();
        self.budget.take(bytes, || format!("`{}`", self.name))?;
        let mut values = Vec::with_capacity(elements.len());
        for (index, &element) in elements.iter().enumerate() {
            let value = self.named(format_args!("{index}"), |walk| {
                walk.value(element, depth + 1)
            })?;
            values.push(value.unwrap_or(Value::Null));
        }
        Ok(Value::Array(values))
    }

    fn dict(&mut self, items: &[(NodeId, NodeId)], depth: usize) -> Result<Value> {
        let mut map = Map::new();
        for (index, &(key, item)) in items.iter().enumerate() {
            let key = match self.pickle.node(key) {
                Node::Text(text) if text.len() <= MAX_NAME => text.to_string(),
                Node::Int(number) => number.to_string(),
                // Other keys have no place in a dotted name, so that the entry is named by its number.
                _ => format!("#{index}"),
            };
            let value = self.named(format_args!("{key}"), |walk| walk.value(item, depth + 1))?;
            if let Some(value) = value {
                self.budget
                    .take(ENTRY + key.len(), || format!("`{}`", self.name))?;
                map.insert(key, value);
            }
        }
        Ok(Value::Object(map))
    }

    fn call(&mut self, call: &Call<'a>, depth: usize) -> Result<Option<Value>> {
        let args = self.pickle.list(call.args).unwrap_or_default();
        let value = match (call.global.module, call.global.name) {
            ("torch._utils", "_rebuild_parameter") => match args.first() {
                Some(&tensor) => return self.value(tensor, depth + 1),
                None => return Err(self.damaged("a parameter", "none")),
            },
            ("torch._utils", _) => {
                let tensor = self.tensor(args)?;
                let name = self.name.clone();
                self.tensors.insert(self.budget, name, tensor)?;
                return Ok(None);
            }
            ("collections", "OrderedDict") if !args.is_empty() => {
                // Python 2 wrote the pairs as an argument.
                let pairs = self.pairs(args[0]);
                let pairs = pairs.ok_or_else(|| self.damaged("pairs", "another value"))?;
                self.dict(&pairs, depth)?
            }
            ("collections", _) | (_, "dict") => self.dict(&call.items, depth)?,
            // A set, a list or a size made of what is given to it.
            ("builtins" | "__builtin__" | "torch", _) if !args.is_empty() => {
                return self.value(args[0], depth + 1);
            }
            _ => match call.state {
                Some(state) => return self.value(state, depth + 1),
                None => Value::Null,
            },
        };
        Ok(Some(value))
    }

    /// The tensor that `_rebuild_tensor_v2(storage, offset, shape, strides, ...)` would make.
    fn tensor(&mut self, args: &[NodeId]) -> Result<Tensor> {
        let (storage, mut view) = self
            .view(args)
            .ok_or_else(|| self.damaged("storage, offset, shape and strides", "others"))?;
        let bytes = self.storages.get(storage.key, self.budget)?;
        let whole = storage.count.checked_mul(storage.dtype.size());
        let bytes = bytes.ok_or_else(|| mismatch(self.cursor, &self.name, &storage, None))?;
        if whole != Some(bytes.len()) {
            let found = Some(bytes.len());
            return Err(mismatch(self.cursor, &self.name, &storage, found));
        }
        view.offset = view.offset.saturating_add(storage.offset);
        let tensor = view.tensor(storage.dtype, &bytes, self.budget, &self.name)?;
        tensor.ok_or_else(|| {
            let expected = format!("a view of the {} numbers of its storage", storage.count);
            self.damaged(&expected, &format!("{view:?}"))
        })
    }

    fn view(&self, args: &[NodeId]) -> Option<(StorageRef<'a>, View)> {
        let (&[storage, offset, shape, strides], _) = args.split_first_chunk()?;
        let Node::Persistent(storage) = self.pickle.node(storage) else {
            return None;
        };
        let view = View {
            offset: self.pickle.size(offset)?,
            shape: self.sizes(shape)?,
            strides: self.sizes(strides)?,
        };
        Some((StorageRef::read(self.pickle, *storage)?, view))
    }

    /// A tuple of sizes, or a `torch.Size` of one.
    fn sizes(&self, id: NodeId) -> Option<Vec<usize>> {
        let id = match self.pickle.node(id) {
            Node::Call(call) if call.global.name == "Size" => {
                *self.pickle.list(call.args)?.first()?
            }
            _ => id,
        };
        let list = self.pickle.list(id)?;
        if list.len() > MAX_RANK {
            return None;
        }
        list.iter().map(|&size| self.pickle.size(size)).collect()
    }

    /// A list of pairs.
    fn pairs(&mut self, list: NodeId) -> Option<Vec<(NodeId, NodeId)>> {
        let list = self.pickle.list(list)?;
        let bytes = size_of_val(list) * 2;
        self.budget.take(bytes, String::new).ok()?;
        let pairs = list.iter().map(|&pair| match self.pickle.list(pair) {
            Some(&[key, value]) => Some((key, value)),
            _ => None,
        });
        pairs.collect()
    }

    /// Does something under a longer name.
    fn named<T>(
        &mut self,
        part: std::fmt::Arguments<'_>,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let length = self.name.len();
        let dot = if length == 0 { "" } else { "." };
        // Writing to a string cannot fail.
        let _ = write!(self.name, "{dot}{part}");
        if self.name.len() > MAX_NAME {
            self.name.truncate(length);
            let expected = format!("a name of at most {MAX_NAME} bytes");
            return Err(self.damaged(&expected, "a longer one"));
        }
        let result = work(self);
        self.name.truncate(length);
        result
    }

    fn damaged(&self, expected: &str, found: &str) -> crate::error::ConvertError {
        let place = if self.name.is_empty() {
            "the pickle".to_string()
        } else {
            format!("`{}`", self.name)
        };
        self.cursor.damaged_at(place, expected, found)
    }
}
