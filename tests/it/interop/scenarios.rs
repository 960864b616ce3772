//! The scenarios of the official conformance suite: which pass, what the other side is, and why the others do not.

/// Scenarios for a client, with the revision in which each is run: all that the suite requires of clients of revision
/// 2025-11-25 and earlier ones.
pub(super) const CLIENT_2025: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];

/// Scenarios of signing in that both revisions have.
pub(super) const SIGN_IN: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];

/// Extensions, which belong to no revision.
pub(super) const CLIENT_EXTENSIONS: &[&str] = &[
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/wif-jwt-bearer",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

pub(super) const CLIENT_2025_03: &[&str] =
    &["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"];

/// The same for revision 2026-07-28.
pub(super) const CLIENT_2026: &[&str] = &[
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Scenarios for servers that need no tool of the suite's own.
pub(super) const SERVER_2025: &[&str] = &[
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "logging-set-level",
    "completion-complete",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];
pub(super) const SERVER_2026: &[&str] = &[
    "server-stateless",
    "server-sse-multiple-streams",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "input-required-result-unsupported-methods",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
];

/// Extensions: the guide as a skill.
pub(super) const SERVER_EXTENSIONS: &[&str] =
    &["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"];

/// Scenarios for servers with fixtures.
pub(super) const FIXTURES_2025: &[&str] = &[
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
];

/// Tools of an upstream server that clients see directly, in both revisions.
pub(super) const DIRECT: &[&str] = &[
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
];

/// The same, for tools that ask the person or the model during their call, or print, for a resource that changes, and
/// for a stream that could be resumed. The tool of the suite would also cut its stream; `resumption` tests that.
pub(super) const DIRECT_2025: &[&str] = &[
    "server-sse-polling",
    "resources-subscribe",
    "resources-unsubscribe",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "tools-call-sampling",
    "tools-call-with-logging",
];

/// As [`DIRECT_2025`]. Each leaves a run that waits for its answer, so each has its own server.
pub(super) const DIRECT_2026: &[&str] = &[
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-request-state",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-tampered-state",
    "input-required-result-result-type",
    "http-custom-header-server-validation",
];

/// The same with an upstream server of the stateless revision, which names the call for which it asks. A server of an
/// earlier revision does not, so its question is refused while two calls are in flight for which it could be.
///
/// The prompt of `input-required-result-non-tool-request` is got by a script (`mcp.getPrompt`).
pub(super) const DIRECT_STATELESS: &[&str] =
    &["input-required-result-validate-input", "input-required-result-non-tool-request"];

/// Long calls as tasks. Each has its own server, for the same reason.
pub(super) const DIRECT_EXTENSIONS: &[&str] = &[
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-dispatch-and-envelope",
    "tasks-mrtr-composition",
];

/// The saved scripts among the fixtures: cx refuses these requests to an upstream server, and makes them for scripts.
pub(super) const SCRIPTS: &[(&str, &str)] = &[
    (
        "test_tool_with_logging",
        "// ---\n\
         // description: logs three lines\n\
         // ---\n\
         for (const step of ['started', 'processing', 'completed']) {
           console.log(step);
           await new Promise((resolve) => setTimeout(resolve, 50));
         }
         return 'done'",
    ),
    (
        "test_sampling",
        "// ---\n\
         // description: asks the client's language model\n\
         // input: { type: object, properties: { prompt: { type: string } }, required: [prompt] }\n\
         // ---\n\
         return await llm.ask(input.prompt)",
    ),
    (
        "test_reconnection",
        "// ---\n\
         // description: takes a moment\n\
         // ---\n\
         await new Promise((resolve) => setTimeout(resolve, 50)); return 'done'",
    ),
    ("test_input_required_result_sampling", ASKS_FOR_A_CAPITAL),
    ("test_input_required_result_capabilities", ASKS_FOR_A_CAPITAL),
];

const ASKS_FOR_A_CAPITAL: &str = "// ---\n\
    // description: asks the client's language model for a capital\n\
    // ---\n\
    return await llm.ask('What is the capital of France?')";

/// A scenario that passes except for some of its checks.
pub(super) struct HeldInPart {
    pub(super) scenario: &'static str,
    pub(super) version: &'static str,
    /// The ids of the checks that fail.
    pub(super) fails: &'static [&'static str],
    pub(super) reason: &'static str,
}

/// Scenarios of tools that are shown directly.
pub(super) const DIRECT_IN_PART: &[HeldInPart] = &[
    HeldInPart {
        scenario: "tasks-lifecycle",
        version: "",
        fails: &["sep-2663-tasks-get-status-failed"],
        reason: "a JSON-RPC error of an upstream server is the error of its tool, which a model reads, so a task of cx \
                 ends as `completed` with `isError`",
    },
    HeldInPart {
        scenario: "tasks-mrtr-input",
        version: "",
        fails: &["tasks-mrtr-partial-fulfillment"],
        reason: "it wants two questions of one call open at once: a run asks the person one after the other",
    },
];

/// Scenarios that fail, each with the reason.
pub(super) const NOT_HELD: &[(&str, &str)] = &[
    (
        "input-required-result-multiple-input-requests",
        "one result with elicitation, sampling and `roots/list` at once. A question to the person comes alone, so that \
         it is read, and cx never asks its client for roots, as in the next scenario",
    ),
    (
        "input-required-result-basic-list-roots",
        "cx would have to pass a server's `roots/list` on to its client. It answers from the configuration instead \
         (`roots_are_told_as_configured`): which directories a server is told of is the operator's decision, and not \
         that of whoever connects",
    ),
    (
        "input-required-result-ignore-extra-params",
        "its first call has answers and no `requestState`: no question was shown yet, and an answer from before could \
         approve what no user has seen, so cx asks. Other answers beside the right one are ignored: \
         `without_a_handshake_the_question_is_a_result`",
    ),
    (
        "tasks-required-task-error",
        "it wants -32021 for a call of `failing_job` by a client without tasks. SEP-2663 requires that error only of a \
         server that cannot answer without a task, and cx can: it keeps the call open. As a client of servers that \
         cannot, it makes the task itself",
    ),
    (
        "tasks-status-notifications",
        "the suite has no check in it yet: it skips the scenario until it listens to `subscriptions/listen`, whose \
         filter has no field for tasks in the SDK; the notifications are optional, and `tasks/get` says the same",
    ),
    (
        "authorization-server-metadata-endpoint",
        "it fetches the metadata of an authorization server and checks its fields. cx issues no tokens: over HTTP it \
         checks those of `--token-file` and `--tokens-file`, and it signs in to the authorization servers of others",
    ),
    (
        "authorization-code-grant",
        "it has a person sign in at the authorization endpoint of that metadata, and gets a token there; the same",
    ),
];
