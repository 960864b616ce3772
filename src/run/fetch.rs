//! A script's calls of `fetch`: grants, counting and recording, redirects, and the responses that
//! are still read.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::json::Json;
use crate::net::call::{FetchCall, FetchRequest, GuestBytes, RedirectMode};
use crate::net::connections::HttpResponse;
use crate::net::request::HttpRequest;
use crate::run::call_terms::guest_duration;
use crate::run::calls::arguments::ExactArguments;
use crate::run::calls::held::HeldCall;
use crate::run::calls::send::{Decided, HostRequest, Permission};
use crate::run::context::ExecutionContext;
use crate::run::errors::denied;
use crate::run::fetches::{Begun, ConnectionPermit};
use crate::run::ledger::Call;
use crate::run::result::PlannedCall;
use crate::text::preview;
use crate::tools::approval::Effects;
use crate::tools::policy::FETCH_SERVER;
use crate::tools::{RemoteServer, ToolError, ToolErrorCode, sample};

/// Maximum number of redirects of one call, as in browsers.
const MAX_REDIRECTS: usize = 20;

/// How long the answer to a request waits for the beginning of the body.
const FIRST_PART: Duration = Duration::from_millis(20);

/// Maximum characters of a request's body in an approval prompt.
const MAX_SHOWN_BODY: usize = 2_000;

/// The bounds of a request, for all of its redirects together.
struct Terms {
    redirect: RedirectMode,
    /// The deadline that the script has set.
    asked_end: Option<Instant>,
}

/// The response that the script receives.
struct Final {
    request: HttpRequest,
    response: HttpResponse,
    is_redirected: bool,
}

impl ExecutionContext {
    /// Whether the run has a `fetch`.
    pub(crate) fn may_fetch(&self) -> bool {
        let is_granted = !self.grants().net.is_empty();
        self.tape().map_or(is_granted, |tape| tape.has_network(is_granted))
    }

    /// Performs a call of `fetch` and returns JSON text. Each request, also one after a redirect, counts as a
    /// tool call. Dropping the future cancels it.
    pub(crate) async fn fetch(self: &Arc<Self>, call: FetchCall) -> Result<String, ToolError> {
        let bytes = call.bytes();
        match call {
            FetchCall::Open(request) => self.open_fetch(*request, bytes).await,
            FetchCall::Read(id) => self.next_part(id).await,
            FetchCall::Close(id) => {
                self.fetches.responses.close(id);
                Ok("null".to_owned())
            }
        }
    }

    async fn open_fetch(self: &Arc<Self>, request: FetchRequest, bytes: usize) -> Result<String, ToolError> {
        let held = self.hold_call(bytes)?;
        let id = request.id;
        let asked_end = request.timeout_ms.map(|time| Instant::now() + guest_duration(time));
        let terms = Terms { redirect: request.redirect, asked_end };
        let begun = self.fetches.responses.begin(id)?;
        let opened = async {
            let request = HttpRequest::prepare(request);
            held.note_failure(&request);
            let request = request?;
            if self.script.is_dry_run {
                return self.plan_fetch(&request);
            }
            let permit = begun.acquire_connection(|| self.ledger.lock().waits_for_tool()).await?;
            let found = self.follow(held, request, &terms).await?;
            answer(&begun, found, permit).await
        };
        let too_late = async {
            match asked_end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = opened => answer,
            () = begun.token.cancelled() => Err(ended()),
            () = too_late => Err(ToolError::new(
                ToolErrorCode::NetTimeout,
                "no response within the time that the script gave the request",
            )),
        }
    }

    /// Sends a request and follows its redirects. Each request is checked, counted and recorded.
    async fn follow(
        self: &Arc<Self>,
        mut held: HeldCall,
        mut request: HttpRequest,
        terms: &Terms,
    ) -> Result<Final, ToolError> {
        let mut redirects = 0;
        loop {
            let sent = self.send_request_to_host(&held, &request, terms).await;
            held.note_failure(&sent);
            let response = sent?;
            if !response.head.is_redirect() || terms.redirect == RedirectMode::Manual {
                return Ok(Final { request, response, is_redirected: redirects > 0 });
            }
            let refused = |problem: String| Err(ToolError::new(ToolErrorCode::NetFailed, problem));
            if terms.redirect == RedirectMode::Error {
                let name = request.origin().name();
                return refused(format!("`{name}` redirects the request, and `redirect` is \"error\""));
            }
            if redirects == MAX_REDIRECTS {
                return refused(format!("more than {MAX_REDIRECTS} redirects, one after the other"));
            }
            redirects += 1;
            request = request.redirected(&response.head)?;
            drop(response);
            held = self.hold_call(request.url.as_str().len() + request.body.len())?;
        }
    }

