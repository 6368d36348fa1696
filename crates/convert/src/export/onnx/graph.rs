//! A graph that grows operation by operation: each returns the name of its output, which later ones take.
//!
//! `mod.rs` builds the Transformer with it; `proto` is what becomes of it in the file.

use super::proto::{
    Attribute, AttributeType, DataType, Dimension, Graph, Model, Node, OperatorSet, Shape, Size,
    Tensor, TensorType, Type, ValueInfo,
};

/// The version of the operators: 17 is the first with `LayerNormalization`.
const OPSET: i64 = 17;
/// The version of the file format that belongs to it.
const IR_VERSION: i64 = 8;

/// The name of a value in the graph.
pub(super) type Name = String;

/// A graph under construction.
#[derive(Default)]
pub(super) struct Builder {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

impl Builder {
    /// An input of the graph; sizes that are no numbers are chosen when it runs.
    pub fn input(&mut self, name: &str, kind: DataType, shape: &[&str]) -> Name {
        self.inputs.push(value_info(name, kind, shape));
        name.into()
    }

    /// Makes a value an output of the graph, under this name.
    pub fn output(&mut self, value: &Name, name: &str, shape: &[&str]) {
        self.nodes
            .push(node("Identity", &[value], name, Vec::new()));
        self.outputs.push(value_info(name, DataType::Float, shape));
    }

    /// An operation with one output.
    pub fn op(&mut self, kind: &str, inputs: &[&Name]) -> Name {
        self.op_with(kind, inputs, Vec::new())
    }

    /// An operation with attributes.
    pub fn op_with(&mut self, kind: &str, inputs: &[&Name], attributes: Vec<Attribute>) -> Name {
        let output = format!("{kind}_{}", self.nodes.len());
        self.nodes.push(node(kind, inputs, &output, attributes));
        output
    }

    /// Constant f32 numbers.
    pub fn constant(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.add_constant(name, shape, DataType::Float, bytes.collect())
    }

    /// Constant 8-bit numbers.
    pub fn constant_i8(&mut self, name: &str, shape: &[usize], values: &[i8]) -> Name {
        let bytes = values.iter().map(|&value| value as u8);
        self.add_constant(name, shape, DataType::Int8, bytes.collect())
    }

    /// The 8-bit number that stands for 0.
    pub fn zero_i8(&mut self) -> Name {
        self.constant_i8("zero_i8", &[], &[0])
    }

    /// A single f32 number.
    pub fn number(&mut self, value: f32) -> Name {
        self.constant(&format!("number_{value}"), &[], &[value])
    }

    /// A list of integers: a shape, or axes.
    pub fn integers(&mut self, values: &[i64]) -> Name {
        let name = format!("integers_{values:?}");
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.add_constant(&name, &[values.len()], DataType::Int64, bytes.collect())
    }

    /// A single integer.
    pub fn integer(&mut self, value: i64) -> Name {
        let bytes = value.to_le_bytes().to_vec();
        self.add_constant(&format!("integer_{value}"), &[], DataType::Int64, bytes)
    }

    fn add_constant(
        &mut self,
        name: &str,
        shape: &[usize],
        kind: DataType,
        bytes: Vec<u8>,
    ) -> Name {
        if self.constants.iter().all(|constant| constant.name != name) {
            self.constants.push(Tensor {
                dims: shape.iter().map(|&size| size as i64).collect(),
                data_type: kind.into(),
                name: name.into(),
                raw_data: bytes,
            });
        }
        name.into()
    }

    /// The finished file.
    pub fn finish(self, name: &str) -> Model {
        Model {
            ir_version: IR_VERSION,
            producer_name: "attentive".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            graph: Some(Graph {
                node: self.nodes,
                name: name.into(),
                initializer: self.constants,
                input: self.inputs,
                output: self.outputs,
            }),
            opset_import: vec![OperatorSet {
                domain: String::new(),
                version: OPSET,
            }],
        }
    }
}

/// An attribute that is one integer.
pub(super) fn int(name: &str, value: i64) -> Attribute {
    Attribute {
        name: name.into(),
        i: value,
        r#type: AttributeType::Int.into(),
        ..Attribute::default()
    }
}

/// An attribute that is one number.
pub(super) fn float(name: &str, value: f32) -> Attribute {
    Attribute {
        name: name.into(),
        f: value,
        r#type: AttributeType::Float.into(),
        ..Attribute::default()
    }
}

/// An attribute that is a list of integers.
pub(super) fn ints(name: &str, values: &[i64]) -> Attribute {
    Attribute {
        name: name.into(),
        ints: values.to_vec(),
        r#type: AttributeType::Ints.into(),
        ..Attribute::default()
    }
}

fn node(kind: &str, inputs: &[&Name], output: &str, attributes: Vec<Attribute>) -> Node {
    Node {
        input: inputs.iter().map(|&name| name.clone()).collect(),
        output: vec![output.into()],
        name: format!("{output}_node"),
        op_type: kind.into(),
        attribute: attributes,
    }
}

fn value_info(name: &str, kind: DataType, shape: &[&str]) -> ValueInfo {
    let dim = |size: &&str| Dimension {
        value: Some(match size.parse() {
            Ok(number) => Size::Fixed(number),
            Err(_) => Size::Named((*size).into()),
        }),
    };
    ValueInfo {
        name: name.into(),
        r#type: Some(Type {
            tensor_type: Some(TensorType {
                elem_type: kind.into(),
                shape: Some(Shape {
                    dim: shape.iter().map(dim).collect(),
                }),
            }),
        }),
    }
}
