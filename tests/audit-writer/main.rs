//! Runs a script whose calls are audited, until it is killed. `tests/it/audit/kills.rs` starts it, kills it
//! and reads what is left.
//!
//! Arguments: the directory of the trail, the file to which the tool writes what it receives, this
//! writer's name. Prints `ready` before the script starts. The tool stands for a server: what it has
//! written it has received.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use cx::audit::AuditOptions;
use cx::{Executor, Limits, Script};
use serde_json::{Value, json};

/// How long it runs if it is not killed.
const MAX_LIFE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trail, log, name] = &arguments[..] else { panic!("three arguments") };
    let log = OpenOptions::new().create(true).append(true).open(log).expect("the tool's file");
    let mut options = AuditOptions::new(trail);
    options.required = true;
    options.contents = true;
    // Often, so that some are killed while they sign.
    options.checkpoint_lines = 7;
    let own_name = name.clone();
    let executor = Executor::builder()
        .warm_instances(1)
        .limits(Limits { tool_calls: 0, wall_time: MAX_LIFE, cpu_time: MAX_LIFE, ..Limits::default() })
        .audit(options)
        .tool("server.receive", Value::Null, move |arguments: Value| {
            let line = format!("{own_name} {}\n", arguments["number"]);
            let written = (&log).write_all(line.as_bytes()).map_err(|error| error.to_string());
            async move { written.map(|()| json!(null)) }
        })
        .build()
        .expect("an executor");
    writeln!(std::io::stdout(), "ready").expect("stdout");
    let source = "for (let number = 0; ; number++) await tools.server.receive({ number });";
    let _killed = executor.run_blocking(Script::typescript(source).named(name.as_str()));
}
