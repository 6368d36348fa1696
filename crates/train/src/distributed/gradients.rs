//! The sum of the gradients of a step over all processes, made while the backward pass goes on.
//!
//! Each bucket ([`super::buckets`]) is a reduce-scatter (every process gets, from all, the part that it owns, and
//! sums it) and an all-gather (every process gets the sums of the others). Both begin as soon as they can; whoever
//! has gradients calls [`GradientSums::put`], and [`GradientSums::finish`] waits for what is still on its way.
//!
//! In the exact order (`distributed.reduction`), the gradients of single batches travel, and are added in the order
//! of the plan of batches: the sums do not depend on how many processes there are, one included. In the fast order
//! each process adds up its own batches first and sends once a step.

use std::collections::VecDeque;

use attentive_model::tensors::TensorSpec;
use burn::tensor::{Device, Tensor, TensorData};

use super::{
    Communicator, Exchange, Outgoing, Tag,
    buckets::{Bucket, Buckets},
};
use crate::{
    optim::optimizer::{Gradients, accumulate},
    recipe::{Distributed, Reduction, Sharding, Wire},
};

/// Sums gradients over all processes.
pub struct GradientSums<'a> {
    communicator: &'a dyn Communicator,
    settings: Distributed,
    buckets: Buckets,
    device: Device,
    /// The gradients of this process's batches that are not sent yet (the fast order).
    local: Gradients,
    round: Round,
    /// Processes, from the first, that had a batch of this step (the fast order).
    in_step: usize,
    filling: Vec<Filling>,
    /// Contributions of all processes on their way to this one, in the order of the plan.
    arriving: VecDeque<Arriving>,
    /// The sums of the part of each bucket that this process owns.
    sums: Vec<Option<Vec<f32>>>,
    gathering: Vec<Option<Box<dyn Exchange>>>,
}

/// The batches that all processes compute side by side.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// How many batches: each of the first so many processes has one.
    pub batches: usize,
    /// Whether the optimizer steps after it.
    pub ends_step: bool,
}

/// A bucket that becomes full.
#[derive(Default)]
struct Filling {
    values: Vec<f32>,
    tensors: usize,
    /// In this round.
    sent: bool,
}

struct Arriving {
    bucket: usize,
    /// What this process itself adds.
    own: Option<Vec<f32>>,
    /// Processes, from the first, that add something.
    from: usize,
    wire: Wire,
    last: bool,
    exchange: Box<dyn Exchange>,
}

impl<'a> GradientSums<'a> {
    /// Nothing summed yet; nothing comes back where one process alone has nothing to round.
    pub fn new(
        communicator: &'a dyn Communicator,
        settings: &Distributed,
        tensors: &[TensorSpec],
        device: &Device,
    ) -> Option<Self> {
        let size = communicator.size();
        if size == 1 && settings.wire == Wire::F32 {
            return None;
        }
        let buckets = Buckets::new(tensors, size, settings.sharding());
        let count = buckets.buckets.len();
        Some(Self {
            communicator,
            settings: settings.clone(),
            buckets,
            device: device.clone(),
            local: Gradients::new(),
            round: Round {
                batches: 0,
                ends_step: false,
            },
            in_step: 0,
            filling: (0..count).map(|_| Filling::default()).collect(),
            arriving: VecDeque::new(),
            sums: vec![None; count],
            gathering: (0..count).map(|_| None).collect(),
        })
    }

    /// Where gradients lie and who owns them.
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// A round of batches begins.
    pub fn begin(&mut self, round: Round) {
        self.round = round;
        self.in_step = self.in_step.max(round.batches);
    }

    /// The gradient of a parameter, of this process's batch of the round. It travels as soon as its bucket is full.
    pub fn put(&mut self, name: &str, gradient: Tensor<1>) {
        let mut sum = Gradients::from([(name.to_owned(), gradient)]);
        if self.settings.reduction == Reduction::Fast {
            let new = std::mem::take(&mut sum);
            if let Some(before) = self.local.remove(name) {
                sum.insert(name.to_owned(), before);
            }
            accumulate(&mut sum, new);
            if !self.round.ends_step {
                self.local.append(&mut sum);
                return;
            }
        }
        for (name, gradient) in sum {
            self.fill(&name, gradient, self.settings.wire);
        }
        self.collect(Until::Ready);
    }

    /// The round is over for this process: whatever it has not put is nothing.
    pub fn end(&mut self) {
        let exact = self.settings.reduction == Reduction::Exact;
        if exact || self.round.ends_step {
            self.send_rest(self.settings.wire);
        }
        if !self.settings.overlap {
            self.collect(Until::All);
        }
    }

    /// The sums over all batches of the step, in the process that needs them: all of them in each, or those of its
    /// own parameters where the optimizer is sharded.
    pub fn finish(&mut self) -> Gradients {
        self.collect(Until::All);
        self.in_step = 0;
        match self.settings.sharding() {
            Sharding::Optimizer => self.own_sums(),
            Sharding::None => self.gathered(self.settings.wire),
        }
    }

