//! How many requests are answered, and how soon: by clients that wait for their answers, and by a flood that does not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::client::Client;

const WARM_UP: Duration = Duration::from_secs(1);

/// What was seen of the requests that were sent and answered in time.
struct Seen {
    from: Instant,
    until: Instant,
    answers: RefCell<Vec<(u16, Duration)>>,
}

impl Seen {
    fn new(time: Duration) -> Rc<Self> {
        let from = Instant::now() + WARM_UP;
        Rc::new(Self {
            from,
            until: from + time,
            answers: RefCell::default(),
        })
    }

    fn add(&self, asked: Instant, status: u16) {
        if asked >= self.from && Instant::now() <= self.until {
            self.answers.borrow_mut().push((status, asked.elapsed()));
        }
    }

    fn report(&self) -> Value {
        let answers = self.answers.borrow();
        let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
        for (status, _) in &*answers {
            *statuses.entry(*status).or_default() += 1;
        }
        let translated = answers.iter().filter(|(status, _)| *status == 200);
        let times = translated.map(|(_, time)| time.as_secs_f64() * 1000.0);
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let last = times.len().saturating_sub(1) as f64;
        let at = |part: f64| times.get((last * part) as usize).copied();
        let seconds = (self.until - self.from).as_secs_f64();
        json!({
            "statuses": statuses, "per_second": times.len() as f64 / seconds,
            "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0),
        })
    }
}

/// Clients that ask for one sentence after the other, each on a connection of its own.
pub async fn load(
    address: &str,
    clients: usize,
    time: Duration,
    requests: Rc<Vec<String>>,
    pause: Duration,
) -> Value {
    let seen = Seen::new(time);
    let next = Rc::new(Cell::new(0));
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let (seen, next, requests) = (Rc::clone(&seen), Rc::clone(&next), Rc::clone(&requests));
        let address = address.to_owned();
        running.spawn_local(async move {
            let mut client = Client::new(&address);
            while Instant::now() < seen.until {
                let number = next.replace(next.get() + 1);
                let asked = Instant::now();
                let outcome = client.ask(&requests[number % requests.len()]).await;
                seen.add(asked, outcome.status());
                if outcome.status() != 200 {
                    sleep(pause).await;
                }
            }
        });
    }
    sleep_until(seen.until).await;
    running.abort_all();
    let mut report = seen.report();
    report["clients"] = json!(clients);
    report
}

/// More connections than this are not opened.
const MOST_CONNECTIONS: usize = 10_000;

/// So many requests per second, on whichever connections are free.
pub async fn flood(address: &str, rate: usize, time: Duration, requests: Rc<Vec<String>>) -> Value {
    let seen = Seen::new(time);
    let began = Instant::now();
    let address: &'static str = address.to_owned().leak();
    let free: Rc<RefCell<Vec<Client<'static>>>> = Rc::default();
    let (mut sent, mut opened, mut left_out) = (0, 0, 0);
    let mut ticks = interval(Duration::from_millis(1));
    while Instant::now() < seen.until {
        ticks.tick().await;
        let due = (began.elapsed().as_secs_f64() * rate as f64) as usize;
        for number in sent..due {
            let waiting = free.borrow_mut().pop();
            let mut client = match waiting {
                Some(client) => client,
                None if opened < MOST_CONNECTIONS => {
                    opened += 1;
                    Client::new(address)
                }
                None => {
                    left_out += 1;
                    continue;
                }
            };
            let (seen, free, requests) = (Rc::clone(&seen), Rc::clone(&free), Rc::clone(&requests));
            spawn_local(async move {
                let asked = Instant::now();
                let outcome = client.ask(&requests[number % requests.len()]).await;
                seen.add(asked, outcome.status());
                free.borrow_mut().push(client);
            });
        }
        sent = due;
    }
    let mut report = seen.report();
    report["rate"] = json!(rate);
    report["connections"] = json!(opened);
    report["left_out"] = json!(left_out);
    report
}
