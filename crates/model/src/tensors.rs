//! The schema of a model's tensors: name, shape and role of each, in the order of the weights file.
//!
//! [`crate::config::ModelConfig::tensors`] lists them for a configuration. Loading, saving, quantizing,
//! counting parameters, grouping them for the optimizer and test models all read this list, so a tensor is
//! described once. The blocks here ([`Schema::linear`], [`Schema::attention`], ...) are those of
//! `attentive-nn`: a name is the path of a field there.

/// One tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The path of its field, such as `encoder.layers.0.self_attention.query.weight`.
    pub name: String,
    /// Its shape; values are stored row-major.
    pub shape: Vec<usize>,
    /// What it is to the model.
    pub role: Role,
}

/// What a tensor is to its model: decides how it is quantized and optimized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Token vectors, `[vocab, d_model]`: a row for each token. May serve as the output projection, too.
    Embedding,
    /// Learned position vectors, `[max_positions, d_model]`.
    Positions,
    /// The output projection to the vocabulary where it is not tied, `[d_model, vocab]`.
    Projection,
    /// The weight of a linear layer inside the stacks, `[inputs, outputs]`.
    Linear,
    /// The scale of a normalization, `[width]`.
    Norm,
    /// Added to the outputs of a linear layer, of the projection or of a normalization.
    Bias,
}

impl TensorSpec {
    /// How many values it has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many values are trained; a tensor that is tied to several uses stands in the list once.
pub fn parameter_count(tensors: &[TensorSpec]) -> usize {
    tensors.iter().map(TensorSpec::len).sum()
}

/// A list of tensors that grows block by block.
#[derive(Debug, Default)]
pub struct Schema(Vec<TensorSpec>);

impl Schema {
    /// One more tensor.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], role: Role) {
        self.0.push(TensorSpec {
            name: name.into(),
            shape: shape.to_vec(),
            role,
        });
    }

    /// A linear layer with its bias.
    pub fn linear(&mut self, name: &str, inputs: usize, outputs: usize) {
        self.add(format!("{name}.weight"), &[inputs, outputs], Role::Linear);
        self.add(format!("{name}.bias"), &[outputs], Role::Bias);
    }

    /// A layer normalization.
    pub fn norm(&mut self, name: &str, width: usize) {
        self.add(format!("{name}.weight"), &[width], Role::Norm);
        self.add(format!("{name}.bias"), &[width], Role::Bias);
    }

    /// Multi-head attention; `kv_width` is the width of all key heads together.
    pub fn attention(&mut self, name: &str, d_model: usize, kv_width: usize) {
        self.linear(&format!("{name}.query"), d_model, d_model);
        self.linear(&format!("{name}.key"), d_model, kv_width);
        self.linear(&format!("{name}.value"), d_model, kv_width);
        self.linear(&format!("{name}.output"), d_model, d_model);
    }

    /// A simpler simple recurrent unit; its input has no bias.
    pub fn ssru(&mut self, name: &str, d_model: usize) {
        let shape = [d_model, d_model];
        self.add(format!("{name}.input.weight"), &shape, Role::Linear);
        self.linear(&format!("{name}.forget"), d_model, d_model);
    }

    /// A gated recurrent unit: input and state to the three gates.
    pub fn gru(&mut self, name: &str, d_input: usize, width: usize) {
        self.linear(&format!("{name}.input"), d_input, 3 * width);
        self.linear(&format!("{name}.state"), width, 3 * width);
    }

    /// The feed-forward network of a layer.
    pub fn feed_forward(&mut self, name: &str, d_model: usize, d_ff: usize) {
        self.linear(&format!("{name}.inner"), d_model, d_ff);
        self.linear(&format!("{name}.outer"), d_ff, d_model);
    }

    /// The list.
    pub fn into_tensors(self) -> Vec<TensorSpec> {
        self.0
    }
}