    /// The sums so far, of a step that is not complete, in each process; process 0 goes on with them in the fast
    /// order.
    pub fn so_far(&mut self) -> Gradients {
        let exact = self.settings.reduction == Reduction::Exact;
        if !exact {
            for (name, gradient) in std::mem::take(&mut self.local) {
                self.fill(&name, gradient, Wire::F32);
            }
            self.send_rest(Wire::F32);
            self.in_step = 1;
        }
        self.collect(Until::All);
        for bucket in 0..self.sums.len() {
            self.gather(bucket, Wire::F32);
        }
        let kept = self.sums.clone();
        let all = self.gathered(Wire::F32);
        if exact {
            self.sums = kept;
        } else if self.communicator.is_root() {
            self.local = all.clone();
        }
        all
    }

    /// Goes on with the sums of a step that was not complete.
    pub fn resume(&mut self, waiting: Gradients) {
        if waiting.is_empty() {
            return;
        }
        match self.settings.reduction {
            Reduction::Fast => {
                self.in_step = 1;
                if self.communicator.is_root() {
                    self.local = waiting;
                }
            }
            Reduction::Exact => {
                for (bucket, sum) in self.buckets.buckets.iter().zip(&mut self.sums) {
                    let mut values = vec![0.0; bucket.len()];
                    for (name, range) in &bucket.tensors {
                        if let Some(gradient) = waiting.get(name) {
                            copy(gradient.clone(), &mut values[range.clone()]);
                        }
                    }
                    *sum = Some(values[bucket.parts[self.communicator.rank()].clone()].to_vec());
                }
            }
        }
    }

    /// Forgets the step.
    pub fn clear(&mut self) {
        self.collect(Until::All);
        for exchange in self.gathering.iter_mut().filter_map(Option::take) {
            exchange.wait();
        }
        self.sums.fill(None);
        self.local.clear();
        self.in_step = 0;
    }

    /// How many processes, from the first, have something to add now.
    fn contributors(&self) -> usize {
        match self.settings.reduction {
            Reduction::Exact => self.round.batches,
            Reduction::Fast => self.in_step.max(1),
        }
    }

    /// A gradient into its bucket; a full bucket is sent.
    fn fill(&mut self, name: &str, gradient: Tensor<1>, wire: Wire) {
        let Some(place) = self.buckets.place(name).cloned() else {
            return;
        };
        let bucket = &self.buckets.buckets[place.bucket];
        let filling = &mut self.filling[place.bucket];
        filling.values.resize(bucket.len(), 0.0);
        filling.tensors += 1;
        copy(gradient, &mut filling.values[place.range]);
        if filling.tensors == bucket.tensors.len() {
            let values = std::mem::take(&mut filling.values);
            filling.sent = true;
            self.send(place.bucket, Some(values), wire);
        }
    }

    /// Every bucket that is not full; from here on they are those of the next round.
    fn send_rest(&mut self, wire: Wire) {
        let adds = self.communicator.rank() < self.contributors();
        for bucket in 0..self.filling.len() {
            let mut filling = std::mem::take(&mut self.filling[bucket]);
            if filling.sent {
                continue;
            }
            let Bucket { tensors, parts } = &self.buckets.buckets[bucket];
            if adds {
                filling
                    .values
                    .resize(parts.last().map_or(0, |part| part.end), 0.0);
                for (name, range) in tensors {
                    if let Some(waiting) = self.local.remove(name) {
                        copy(waiting, &mut filling.values[range.clone()]);
                    }
                }
            }
            self.send(bucket, adds.then_some(filling.values), wire);
        }
    }

    /// Begins to bring the values of a bucket to the processes that own them.
    fn send(&mut self, bucket: usize, values: Option<Vec<f32>>, wire: Wire) {
        let (rank, from) = (self.communicator.rank(), self.contributors());
        let parts = &self.buckets.buckets[bucket].parts;
        let outgoing = match &values {
            Some(values) => parts
                .iter()
                .enumerate()
                .map(|(to, part)| {
                    if to == rank {
                        return Vec::new();
                    }
                    wire.encode(&values[part.clone()])
                })
                .collect(),
            None => Vec::new(),
        };
        let bytes = parts[rank].len() * wire.bytes();
        let incoming = (0..parts.len()).map(|other| {
            if other < from && other != rank {
                bytes
            } else {
                0
            }
        });
        let exchange = self.communicator.start(
            Tag::Reduce(bucket as u16),
            Outgoing::ToEach(outgoing),
            incoming.collect(),
        );
        let own = values.map(|values| {
            let mut own = values[parts[rank].clone()].to_vec();
            wire.round(&mut own);
            own
        });
        self.arriving.push_back(Arriving {
            bucket,
            own,
            from,
            wire,
            last: self.round.ends_step,
            exchange,
        });
    }

