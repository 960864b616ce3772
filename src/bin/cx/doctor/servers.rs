//! Checks the servers: each is started and asked for its tools. Also checks the user's sign-ins to them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cx::auth::{self, AuthStatus};
use cx::text::{one_line, shell_word};
use cx::{Config, McpServer, McpTransport, ServerFailureKind, ServerState, ServerStats, ToolError};

use super::context::DoctorContext;
use super::report::Check;
use crate::progress::ProgressLine;
use crate::setup;
use crate::text::{counted, failure, whole_seconds};

const SECTION: &str = "servers";
const SIGN_INS: &str = "sign-ins";

/// How often it is checked which servers are ready.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum number of names in the progress line.
const MAX_NAMES: usize = 5;

/// The check of the servers of a configuration that cannot be loaded.
pub(super) fn unknown() -> Check {
    Check::unknown(SECTION)
}

/// Starts all servers and requests their tools, unless `is_offline`. Their answers are not stored.
pub(super) async fn check(context: &DoctorContext, is_offline: bool, progress: &ProgressLine) -> Vec<Check> {
    let servers = &context.config.servers;
    if servers.is_empty() {
        let hint = "`cx setup` finds those of your MCP clients";
        return vec![Check::warning(SECTION, "none", "no server is configured", hint)];
    }
    if is_offline {
        let skipped = |server: &McpServer| Check::skipped(SECTION, &server.name, "not started (--offline)");
        return servers.iter().map(skipped).chain(definitions(context)).collect();
    }
    let (results, failed_after) = connect(context, progress).await;
    let results: HashMap<String, Result<(), ToolError>> = results.into_iter().collect();
    let stats = context.executor.server_stats();
    let mut checks = Vec::new();
    for server in servers {
        let stats = stats.iter().find(|stats| stats.name == server.name);
        let check = match (results.get(&server.name), stats) {
            (Some(Err(error)), _) => {
                let hint = hint(server, error, &context.config);
                let after = failed_after.get(&server.name).copied();
                let took = after.map(|time| format!(" (after {})", rounded(time))).unwrap_or_default();
                let message = format!("{}: {}{took}", error.code, failure(error));
                Check::problem(SECTION, &server.name, message, hint)
                    .with("code", error.code.as_str())
                    .with("error", error.message.as_str())
                    .with("failedAfterMs", after.map(milliseconds))
            }
            (Some(Ok(())), Some(stats)) => started(stats),
            _ => Check::skipped(SECTION, &server.name, "not used"),
        };
        checks.push(check);
    }
    checks.extend(definitions(context));
    checks
}

