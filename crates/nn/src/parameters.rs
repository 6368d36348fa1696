//! A model's parameters by name: for saving, loading, optimizing and averaging them.
//!
//! Names are the paths of the fields, `encoder.layers.0.self_attention.query.weight`, and stand in
//! the weights file as they are. Neighbors: the models; `attentive-train`'s optimizer and checkpoints.

use std::collections::BTreeMap;

use burn::{
    backend::autodiff::NodeId,
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Gradients, Tensor, TensorData},
};

use crate::ops::node_id;

/// One parameter read out of a model.
#[derive(Debug, Clone)]
pub struct NamedTensor {
    /// The path of its field.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The values, flattened, on the model's device.
    pub values: Tensor<1>,
}

/// All parameters in field order, detached from any gradient graph.
pub fn named<M: Module>(model: &M) -> Vec<NamedTensor> {
    Reader::read(model, None)
}

/// All parameters on the host as `(name, shape, values)`, as the weights file takes them.
pub fn export<M: Module>(model: &M) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let parameters = named(model).into_iter();
    parameters
        .map(|p| (p.name, p.shape, to_vec(&p.values)))
        .collect()
}

/// The model with every parameter replaced by what `value` returns for its name and old values
/// (flattened, without gradient tracking). Returned tensors have the same number of elements.
pub fn replace<M: Module>(model: M, value: impl FnMut(&str, Tensor<1>) -> Tensor<1>) -> M {
    model.map(&mut Writer {
        path: Vec::new(),
        value,
    })
}

/// The gradient of every parameter that has one, flattened, by name.
pub fn gradients<M: Module>(model: &M, gradients: Gradients) -> BTreeMap<String, Tensor<1>> {
    let found = Reader::read(model, Some(gradients)).into_iter();
    found
        .map(|gradient| (gradient.name, gradient.values))
        .collect()
}

/// A parameter in the gradient graph.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) name: String,
}

/// The parameters of a model on the CPU with autodiff as nodes of the gradient graph.
pub(crate) fn nodes<M: Module>(model: &M) -> Vec<Node> {
    struct Nodes {
        path: Vec<String>,
        found: Vec<Node>,
    }
    impl ModuleVisitor for Nodes {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let name = self.path.join(".");
            self.found
                .extend(node_id(param.val()).map(|id| Node { id, name }));
        }
    }
    let mut nodes = Nodes {
        path: Vec::new(),
        found: Vec::new(),
    };
    model.visit(&mut nodes);
    nodes.found
}

/// The values of a flat tensor on the host.
pub fn to_vec(values: &Tensor<1>) -> Vec<f32> {
    let data: TensorData = values.to_data();
    data.iter::<f32>().collect()
}

/// Collects the parameters, or their gradients if it has some.
struct Reader {
    path: Vec<String>,
    gradients: Option<Gradients>,
    found: Vec<NamedTensor>,
}

impl Reader {
    fn read<M: Module>(model: &M, gradients: Option<Gradients>) -> Vec<NamedTensor> {
        let mut reader = Self {
            path: Vec::new(),
            gradients,
            found: Vec::new(),
        };
        model.visit(&mut reader);
        reader.found
    }
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = match &mut self.gradients {
            None => param.val().inner(),
            Some(gradients) => match param.val().grad_remove(gradients) {
                Some(gradient) => gradient,
                None => return,
            },
        };
        let shape = values.dims().to_vec();
        let count = shape.iter().product::<usize>();
        self.found.push(NamedTensor {
            name: self.path.join("."),
            shape,
            values: values.reshape([count]),
        });
    }
}

struct Writer<F> {
    path: Vec<String>,
    value: F,
}

impl<F: FnMut(&str, Tensor<1>) -> Tensor<1>> ModuleMapper for Writer<F> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        param.map(|tensor| {
            let shape = tensor.dims();
            let tracked = tensor.is_require_grad();
            let autodiff = tensor.is_autodiff();
            let flat = tensor.inner().reshape([shape.iter().product::<usize>()]);
            let new = (self.value)(&name, flat).reshape(shape);
            let new = if autodiff {
                Tensor::from_inner(new)
            } else {
                new
            };
            new.set_require_grad(tracked)
        })
    }
}
