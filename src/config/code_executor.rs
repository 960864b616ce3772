//! The settings of code-executor-mcp: its file and its variables. `docs/other-programs.md` has the
//! same table for users.

mod access;
mod sampling;

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use super::document::Node;
use super::error::Finding;
use super::foreign::{Becomes, Foreign, Program, always, is_off, is_on, limit, never, setting};
use super::limits::LimitRole;
use super::parsed::Settings;
use super::reader::At;
use crate::llm::FilterMode;
use crate::rate::RateLimit;
use crate::tools::policy::is_pattern;

/// The program's own maximum for its pool of calls.
const MAX_POOL: u64 = 1_000;

/// The program's own maximum for the time in its queue.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(5 * 60);

/// Runs of a client in a minute if the program's rate limit does not set them: the program's own default.
const DEFAULT_RUNS: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// The program's own maximum for the period in which runs are counted.
const MAX_RATE_PERIOD: Duration = Duration::from_secs(60 * 60);

/// The key of a provider.
macro_rules! api_key {
    ($provider:literal) => {
        Becomes::Key("llm.apiKey", |at, settings| sampling::api_key($provider, at, settings))
    };
}

/// The models of a provider.
macro_rules! models_of {
    ($provider:literal) => {
        Becomes::Key("llm.allowedModels", |at, settings| sampling::models_of($provider, at, settings))
    };
}

/// The file `.code-executor.json`.
pub(super) static FILE: Program = Program {
    name: "code-executor-mcp",
    settings: &[
        setting("version", Becomes::Nothing(always)),
        setting("mcpConfigPath", Becomes::Key("mcpServers", servers_file)),
        setting("security.defaultTimeoutMs", DEFAULT_TIMEOUT),
        setting(
            "security.maxTimeoutMs",
            Becomes::Key("maxLimits.timeoutMs", |at, settings| {
                limit(at, "timeoutMs", LimitRole::Max, settings)
            }),
        ),
        setting(
            "security.maxCodeSize",
            Becomes::Key("limits.maxSourceBytes", |at, settings| {
                limit(at, "maxSourceBytes", LimitRole::Both, settings)
            }),
        ),
        setting("security.allowedTools", Becomes::Key("allow", allowed_tools)),
        setting("security.allowRead", Becomes::Key("grants.read", access::read)),
        setting("security.allowWrite", Becomes::Key("grants.write", access::write)),
        setting("security.allowNetwork", Becomes::Key("grants.net", access::hosts)),
        setting("security.enableAuditLog", AUDIT_ENABLED),
        setting("security.auditLogPath", AUDIT_PATH),
        setting("security.rateLimit", Becomes::Key("clientRate", client_rate)),
        setting("security.skipDangerousPatternCheck", Becomes::Nothing(is_on)),
        setting("executors.typescript.enabled", Becomes::Nothing(is_on)),
        setting("executors.typescript.denoPath", Becomes::Nothing(never)),
        setting("executors.python.enabled", Becomes::Nothing(is_on)),
        setting("executors.python.pythonPath", Becomes::Nothing(never)),
        setting("executors.python.version", Becomes::Nothing(never)),
        setting("sampling.enabled", LLM_ENABLED),
        setting("sampling.maxRoundsPerExecution", LLM_ROUNDS),
        setting("sampling.maxTokensPerExecution", LLM_TOKENS),
        setting("sampling.timeoutPerCallMs", LLM_CALL_TIMEOUT),
        setting("sampling.allowedSystemPrompts", LLM_SYSTEM_PROMPTS),
        setting("sampling.contentFilteringEnabled", LLM_CONTENT_FILTER),
        setting("sampling.allowedModels", LLM_MODELS),
        setting("sampling.provider", LLM_PROVIDER),
        setting("sampling.baseUrl", LLM_URL),
        setting("sampling.apiKeys.anthropic", api_key!("anthropic")),
        setting("sampling.apiKeys.openai", api_key!("openai")),
        setting("sampling.apiKeys.gemini", api_key!("gemini")),
        setting("sampling.apiKeys.grok", api_key!("grok")),
        setting("sampling.apiKeys.perplexity", api_key!("perplexity")),
    ],
    finish,
};

