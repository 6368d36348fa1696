//! Sentences that join a running batch and leave it, in any order: each is found as if it were alone.

use attentive_model::config::{Activation, Autoregression, TransformerConfig};
use attentive_model::directory::ModelDir;
use attentive_model::fake_dir;
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{
    Feed, Hypothesis, LengthLimit, Load, Method, Request, Sampling, SearchModel, SearchOptions,
    search, search_feed,
};
use attentive_text::special::EOS;
use proptest::prelude::*;

/// Gives as many sentences as planned before each step, or one if nothing else is running.
struct Planned<'a> {
    requests: &'a [Request],
    next: usize,
    plan: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    most_at_once: usize,
    found: Vec<Option<Vec<Hypothesis>>>,
}

impl<'a> Planned<'a> {
    fn new(requests: &'a [Request], plan: &'a [usize]) -> Self {
        Self {
            requests,
            next: 0,
            plan: plan.iter().cycle(),
            most_at_once: 0,
            found: vec![None; requests.len()],
        }
    }
}

impl<'a> Feed for Planned<'a> {
    type Request = &'a Request;

    fn refill(&mut self, running: Load, joining: &mut Vec<(usize, &'a Request)>) {
        let planned = self.plan.next().copied().unwrap_or(1);
        let count = planned.max(usize::from(running.sentences == 0));
        let end = self.requests.len().min(self.next + count);
        joining.extend((self.next..end).map(|number| (number, &self.requests[number])));
        self.most_at_once = self.most_at_once.max(running.sentences + joining.len());
        self.next = end;
    }

    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
        assert!(self.found[number].replace(hypotheses).is_none(), "once");
    }
}

fn methods() -> Vec<(Method, usize)> {
    let sampling = Sampling {
        seed: 7,
        ..Default::default()
    };
    vec![
        (Method::Greedy, 1),
        (Method::Beam { size: 1 }, 1),
        (Method::Beam { size: 3 }, 2),
        (Method::Sample(sampling), 3),
    ]
}

/// A sentence with a prefix, candidates and a length of its own, if the numbers say so.
fn request((len, prefix, limit, restricted): (usize, usize, Option<usize>, bool)) -> Request {
    let tokens = (0..len as u32).map(|i| 4 + (i * 7 + len as u32) % 20);
    Request {
        prefix: vec![5; prefix],
        max_length: limit.map(|cap| LengthLimit {
            cap: Some(cap),
            ..Default::default()
        }),
        candidates: restricted.then(|| [EOS, 5, 7, 9, 20].into()),
        ..Request::new(tokens.chain([EOS]).collect())
    }
}

fn requests(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let numbers = (
        0..40usize,
        0..3usize,
        prop::option::of(3..30usize),
        any::<bool>(),
    );
    prop::collection::vec(numbers.prop_map(request), 1..most)
}

fn check<M: SearchModel>(
    model: &M,
    requests: &[Request],
    plan: &[usize],
    (method, n_best): (Method, usize),
) -> Result<(), TestCaseError> {
    let options = SearchOptions {
        method,
        n_best,
        ..Default::default()
    };
    let mut feed = Planned::new(requests, plan);
    search_feed(model, &mut feed, &options);
    for (number, (found, request)) in feed.found.into_iter().zip(requests).enumerate() {
        let alone = search(model, &[request], &options).remove(0);
        prop_assert_eq!(found, Some(alone), "sentence {}", number);
    }
    Ok(())
}

proptest! {
    #[test]
    fn sentences_that_join_and_leave_are_found_as_if_alone(
        seed: u64,
        requests in requests(12),
        plan in prop::collection::vec(0..4usize, 1..8),
        method in prop::sample::select(methods()),
    ) {
        check(&FakeModel::random(24, seed), &requests, &plan, method)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The same with the real kernels, bit by bit.
    #[test]
    fn sentences_that_join_and_leave_the_cpu_model_are_found_as_if_alone(
        requests in requests(10),
        plan in prop::collection::vec(0..4usize, 1..8),
        method in prop::sample::select(methods()),
        int8: bool,
        recurrent: bool,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let configure = |config: &mut TransformerConfig| {
            if recurrent {
                config.autoregression = Autoregression::Ssru;
                config.activation = Activation::Swish;
            }
        };
        fake_dir::write_with(folder.path(), configure, |_, _| {}).expect("written");
        let dir = ModelDir::open(folder.path()).expect("a model");
        let compute = if int8 { Compute::Int8 } else { Compute::F32 };
        check(&CpuModel::open(&dir, compute).expect("a model"), &requests, &plan, method)?;
    }
}

#[test]
fn others_join_before_the_longest_sentence_has_ended() {
    // A copy takes as many steps as the source has tokens: the long one 30, each short one 3.
    let lengths = [29, 2, 2, 2, 2, 2, 2, 2, 2];
    let requests = lengths.map(|len| Request::new([vec![6; len], vec![EOS]].concat()));
    struct TwoAtMost<'a>(Planned<'a>);
    impl<'a> Feed for TwoAtMost<'a> {
        type Request = &'a Request;
        fn refill(&mut self, running: Load, joining: &mut Vec<(usize, &'a Request)>) {
            if running.sentences < 2 {
                self.0.refill(running, joining);
            }
        }
        fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
            self.0.found(number, hypotheses);
        }
    }
    let steps = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = steps.clone();
    let model = FakeModel::from_probabilities(8, move |source, target| {
        if source.len() == 30 {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        vec![(source[target.len()], 1.0)]
    });
    let mut feed = TwoAtMost(Planned::new(&requests, &[1]));
    search_feed(&model, &mut feed, &SearchOptions::greedy());
    assert!(feed.0.found.iter().all(Option::is_some));
    // 30 rows of the long one and 3 of each short one; none is ever computed twice.
    assert_eq!(model.rows_fed(), 30 + 8 * 3);
    assert_eq!(feed.0.most_at_once, 2);
}