/// Connects to all servers concurrently, and shows which ones are still awaited. Returns the results, and the times of
/// the failures.
async fn connect(
    context: &DoctorContext,
    progress: &ProgressLine,
) -> (Vec<(String, Result<(), ToolError>)>, HashMap<String, Duration>) {
    let began = Instant::now();
    let mut failed_after = HashMap::new();
    let connecting = context.executor.connect_servers();
    tokio::pin!(connecting);
    loop {
        tokio::select! {
            results = &mut connecting => {
                for (name, _) in results.iter().filter(|(_, result)| result.is_err()) {
                    failed_after.entry(name.clone()).or_insert_with(|| began.elapsed());
                }
                return (results, failed_after);
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let stats = context.executor.server_stats();
        let mut waiting = Vec::new();
        for server in &stats {
            match server.state {
                ServerState::Failed => {
                    failed_after.entry(server.name.clone()).or_insert_with(|| began.elapsed());
                }
                ServerState::Connected if server.tools.is_some() => {}
                _ => waiting.push(one_line(&server.name)),
            }
        }
        let more = waiting.len().saturating_sub(MAX_NAMES);
        waiting.truncate(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        progress.say(format!("waiting for {}{more}", waiting.join(", ")));
    }
}

/// A server that has answered.
fn started(stats: &ServerStats) -> Check {
    let tools = stats.tools.unwrap_or_default();
    let parts = [
        ("started in", stats.start_time),
        ("handshake in", stats.handshake_time),
        ("listed its tools in", stats.list_time),
    ];
    let times = parts.iter().filter_map(|(what, time)| Some(format!("{what} {}", rounded((*time)?))));
    let times: Vec<String> = times.collect();
    let revision = stats.protocol_version.as_deref().unwrap_or("unknown");
    let message = format!("{}, MCP {revision}; {}", counted(tools, "tool"), times.join(", "));
    let check = match &stats.last_error {
        // An incomplete list, of a server that works otherwise.
        Some(problem) => Check::warning(
            SECTION,
            &stats.name,
            format!("{message}; {problem}"),
            "tell its authors, or update it: it breaks the protocol",
        ),
        None => Check::ok(SECTION, &stats.name, message),
    };
    check
        .with("tools", tools)
        .with("protocolVersion", stats.protocol_version.as_deref())
        .with("startMs", stats.start_time.map(milliseconds))
        .with("handshakeMs", stats.handshake_time.map(milliseconds))
        .with("listMs", stats.list_time.map(milliseconds))
}

/// The remedy for a server that failed.
fn hint(server: &McpServer, error: &ToolError, config: &Config) -> String {
    let name = &server.name;
    let origin = config.origins.get(&format!("mcpServers.{name}"));
    let file = origin.map_or_else(|| "its file".to_owned(), ToString::to_string);
    match (&server.transport, error.server_failure.as_ref().map(|failure| &failure.kind)) {
        (_, Some(ServerFailureKind::SignInRequired { command })) => command.clone(),
        (_, Some(ServerFailureKind::ConnectTimeout)) => {
            format!("set `connectTimeoutMs` of `{name}` in {file} if it needs longer to start")
        }
        (McpTransport::Stdio(stdio), Some(ServerFailureKind::NotStarted)) => {
            format!("install `{}`, or correct `command` of `{name}` in {file}", stdio.command)
        }
        (McpTransport::Stdio(stdio), _) => {
            // As `cx config show` prints them, without secrets.
            let shown = config.to_json();
            let arguments = shown["mcpServers"][name]["args"].as_array().into_iter().flatten();
            let words =
                [stdio.command.as_str()].into_iter().chain(arguments.filter_map(|word| word.as_str()));
            let line = words.map(shell_word).collect::<Vec<_>>().join(" ");
            format!("start it by hand and see what it says: {line} ({file})")
        }
        _ => {
            format!("see that it runs, and check `url` and `headers` of `{name}` in {file}")
        }
    }
}

/// Pinned definitions that differ, or were damaged.
fn definitions(context: &DoctorContext) -> Vec<Check> {
    const NAME: &str = "pinned definitions";
    let changes = match context.executor.tool_changes() {
        Ok(changes) => changes,
        Err(error) => {
            let hint = "see that the state directory can be read and written";
            return vec![Check::problem(SECTION, NAME, error.to_string(), hint)];
        }
    };
    let skills = match context.executor.skill_changes() {
        Ok(skills) => skills,
        Err(error) => {
            let hint = "`cx tools accept SERVER` forgets them, so that the next text is pinned";
            return vec![Check::problem(SECTION, NAME, error.to_string(), hint)];
        }
    };
    let damaged = context.executor.damaged_pins();
    let mut checks: Vec<Check> = damaged
        .iter()
        .map(|pins| {
            let server = one_line(&pins.server);
            let file = pins.file.display();
            let message = format!("those of `{server}` were damaged and are set aside as {file}");
            Check::problem(SECTION, NAME, message, format!("cx tools accept {server}"))
        })
        .collect();
    let is_damaged = |server: &str| damaged.iter().any(|pins| pins.server == server);
    let changed = changes.iter().filter(|change| !is_damaged(&change.server)).count();
    let differ = |count: usize, what: &str| match count {
        1 => format!("1 {what} differs"),
        _ => format!("{count} {what}s differ"),
    };
    for (count, what) in [(changed, "tool"), (skills.len(), "skill")] {
        if count == 0 {
            continue;
        }
        let message = format!("{} from what is pinned", differ(count, what));
        checks.push(Check::warning(
            SECTION,
            NAME,
            message,
            "`cx tools changed` shows how; `cx tools accept` accepts",
        ));
    }
    checks
}

/// The user's sign-ins to servers over HTTP. Sends no request.
pub(super) async fn sign_ins(config: &Config) -> Vec<Check> {
    let Ok(directories) = setup::directories() else { return Vec::new() };
    let mut checks = Vec::new();
    for server in &config.servers {
        let McpTransport::Http(_) = &server.transport else { continue };
        let name = &server.name;
        let login = format!("cx auth login {name}");
        let check = match auth::status(server, &directories.state).await {
            Ok(AuthStatus::SignedOut) => continue,
            Ok(AuthStatus::Unusable) => {
                let message = "what is stored is damaged, or no request can be made with it";
                Check::problem(SIGN_INS, name, message, login).with("status", "unusable")
            }
            Ok(AuthStatus::SignedIn { remaining: Some(remaining), renews: false }) if remaining.is_zero() => {
                Check::problem(SIGN_INS, name, "it has expired, and cannot be renewed", login)
                    .with("status", "expired")
            }
            Ok(AuthStatus::SignedIn { remaining, renews }) => {
                let until = match (remaining, renews) {
                    (_, true) => "signed in; renewed when needed".to_owned(),
                    (Some(remaining), false) => format!("signed in for {}", whole_seconds(remaining)),
                    (None, false) => "signed in".to_owned(),
                };
                Check::ok(SIGN_INS, name, until).with("status", "signedIn")
            }
            Ok(_) => continue,
            Err(error) => Check::problem(SIGN_INS, name, error.to_string(), login),
        };
        checks.push(check);
    }
    checks
}

fn rounded(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ 0..10_000 => format!("{milliseconds} ms"),
        milliseconds => format!("{} s", milliseconds / 1_000),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}
