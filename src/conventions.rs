//! Names of OpenTelemetry's semantic conventions for generative AI and the Model Context Protocol,
//! and the names of cx's own spans and attributes. The names of cx's own metrics are literals where
//! they are counted; `src/server/metrics.rs` describes each.
//!
//! From <https://github.com/open-telemetry/semantic-conventions-genai>: `docs/gen-ai/mcp.md` at commit
//! `1e01e830ef3c17b939ab7db8d25c7061e4239c0b`, `docs/gen-ai/gen-ai-spans.md` at commit
//! `002c8a6ea1c8a42b14a4527db83b3cabcded610a`, and `docs/gen-ai/gen-ai-metrics.md` at commit
//! `004902b8cb70aa5ae6ca4ae07132b7daabcd3e10`.
//! Their status is Development: names will change, and an upgrade changes this file, the commits above,
//! the table in `docs/observability.md` and those in `tests/it/server/conventions.rs`. Tests compare both
//! with what is exported.

/// The instrumentation scope.
pub(crate) const SCOPE: &str = "cx";

// Attributes of the conventions.
pub(crate) const MCP_METHOD_NAME: &str = "mcp.method.name";
pub(crate) const MCP_PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub(crate) const MCP_SESSION_ID: &str = "mcp.session.id";
pub(crate) const JSONRPC_REQUEST_ID: &str = "jsonrpc.request.id";
pub(crate) const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const GEN_AI_TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const GEN_AI_PROMPT_NAME: &str = "gen_ai.prompt.name";
pub(crate) const MCP_RESOURCE_URI: &str = "mcp.resource.uri";
pub(crate) const GEN_AI_TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const GEN_AI_TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(crate) const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const GEN_AI_REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(crate) const GEN_AI_RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const GEN_AI_TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const RPC_RESPONSE_STATUS_CODE: &str = "rpc.response.status_code";
pub(crate) const NETWORK_TRANSPORT: &str = "network.transport";
pub(crate) const NETWORK_PROTOCOL_NAME: &str = "network.protocol.name";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

/// The value of `gen_ai.provider.name` for a provider that results call `name`. Other names are the
/// embedder's own.
pub(crate) fn gen_ai_provider(name: &str) -> &str {
    match name {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        other => other,
    }
}

// Values of the conventions.
/// Method of a call, and the start of its span's name.
pub(crate) const TOOLS_CALL: &str = "tools/call";
/// Operation of a tool call.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
/// Operation of a request to a language model, and the start of its span's name.
pub(crate) const CHAT: &str = "chat";
/// `error.type` of a result with `isError`.
pub(crate) const TOOL_ERROR: &str = "tool_error";
/// `error.type` of errors without a value of their own.
pub(crate) const OTHER_ERROR: &str = "_OTHER";

/// `error.type` in metrics of a request that was answered with this JSON-RPC error. A server chooses its
/// codes, and each value is another time series: those of JSON-RPC and of MCP have a value of their own.
pub(crate) const fn json_rpc_error_type(code: i32) -> &'static str {
    match code {
        -32_700 => "-32700",
        -32_600 => "-32600",
        -32_601 => "-32601",
        -32_602 => "-32602",
        -32_603 => "-32603",
        -32_000 => "-32000",
        -32_001 => "-32001",
        -32_002 => "-32002",
        -32_042 => "-32042",
        _ => OTHER_ERROR,
    }
}

/// `network.transport` of pipes.
pub(crate) const PIPE: &str = "pipe";
/// `network.transport` of HTTP.
pub(crate) const TCP: &str = "tcp";

// cx's own.
/// Method of a run over REST, and the name of its span.
#[cfg(feature = "http")]
pub(crate) const REST_RUN: &str = "POST /v1/runs";
/// Name of the span of a run.
pub(crate) const RUN_SPAN: &str = "cx.run";
pub(crate) const CX_RUN_ID: &str = "cx.run.id";
pub(crate) const CX_RUN_LANGUAGE: &str = "cx.run.language";
pub(crate) const CX_RUN_SOURCE_SHA256: &str = "cx.run.source.sha256";
pub(crate) const CX_RUN_CPU_TIME: &str = "cx.run.cpu_time";
pub(crate) const CX_RUN_QUEUE_TIME: &str = "cx.run.queue_time";
pub(crate) const CX_RUN_MEMORY: &str = "cx.run.memory";
pub(crate) const CX_RUN_TOOL_CALLS: &str = "cx.run.tool_calls";
pub(crate) const CX_RUN_TOOL_RESULT_BYTES: &str = "cx.run.tool_result_bytes";
/// The upstream server's name in the configuration.
pub(crate) const CX_SERVER: &str = "cx.server";