/// Its variables, except `CODE_EXECUTOR_CONFIG_PATH` and `MCP_CONFIG_PATH`, which name files, and
/// the keys of language models, which belong to no program.
pub(super) static VARIABLES: Program = Program {
    name: "code-executor-mcp",
    settings: &[
        setting("CODE_EXECUTOR_TIMEOUT_MS", DEFAULT_TIMEOUT),
        setting(
            "POOL_MAX_CONCURRENT",
            Becomes::Key("mcpServers.*.maxConcurrent", |at, settings| {
                settings.server_defaults.max_concurrent = Some(calls(at)?);
                Ok(())
            }),
        ),
        setting(
            "POOL_QUEUE_SIZE",
            Becomes::Key("mcpServers.*.maxQueued", |at, settings| {
                settings.server_defaults.max_queued = Some(calls(at)?);
                Ok(())
            }),
        ),
        setting(
            "POOL_QUEUE_TIMEOUT_MS",
            Becomes::Key("mcpServers.*.queueTimeoutMs", |at, settings| {
                settings.server_defaults.queue_timeout = Some(at.milliseconds(MAX_QUEUE_TIME)?);
                Ok(())
            }),
        ),
        setting("ALLOWED_PROJECTS", Becomes::Key("grants.read", access::projects)),
        setting("ENABLE_AUDIT_LOG", AUDIT_ENABLED),
        setting("AUDIT_LOG_PATH", AUDIT_PATH),
        setting("CODE_EXECUTOR_AUDIT_LOG_PATH", AUDIT_PATH),
        setting("AUDIT_LOG_RETENTION_DAYS", Becomes::Key("audit.retentionDays", access::audit_days)),
        setting(
            "CODE_EXECUTOR_RATE_LIMIT_RPM",
            Becomes::Key("clientRate", |at, settings| {
                settings.client_rate = runs(at)?.map(RateLimit::per_minute);
                Ok(())
            }),
        ),
        setting("CODE_EXECUTOR_SCHEMA_CACHE_TTL_MS", Becomes::Nothing(never)),
        setting("CODE_EXECUTOR_SKIP_DANGEROUS_PATTERNS", Becomes::Nothing(is_on)),
        setting("DENO_PATH", Becomes::Nothing(never)),
        setting("PYTHON_PATH", Becomes::Nothing(never)),
        setting("PYTHON_ENABLED", Becomes::Nothing(is_on)),
        setting("PYTHON_SANDBOX_READY", Becomes::Nothing(is_on)),
        setting("ENABLE_HEALTH_CHECK", Becomes::Nothing(is_off)),
        setting("HEALTH_CHECK_HOST", Becomes::Nothing(never)),
        setting("HEALTH_CHECK_PORT", Becomes::Nothing(never)),
        setting("CODE_EXECUTOR_SAMPLING_ENABLED", LLM_ENABLED),
        setting("CODE_EXECUTOR_MAX_SAMPLING_ROUNDS", LLM_ROUNDS),
        setting("CODE_EXECUTOR_MAX_SAMPLING_TOKENS", LLM_TOKENS),
        setting("CODE_EXECUTOR_SAMPLING_TIMEOUT_MS", LLM_CALL_TIMEOUT),
        setting("CODE_EXECUTOR_ALLOWED_SYSTEM_PROMPTS", LLM_SYSTEM_PROMPTS),
        setting("CODE_EXECUTOR_CONTENT_FILTERING_ENABLED", LLM_CONTENT_FILTER),
        setting("CODE_EXECUTOR_AI_PROVIDER", LLM_PROVIDER),
        setting("CODE_EXECUTOR_AI_BASE_URL", LLM_URL),
        setting("CODE_EXECUTOR_ALLOWED_MODELS", LLM_MODELS),
        setting("CODE_EXECUTOR_ALLOWED_MODELS_ANTHROPIC", models_of!("anthropic")),
        setting("CODE_EXECUTOR_ALLOWED_MODELS_OPENAI", models_of!("openai")),
        setting("CODE_EXECUTOR_ALLOWED_MODELS_GEMINI", models_of!("gemini")),
        setting("CODE_EXECUTOR_ALLOWED_MODELS_GROK", models_of!("grok")),
        setting("CODE_EXECUTOR_ALLOWED_MODELS_PERPLEXITY", models_of!("perplexity")),
    ],
    finish,
};

const AUDIT_ENABLED: Becomes = Becomes::Key("audit.enabled", access::audit_enabled);

