//! The load, and one server under it.

use super::*;

/// Pseudo-random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A call without an answer so far.
struct Open {
    kind: &'static Kind,
    number: u64,
    /// The number of further answers after which it is cancelled.
    cancelled_after: u64,
}

/// Many calls through one client.
struct Soak {
    client: Client,
    dice: Dice,
    open: HashMap<String, Open>,
    /// The ids of cancelled calls.
    silent: Vec<Value>,
    begun: u64,
    counts: HashMap<&'static str, u64>,
}

impl Soak {
    fn new(client: Client) -> Self {
        let dice = Dice(0x9E37_79B9_7F4A_7C15);
        Self { client, dice, open: HashMap::new(), silent: Vec::new(), begun: 0, counts: HashMap::new() }
    }

    fn begin(&mut self) {
        let total = KINDS.iter().map(|kind| kind.weight).sum();
        // Every kind once, and then in random order.
        let kind = KINDS.get(usize::try_from(self.begun).unwrap()).unwrap_or_else(|| {
            let mut at = self.dice.below(total);
            KINDS
                .iter()
                .find(|kind| {
                    let found = at < kind.weight;
                    at = at.saturating_sub(kind.weight);
                    found
                })
                .unwrap()
        });
        self.begun += 1;
        let mut arguments = json!({ "code": kind.code, "input": self.begun });
        if let Some(timeout) = kind.timeout_ms.or((kind.name == "upstream hangs").then_some(300)) {
            arguments["timeoutMs"] = timeout.into();
        }
        let id = self.client.begin_call(kind.tool, arguments);
        let open = Open { kind, number: self.begun, cancelled_after: self.dice.below(AT_ONCE as u64) };
        self.open.insert(id.to_string(), open);
        *self.counts.entry(kind.name).or_default() += 1;
    }

    /// Waits for one answer, checks it and cancels the calls that are due.
    fn end_one(&mut self) {
        // When only calls to be cancelled are left, no answer comes any more.
        let all_wait = self.open.values().all(|open| matches!(open.kind.ends, Ends::Cancelled));
        if !all_wait {
            let message = self.client.receive();
            let id = &message["id"];
            assert!(!self.silent.contains(id), "an answer to a call that was cancelled: {message:#}");
            let open = self.open.remove(&id.to_string()).unwrap_or_else(|| panic!("to nothing: {message:#}"));
            let is_right = match open.kind.ends {
                Ends::Answered(right) => right(&message["result"], open.number),
                Ends::Cancelled => false,
            };
            assert!(is_right, "{} {} ({}): {message:#}", open.number, open.kind.name, open.kind.tool);
        }
        let mut due = Vec::new();
        for (id, open) in &mut self.open {
            if matches!(open.kind.ends, Ends::Cancelled) {
                if open.cancelled_after == 0 || all_wait {
                    due.push(id.clone());
                }
                open.cancelled_after = open.cancelled_after.saturating_sub(1);
            }
        }
        for id in due {
            self.open.remove(&id);
            let id: Value = serde_json::from_str(&id).unwrap();
            let params = json!({ "requestId": id, "reason": "soak" });
            self.client
                .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            self.silent.push(id);
        }
    }

    /// Makes this many more calls, and samples the process meanwhile.
    fn run(&mut self, calls: u64) -> Vec<Sample> {
        let mut samples = Vec::new();
        let (start, process) = (self.begun, self.client.process());
        let every = (calls / SAMPLES).max(1);
        while self.begun < start + calls {
            while self.open.len() < AT_ONCE && self.begun < start + calls {
                self.begin();
                if (self.begun - start).is_multiple_of(every) {
                    samples.push(Sample::read(process));
                }
            }
            self.end_one();
        }
        samples
    }

    /// Waits until everything has ended, and returns the idle process.
    fn sample_at_rest(&mut self) -> Sample {
        while !self.open.is_empty() {
            self.end_one();
        }
        let health = self.client.wait_for_health(|health| {
            let pool = &health["connectionPool"];
            let none_is_lost = |language: &str| health["engines"][language]["hung"] == 0;
            pool["active"] == 0
                && pool["waiting"] == 0
                && none_is_lost("typescript")
                && none_is_lost("python")
        });
        assert_eq!(health["healthy"], true, "{health:#}");
        let seen = self.client.take_seen();
        assert!(seen.is_empty(), "an answer to a call that was cancelled: {seen:?}");
        settled(&mut self.client)
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for people to read")]
fn ld_241_soak() {
    let runs = std::env::var("CX_SOAK_RUNS").map_or(SHORT, |runs| runs.parse().unwrap());
    let start = Start::new()
        .server("well", &["well"])
        .server("crashes", &["dies-in-call"])
        .server("hangs", &["hang-call"])
        .server("stalls", &["hang-call"])
        .server("garbled", &["garbage"])
        .server("half", &["half-line"])
        .server("mistaken", &["wrong-types"])
        .server("astray", &["wrong-id"])
        .server("twice", &["duplicate-response"])
        .server("chatty", &["flood-notifications"])
        .server("pinging", &["flood-pings"])
        .server("changing", &["flood-list-changed"])
        .server("loud", &["stderr-flood"])
        .server("gone", &["exits-1-stderr"]);
    let mut soak = Soak::new(start.arguments(&["--memory", "64MiB"]).spawn().shaken());
    let began = Instant::now();
    soak.run(WARM_UP);
    let before = soak.sample_at_rest();
    let measured = Instant::now();
    let samples = soak.run(runs);
    let took = measured.elapsed();
    let mut after = soak.sample_at_rest();
    let trimmed = Instant::now() + IDLE_TRIM;
    while !after.is_within(&before, GROWTH, SLACK) && Instant::now() < trimmed {
        std::thread::sleep(Duration::from_secs(1));
        after = settled(&mut soak.client);
    }

    let mut kinds: Vec<_> = soak.counts.iter().collect();
    kinds.sort();
    println!("{runs} runs, {AT_ONCE} at a time, in {took:.1?}, after {WARM_UP} in {:.1?}", measured - began);
    println!("{kinds:?}");
    println!("{:>10} {:>13} {:>8} {:>12} {:>9}", "", "resident MB", "threads", "descriptors", "children");
    let row = |name: &str, sample: &Sample| {
        let megabytes = sample.resident_kb as f64 / 1024.0;
        let Sample { threads, descriptors, children, .. } = sample;
        println!("{name:>10} {megabytes:>13.1} {threads:>8} {descriptors:>12} {children:>9}");
    };
    let tenths: Vec<Sample> = samples.chunks(samples.len().div_ceil(10)).map(Sample::median).collect();
    row("idle", &before);
    for (number, tenth) in tenths.iter().enumerate() {
        row(&format!("tenth {}", number + 1), tenth);
    }
    row("idle", &after);

    if runs >= LONG {
        let (first, last) = (&tenths[0], &tenths[tenths.len() - 1]);
        assert!(last.is_within(first, GROWTH, 0), "the last tenth is larger than the first");
    }
    assert!(after.is_within(&before, GROWTH, SLACK), "more is left than was there");
    let servers: Vec<String> = ["well", "crashes", "hangs"]
        .iter()
        .flat_map(|server| soak.client.noted_processes(server, "started "))
        .collect();
    assert!(servers.len() > 3, "one of them crashed: {servers:?}");
    soak.client.end();
    for server in servers {
        assert!(!chaos::runs(&server), "{server} is left");
    }
}