/// How long requests to upstream servers take. Names of these histograms are as Prometheus writes them;
/// [`HISTOGRAMS`] has those of the conventions.
pub(crate) const CLIENT_OPERATION: &str = "mcp_client_operation_duration_seconds";
/// How long requests of clients take.
pub(crate) const SERVER_OPERATION: &str = "mcp_server_operation_duration_seconds";
/// How long connections to upstream servers last.
pub(crate) const CLIENT_SESSION: &str = "mcp_client_session_duration_seconds";
/// How long sessions of clients last.
pub(crate) const SERVER_SESSION: &str = "mcp_server_session_duration_seconds";
/// How long requests to language models take.
pub(crate) const MODEL_OPERATION: &str = "gen_ai_client_operation_duration_seconds";
/// How many tokens they take, as their providers report it.
pub(crate) const MODEL_TOKENS: &str = "gen_ai_client_token_usage";

// Labels of these histograms.
pub(crate) const LABEL_METHOD: &str = "mcp_method_name";
pub(crate) const LABEL_ERROR: &str = "error_type";
pub(crate) const LABEL_TRANSPORT: &str = "network_transport";
pub(crate) const LABEL_OPERATION: &str = "gen_ai_operation_name";
pub(crate) const LABEL_PROVIDER: &str = "gen_ai_provider_name";
pub(crate) const LABEL_TOKEN_TYPE: &str = "gen_ai_token_type";

/// Histograms of the conventions: their name there, the name with which they are counted here and on the
/// metrics page, as Prometheus writes it, and the upper bounds of their buckets.
pub(crate) const HISTOGRAMS: [(&str, &str, &[f64]); 6] = [
    ("mcp.client.operation.duration", CLIENT_OPERATION, BUCKETS),
    ("mcp.server.operation.duration", SERVER_OPERATION, BUCKETS),
    ("mcp.client.session.duration", CLIENT_SESSION, BUCKETS),
    ("mcp.server.session.duration", SERVER_SESSION, BUCKETS),
    ("gen_ai.client.operation.duration", MODEL_OPERATION, MODEL_DURATION_BUCKETS),
    ("gen_ai.client.token.usage", MODEL_TOKENS, MODEL_TOKEN_BUCKETS),
];

/// Labels of these histograms on the metrics page, and their names in the conventions.
pub(crate) const LABELS: [(&str, &str); 6] = [
    (LABEL_METHOD, MCP_METHOD_NAME),
    (LABEL_ERROR, ERROR_TYPE),
    (LABEL_TRANSPORT, NETWORK_TRANSPORT),
    (LABEL_OPERATION, GEN_AI_OPERATION_NAME),
    (LABEL_PROVIDER, GEN_AI_PROVIDER_NAME),
    (LABEL_TOKEN_TYPE, GEN_AI_TOKEN_TYPE),
];

/// Upper bounds of the buckets of requests to language models, in seconds.
pub const MODEL_DURATION_BUCKETS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Upper bounds of the buckets of their tokens.
pub const MODEL_TOKEN_BUCKETS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Upper bounds of the buckets of requests and sessions of the protocol, in seconds.
pub const BUCKETS: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{OTHER_ERROR, json_rpc_error_type};

    #[test]
    fn v_496_codes_of_a_server_do_not_make_more_time_series() {
        let types: BTreeSet<_> = (-40_000..40_000).map(json_rpc_error_type).collect();
        assert_eq!(types.len(), 10);
        for code in [i32::MIN, i32::MAX, 0, 404, -32_603 - 1] {
            assert_eq!(json_rpc_error_type(code), OTHER_ERROR, "{code}");
        }
        for code in [-32_700, -32_600, -32_601, -32_602, -32_603, -32_000, -32_001, -32_002, -32_042] {
            assert_eq!(json_rpc_error_type(code), code.to_string());
        }
    }
}
