//! The server that agents use, as a process, over stdio and HTTP.

/// Approval by the client: elicitation, and pending input of the stateless revision.
mod approval;
/// Scripts that are not run because they cannot succeed.
mod check;
/// What OpenTelemetry's conventions say of spans and metrics.
mod conventions;
/// The files of `deploy/`.
mod deploy;
/// Tools that are exposed to clients directly, and their user interfaces.
mod direct;
/// The end of a server that lets its last scripts end.
mod drain;
/// Questions of upstream servers, passed on to the client.
mod elicitation;
/// The same over HTTP: its clients, what they see, and how it ends.
mod http;
/// The same over HTTP, with clients that break rules.
mod http_threats;
/// Attacks by number: JSON that takes far more memory when it is parsed.
mod json_memory;
/// Attacks of docs/threats.md, group LD, by number: many runs at once.
mod load;
/// The format of what a server writes to stderr.
mod log_format;
/// The metrics page of a server over stdio, alert rules and the dashboard.
mod metrics;
/// Runs of a queue on a NATS server, and the machines that execute them.
mod nats;
/// NATS servers with TLS, credentials and permissions.
mod nats_access;
/// What front ends share over a NATS server.
mod nats_shared;
/// Scripts that call saved scripts, executed by other machines.
mod nested;
/// The configuration while the server runs.
mod reload;
/// Runs whose scripts are executed by another cx.
mod remote;
/// Runs over plain HTTP, for callers that speak no MCP.
mod rest;
/// The model of the client, in both ways of the protocol.
mod sampling;
/// Skills, and saved scripts by name.
mod skills;
/// State of scripts and the run history, through the server and the command.
mod state;
/// `cx serve` over stdio.
mod stdio;
/// Subscriptions to resources.
mod subscriptions;
/// What a collector of OpenTelemetry receives.
mod telemetry;
/// Several tokens over HTTP, and what is separate for each tenant.
mod tenants;
/// The operator's page of a server with tenants.
mod tenants_page;
/// Attacks of docs/threats.md, group MP, by number.
mod threats;
/// Tokens that are added and revoked while the server serves.
mod tokens;
/// What scripts on other machines tell while they run.
mod told_elsewhere;
/// Runs that go on after their answer, and progress of scripts.
mod wait;