    /// Sends one request: a call of the server `fetch`, whose tool is the host.
    async fn send_request_to_host(
        &self,
        held: &HeldCall,
        request: &HttpRequest,
        terms: &Terms,
    ) -> Result<HttpResponse, ToolError> {
        let origin = request.origin();
        let name = origin.name();
        let connections = &self.fetches.connections;
        connections.check(&origin).map_err(|error| {
            held.note_rule("grants.net: no host matches".to_owned());
            error.for_tool(FETCH_SERVER, &name)
        })?;
        let host = HostRequest {
            name: &name,
            host: &origin.host,
            remote: RemoteServer::tcp(&origin.host, origin.port),
            effects: match request.method.is_safe() {
                true => Effects::OF_REQUESTS,
                false => Effects::UNKNOWN,
            },
            recorded: object(json!({ "method": request.method.as_str(), "host": name })),
        };
        let mut response = None;
        let send = async || {
            let ends = Instant::now() + connections.times.total;
            let ends = terms.asked_end.map_or(ends, |asked| asked.min(ends));
            let found = connections.send(request, self.limits().result_bytes, ends).await?;
            let status = json!({ "status": found.head.status() });
            response = Some(found);
            Ok(Json::from(status))
        };
        self.send_to_host(held, &host, described(request), send).await?;
        // A hook has answered in place of the host.
        response.ok_or_else(|| {
            ToolError::new(ToolErrorCode::NetDenied, "a hook of the embedder did not let the request go out")
        })
    }

    /// Sends a request of `fetch` to a host that is granted: a call of the server [`FETCH_SERVER`], with
    /// approval if rules ask for it. `shown` is what hooks and approvers see; changes that hooks
    /// make to it have no effect.
    async fn send_to_host(
        &self,
        held: &HeldCall,
        host: &HostRequest<'_>,
        shown: Map<String, Value>,
        send: impl AsyncFnOnce() -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let call = Call { server: FETCH_SERVER, tool: host.name, argument_bytes: held.argument_bytes() };
        let mut names = [host.name, host.host].into_iter();
        if let Some(rule) = names.find_map(|name| in_force.denying_rule(FETCH_SERVER, name)) {
            held.note_rule(rule);
            return Err(denied(FETCH_SERVER, host.name));
        }
        let reason = in_force
            .asks(FETCH_SERVER, host.name, host.effects)
            .or_else(|| in_force.asks(FETCH_SERVER, host.host, host.effects));
        let send = async |shown: Map<String, Value>| {
            let decided =
                Decided { by: in_force, call, tool: None, permission: Permission::Granted, host: Some(host) };
            let shown = ExactArguments { tree: shown, numbers: Vec::new() };
            self.send(held, decided, reason, shown, async |_shown, _trace, _sent| send().await).await
        };
        self.with_hooks(call, shown, send).await
    }

    /// The next part of a body as JSON text.
    async fn next_part(&self, id: u64) -> Result<String, ToolError> {
        let mut reading = self.fetches.responses.read(id)?;
        let token = reading.token();
        let part = tokio::select! {
            biased;
            part = reading.body().part() => part?,
            () = token.cancelled() => return Err(ended()),
        };
        if !part.is_last {
            reading.keep();
        }
        Ok(json!({ "body": GuestBytes::from(&*part.bytes), "done": part.is_last }).to_string())
    }

    /// Records a request that a dry run does not send, and returns a response in its place.
    fn plan_fetch(&self, request: &HttpRequest) -> Result<String, ToolError> {
        let origin = request.origin();
        let name = origin.name();
        self.fetches.connections.check(&origin).map_err(|error| error.for_tool(FETCH_SERVER, &name))?;
        let in_force = self.in_force();
        if [&name, &origin.host].into_iter().any(|name| in_force.denies(FETCH_SERVER, name)) {
            return Err(denied(FETCH_SERVER, &name));
        }
        let planned = PlannedCall {
            server: FETCH_SERVER.to_owned(),
            tool: name,
            arguments: Json::from(Value::Object(described(request))),
        };
        self.ledger.lock().plan(planned);
        let body = json!({ sample::MARK: true }).to_string();
        let answer = json!({
            "status": 200,
            "statusText": "OK",
            "url": request.url.as_str(),
            "redirected": false,
            "headers": [["content-type", "application/json"]],
            "body": GuestBytes::Text(body),
            "done": true,
        });
        Ok(answer.to_string())
    }
}

/// The head of a response, with the beginning of its body, as JSON text.
async fn answer(begun: &Begun<'_>, found: Final, permit: ConnectionPermit) -> Result<String, ToolError> {
    let Final { request, response, is_redirected } = found;
    let HttpResponse { head, mut body } = response;
    let part = body.first(FIRST_PART).await?;
    let answer = json!({
        "status": head.status(),
        "statusText": head.reason(),
        "url": request.url.as_str(),
        "redirected": is_redirected,
        "headers": head.pairs(),
        "body": GuestBytes::from(&*part.bytes),
        "done": part.is_last,
    });
    if !part.is_last {
        begun.keep(body, permit);
    }
    Ok(answer.to_string())
}

/// The arguments that an approver sees of a request, and that a dry run plans.
fn described(request: &HttpRequest) -> Map<String, Value> {
    let mut shown = object(json!({ "method": request.method.as_str(), "url": request.url.as_str() }));
    let headers = request.header_names();
    if !headers.is_empty() {
        shown.insert("headers".to_owned(), json!(headers));
    }
    if !request.body.is_empty() {
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => preview(text, MAX_SHOWN_BODY),
            Err(_) => format!("{} bytes", request.body.len()),
        };
        shown.insert("body".to_owned(), json!(body));
    }
    shown
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The error of a request that the script itself has ended.
fn ended() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "the script has ended the request")
}