    /// Adds what has arrived, in the order of the plan.
    fn collect(&mut self, until: Until) {
        while let Some(first) = self.arriving.front_mut() {
            if until == Until::Ready && !first.exchange.ready() {
                return;
            }
            let Some(arrived) = self.arriving.pop_front() else {
                return;
            };
            let Arriving {
                bucket,
                mut own,
                from,
                wire,
                last,
                exchange,
            } = arrived;
            let rank = self.communicator.rank();
            let length = self.buckets.buckets[bucket].parts[rank].len();
            let incoming = exchange.wait();
            let sum = &mut self.sums[bucket];
            for (other, bytes) in incoming.iter().enumerate().take(from) {
                match (sum.as_mut(), own.as_ref()) {
                    (None, Some(_)) if other == rank => *sum = own.take(),
                    (Some(sum), Some(own)) if other == rank => add(sum, own),
                    (None, _) => {
                        let mut first = vec![0.0; length];
                        wire.decode(bytes, &mut first);
                        *sum = Some(first);
                    }
                    (Some(sum), _) => wire.add(bytes, sum),
                }
            }
            if last {
                if let Some(sum) = sum {
                    wire.round(sum);
                }
                if self.settings.sharding() == Sharding::None {
                    self.gather(bucket, wire);
                }
            }
        }
    }

    /// Begins to bring the sums of a bucket from the processes that own them to all.
    fn gather(&mut self, bucket: usize, wire: Wire) {
        let rank = self.communicator.rank();
        let parts = &self.buckets.buckets[bucket].parts;
        let incoming = parts.iter().enumerate();
        let incoming = incoming.map(|(other, part)| {
            if other == rank {
                0
            } else {
                part.len() * wire.bytes()
            }
        });
        let own = self.sums[bucket].get_or_insert_with(|| vec![0.0; parts[rank].len()]);
        let exchange = self.communicator.start(
            Tag::Gather(bucket as u16),
            Outgoing::ToAll(wire.encode(own)),
            incoming.collect(),
        );
        self.gathering[bucket] = Some(exchange);
    }

    /// The sums of all processes.
    fn gathered(&mut self, wire: Wire) -> Gradients {
        let rank = self.communicator.rank();
        let mut all = Gradients::new();
        for (index, bucket) in self.buckets.buckets.iter().enumerate() {
            let own = self.sums[index].take().unwrap_or_default();
            let incoming = self.gathering[index]
                .take()
                .map(Exchange::wait)
                .unwrap_or_default();
            for (name, range) in &bucket.tensors {
                let mut values = vec![0.0; range.len()];
                for (other, part) in bucket.parts.iter().enumerate() {
                    let (start, end) = (part.start.max(range.start), part.end.min(range.end));
                    if start >= end {
                        continue;
                    }
                    let values = &mut values[start - range.start..end - range.start];
                    let (start, end) = (start - part.start, end - part.start);
                    if other == rank {
                        values.copy_from_slice(&own[start..end]);
                    } else {
                        let bytes = start * wire.bytes()..end * wire.bytes();
                        wire.decode(&incoming[other][bytes], values);
                    }
                }
                all.insert(name.clone(), tensor(values, &self.device));
            }
        }
        all
    }

    /// The sums of the tensors that this process owns.
    fn own_sums(&mut self) -> Gradients {
        let rank = self.communicator.rank();
        let mut own = Gradients::new();
        for (bucket, sum) in self.buckets.buckets.iter().zip(&mut self.sums) {
            let (sum, part) = (sum.take().unwrap_or_default(), &bucket.parts[rank]);
            for (name, range) in &bucket.tensors {
                if part.start <= range.start && range.end <= part.end && !range.is_empty() {
                    let values = &sum[range.start - part.start..range.end - part.start];
                    own.insert(name.clone(), tensor(values.to_vec(), &self.device));
                }
            }
        }
        own
    }
}

/// How long to wait for gradients that are on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Not at all.
    Ready,
    /// Until all of them are here.
    All,
}

/// A flat tensor of these values.
pub(super) fn tensor(values: Vec<f32>, device: &Device) -> Tensor<1> {
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), device)
}

/// The values of a flat tensor, to where they belong.
fn copy(tensor: Tensor<1>, values: &mut [f32]) {
    let data = tensor.into_data();
    match data.as_slice::<f32>() {
        Ok(found) => values.copy_from_slice(found),
        Err(_) => {
            for (value, found) in values.iter_mut().zip(data.iter::<f32>()) {
                *value = found;
            }
        }
    }
}

fn add(sum: &mut [f32], own: &[f32]) {
    for (sum, own) in sum.iter_mut().zip(own) {
        *sum += own;
    }
}
