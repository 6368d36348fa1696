//! Python's pickles, read without executing anything.
//!
//! A pickle is a program for a small stack machine, and Python's own reader calls whatever function the pickle
//! names. Here a call only becomes a value that says what would have been called ([`Node::Call`]), and only names
//! that the caller lists may occur at all. Nothing recurses: values refer to each other by number, so that deep
//! nesting and cycles cost no more than their bytes. [`machine`] is the stack machine; [`super::torch`] gives the calls
//! their meaning.

mod machine;

use super::cursor::Cursor;
use super::limits::Budget;
use crate::error::Result;
use machine::Machine;

/// The number of a value.
pub(crate) type NodeId = u32;

/// A value of a pickle; texts are borrowed from its bytes.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer of more than 8 bytes.
    LongInt(&'a [u8]),
    Float(f64),
    Text(&'a str),
    /// Bytes that are no text; nobody needs them.
    Bytes,
    /// Tuples, lists and sets.
    List(Vec<NodeId>),
    Dict(Vec<(NodeId, NodeId)>),
    Global(Global<'a>),
    /// What a function would have returned, or an object of a class; never made.
    Call(Box<Call<'a>>),
    /// Something outside of the pickle, such as the numbers of a tensor.
    Persistent(NodeId),
}

/// A name in a Python module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Global<'a> {
    pub module: &'a str,
    pub name: &'a str,
}

/// A call of a function or class, with what is done to its result.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub global: Global<'a>,
    /// A list of the arguments.
    pub args: NodeId,
    /// The fields of the object.
    pub state: Option<NodeId>,
    /// What is set in the object, if it is a dictionary.
    pub items: Vec<(NodeId, NodeId)>,
}

/// All values of a pickle.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    nodes: Vec<Node<'a>>,
    root: NodeId,
}

impl<'a> Pickle<'a> {
    /// Reads one pickle and leaves the cursor behind it. Globals for which `allowed` says no are errors.
    pub fn read(
        cursor: &mut Cursor<'a>,
        budget: &mut Budget,
        allowed: fn(&Global<'_>) -> bool,
    ) -> Result<Self> {
        let (nodes, root) = Machine::new(cursor, budget, allowed).run()?;
        Ok(Self { nodes, root })
    }

    /// The value of the whole pickle.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The value of a number.
    pub fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    /// All values, in the order in which they were made.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The elements of a tuple or list; nothing for other values.
    pub fn list(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.node(id) {
            Node::List(list) => Some(list),
            _ => None,
        }
    }

    /// The text of a value; nothing for other values.
    pub fn text(&self, id: NodeId) -> Option<&'a str> {
        match self.node(id) {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number that counts something; nothing for other values.
    pub fn size(&self, id: NodeId) -> Option<usize> {
        match self.node(id) {
            Node::Int(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }
}
