//! A run without an executor, in a process that ends after it: it uses the memory that runs in workers will use.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::durations::nanoseconds;
use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance};
use crate::engine::process::connection::Connection;
use crate::engine::process::guest::GuestHost;
use crate::engine::process::wire::{self, Start, WireLimits};
use crate::run::limits::Limits;

/// Scripts that do what most scripts do, and ask their executor for nothing, because there is none.
const TYPESCRIPT: &str = r#"
const counts = new Map<string, number>();
for (const word of "a b a".split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
console.log(`${counts.size} words`, [...counts].filter(([, count]) => count > 1));
return Object.fromEntries(counts)"#;
const PYTHON: &str = r#"
counts = {}
for word in "a b a".split():
    counts[word] = counts.get(word, 0) + 1
print(f"{len(counts)} words", [word for word, count in counts.items() if count > 1])
return counts"#;

/// Executes such a script. That it fails is no error: nothing depends on it but time.
pub(super) fn run<E: Engine>(engine: &E, instance: &mut E::Instance, is_python: bool) {
    engine.begin_forked();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok((socket, _executor))) = (runtime, UnixStream::pair()) else { return };
    let connection = Arc::new(Connection::new(socket.into()));
    let source = if is_python { PYTHON } else { TYPESCRIPT };
    let mut start = start();
    let _result = runtime.block_on(async {
        engine.renew(instance).await.ok()?;
        let host = GuestHost::new(&connection, wire::language(is_python), &mut start).ok()?;
        let host = Arc::new(host) as Arc<dyn RunHost>;
        let mut prepared = engine.prepare(&*host, source).ok()?;
        instance.survey(&host, source, &mut prepared).await.ok()?;
        Some(instance.execute(&host, source, prepared).await)
    });
}

/// The terms of the run.
fn start() -> Start {
    Start {
        number: 1,
        depth: 0,
        is_check: false,
        source: String::new(),
        name: "sample".to_owned(),
        input: None,
        servers: Vec::new(),
        time_zone: "UTC".to_owned(),
        clock_resolution_ns: 100_000,
        has_tape: false,
        has_network: false,
        is_alone: false,
        is_last: true,
        directories: Vec::new(),
        time_left_ns: nanoseconds(Duration::from_secs(10)),
        limits: WireLimits::from_limits(&Limits::default()),
    }
}
