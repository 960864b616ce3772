//! Approvals that wait for an answer on the page: those of a server that was started with `--approver page`.
//!
//! Each has a random id that refers to one call with the arguments that the page shows. An answer removes it, so that
//! it can be answered only once, and permits only that call.

use std::sync::Arc;
use std::time::Instant;

use cx::server::HttpToken;
use cx::text::{one_line, start_bytes};
use cx::{Approval, ApprovalRequest, BoxFuture};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Maximum number of approvals that wait. Each has up to 64 KiB of arguments; a call beyond it is refused.
const MAX_WAITING: usize = 64;

/// Maximum number of those of one tenant, which leaves places for the others.
const MAX_OF_TENANT: usize = 16;

/// Maximum bytes of a tool's description that are shown.
const MAX_DESCRIPTION: usize = 1_000;

/// The approvals that wait.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Vec<WaitingApproval>>,
}

struct WaitingApproval {
    id: String,
    asked: Instant,
    request: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl Inbox {
    /// Waits for the user's answer. Dropping the future withdraws the question.
    pub(crate) fn ask(self: &Arc<Self>, request: ApprovalRequest) -> BoxFuture<'static, Approval> {
        let inbox = Arc::clone(self);
        Box::pin(async move {
            let Ok((_, id)) = HttpToken::generate() else { return Approval::Unavailable };
            let (answer, answered) = oneshot::channel();
            {
                let mut waiting = inbox.waiting.lock();
                let is_same = |approval: &&WaitingApproval| approval.request.tenant == request.tenant;
                let has_share =
                    request.tenant.is_none() || waiting.iter().filter(is_same).count() < MAX_OF_TENANT;
                if waiting.len() >= MAX_WAITING || !has_share {
                    return Approval::Unavailable;
                }
                waiting.push(WaitingApproval { id: id.clone(), asked: Instant::now(), request, answer });
            }
            // Withdrawn also when the run ends or the timeout passes.
            let _withdrawn = Withdrawal { inbox: &inbox, id: &id };
            answered.await.unwrap_or(Approval::Unavailable)
        })
    }

    /// Answers one. Returns whether it was waiting.
    pub(crate) fn answer(&self, id: &str, approve: bool, reason: Option<String>) -> bool {
        let found = {
            let mut waiting = self.waiting.lock();
            let found = waiting.iter().position(|approval| approval.id == id);
            found.map(|position| waiting.remove(position))
        };
        let Some(approval) = found else { return false };
        let answer = if approve { Approval::Approve } else { Approval::Deny { reason } };
        approval.answer.send(answer).is_ok()
    }

    /// The data that the page shows: the calls with all of their arguments, as other prompts show them.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        let waiting = self.waiting.lock();
        let shown = waiting.iter().map(|approval| {
            let request = &approval.request;
            let description = request.description.as_deref().unwrap_or_default();
            json!({
                "id": approval.id,
                "server": one_line(&request.server),
                "tool": one_line(&request.tool),
                "call": request.call_text(),
                "arguments": request.arguments_text(),
                "reason": one_line(&request.reason.to_string()),
                "script": one_line(&request.script),
                "tenant": request.tenant,
                "description": one_line(start_bytes(description, MAX_DESCRIPTION)),
                "waitedMs": u64::try_from(approval.asked.elapsed().as_millis()).unwrap_or(u64::MAX),
                "timeMs": u64::try_from(request.time.as_millis()).unwrap_or(u64::MAX),
            })
        });
        shown.collect()
    }
}

/// Removes an approval that nothing waits for any longer.
struct Withdrawal<'a> {
    inbox: &'a Inbox,
    id: &'a str,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        self.inbox.waiting.lock().retain(|approval| approval.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use cx::{Executor, ToolCall};

    use super::*;

    /// A request as an executor makes it.
    async fn request() -> ApprovalRequest {
        let (asked, requests) = std::sync::mpsc::channel();
        let approver = move |request: ApprovalRequest| {
            asked.send(request).unwrap();
            std::future::ready(Approval::Unavailable)
        };
        let tool = |_: Value| std::future::ready(Ok::<_, String>(()));
        let builder = Executor::builder().tool("test.tool", Value::Null, tool).ask(["test.tool"]);
        let executor = builder.approver(approver).build().unwrap();
        executor.call(ToolCall::new("test", "tool")).await.unwrap();
        requests.try_recv().unwrap()
    }

    #[tokio::test]
    async fn so_many_approvals_wait() {
        let request = request().await;
        let inbox = Arc::<Inbox>::default();
        // What waits, or the answer that it got at once.
        let ask = |tenant: Option<&str>| {
            let mut request = request.clone();
            request.tenant = tenant.map(str::to_owned);
            let mut question = inbox.ask(request);
            match question.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => Ok(question),
                Poll::Ready(answer) => Err(answer),
            }
        };
        let mut waiting: Vec<_> = (0..MAX_OF_TENANT).map(|_| ask(Some("a"))).collect();
        assert_eq!(ask(Some("a")).err(), Some(Approval::Unavailable));
        waiting.push(ask(Some("b")));
        waiting.extend((waiting.len()..MAX_WAITING).map(|_| ask(None)));
        assert!(waiting.iter().all(Result::is_ok));
        assert_eq!(inbox.to_json().len(), MAX_WAITING);
        for tenant in [Some("b"), None] {
            assert_eq!(ask(tenant).err(), Some(Approval::Unavailable));
        }
        // One that is withdrawn leaves its place.
        drop(waiting.pop());
        assert!(ask(Some("b")).is_ok());
    }
}