const AUDIT_PATH: Becomes = Becomes::Key("audit.directory", access::audit_path);

const DEFAULT_TIMEOUT: Becomes =
    Becomes::Key("limits.timeoutMs", |at, settings| limit(at, "timeoutMs", LimitRole::Default, settings));

const LLM_ENABLED: Becomes = Becomes::Key("llm.enabled", |at, settings| settings.llm.set("enabled", at));

const LLM_ROUNDS: Becomes = Becomes::Key("llm.rounds", |at, settings| settings.llm.set("rounds", at));

const LLM_TOKENS: Becomes = Becomes::Key("llm.tokens", |at, settings| settings.llm.set("tokens", at));

const LLM_CALL_TIMEOUT: Becomes =
    Becomes::Key("llm.callTimeoutMs", |at, settings| settings.llm.set("callTimeoutMs", at));

const LLM_SYSTEM_PROMPTS: Becomes = Becomes::Key("llm.allowedSystemPrompts", sampling::system_prompts);

const LLM_MODELS: Becomes = Becomes::Key("llm.allowedModels", sampling::models);

const LLM_PROVIDER: Becomes = Becomes::Key("llm.provider", sampling::provider);

const LLM_URL: Becomes = Becomes::Key("llm.url", sampling::base_url);

const LLM_CONTENT_FILTER: Becomes = Becomes::Key("llm.contentFilter", content_filter);

/// Whether the program looks for its file at this path.
pub(super) fn is_its_path(path: &Path) -> bool {
    path.ends_with(".code-executor.json") || path.ends_with("code-executor/config.json")
}

/// Whether the file contains the program's settings, and not only cx's own.
pub(super) fn is_its_content(root: &Node) -> bool {
    let mut sections = FILE.settings.iter().filter_map(|setting| setting.name.split('.').next());
    sections.any(|section| root.get(section).is_some())
}

/// Resolves settings that depend on several keys.
fn finish(settings: &mut Settings, foreign: &mut Foreign) {
    access::finish(settings, foreign);
    sampling::finish(settings, foreign);
}

fn servers_file(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.servers_file = Some(at.text()?);
    Ok(())
}

/// The program's filter supports only replacement.
fn content_filter(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.llm.set_content_filter(if at.boolean()? { FilterMode::Redact } else { FilterMode::Off });
    Ok(())
}

/// `{enabled, maxRequests, windowMs}`, with the program's defaults: 30 in a minute.
fn client_rate(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let member = |name: &str| {
        let node = at.node.get(name)?;
        Some(At { key: at.key.child(name), node })
    };
    at.object()?;
    let is_enabled = member("enabled").map(|at| at.boolean()).transpose()?.unwrap_or(true);
    let calls = member("maxRequests").map(|at| runs(&at)).transpose()?.flatten();
    let period = member("windowMs").map(|at| at.milliseconds(MAX_RATE_PERIOD)).transpose()?;
    if is_enabled {
        let minute = RateLimit::per_minute(calls.unwrap_or(DEFAULT_RUNS));
        settings.client_rate = Some(RateLimit { period: period.unwrap_or(minute.period), ..minute });
    }
    Ok(())
}

/// A number of runs; 0 means no limit.
fn runs(at: &At<'_>) -> Result<Option<NonZeroU32>, Finding> {
    let runs = at.number(0, 1_000_000, "runs")?;
    Ok(u32::try_from(runs).ok().and_then(NonZeroU32::new))
}

/// An empty list allows the patterns that a call requests, as in the program itself. A pattern that cannot be parsed
/// allows nothing.
fn allowed_tools(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let (patterns, others): (Vec<_>, Vec<_>) =
        at.texts()?.into_iter().partition(|text| is_pattern(&text.raw));
    if patterns.is_empty() && others.is_empty() {
        return Ok(());
    }
    settings.allow = Some(patterns.into_iter().map(|text| text.raw).collect());
    match others.into_iter().next() {
        None => Ok(()),
        Some(other) => {
            let expected = "a pattern `mcp__server__tool` or `server.tool`";
            Err(Finding::unexpected(&other.key, other.location, expected, "another text"))
        }
    }
}

fn calls(at: &At<'_>) -> Result<usize, Finding> {
    Ok(usize::try_from(at.number(1, MAX_POOL, "calls")?).unwrap_or(usize::MAX))
}
