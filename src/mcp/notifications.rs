//! Messages that a server sends on its own: changes of its lists, the progress of calls, and its questions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rmcp::model::{ClientConfig, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use super::followed::FollowedResources;
use super::questions::Questions;
use crate::text::start_bytes;
use crate::tools::{Progress, ProgressListener};

/// Maximum bytes of a progress message that is passed on.
const MESSAGE_BYTES: usize = 1024;

/// The notifications of one connection. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Notifications {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    tool_changes: AtomicU64,
    /// The server's count of changes over all its connections.
    generation: Arc<AtomicU64>,
    listeners: Mutex<HashMap<ProgressToken, ProgressListener>>,
    questions: Arc<Questions>,
    followed: FollowedResources,
}

impl Notifications {
    /// Notifications of a new connection of a server, whose `generation` grows with every change.
    pub(crate) fn new(generation: Arc<AtomicU64>, questions: Arc<Questions>) -> Self {
        Self { inner: Arc::new(Inner { generation, questions, ..Inner::default() }) }
    }

    /// The server's questions.
    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.inner.questions
    }

    /// The subscriptions to the server's resources.
    pub(crate) fn followed(&self) -> &FollowedResources {
        &self.inner.followed
    }

    /// Number of times that the server has announced a change of its tools.
    pub(crate) fn tool_changes(&self) -> u64 {
        self.inner.tool_changes.load(Ordering::Acquire)
    }

    /// Records that the server's tools changed.
    pub(crate) fn tools_changed(&self) {
        self.inner.tool_changes.fetch_add(1, Ordering::Release);
        self.inner.generation.fetch_add(1, Ordering::Release);
    }

    /// Records that the connection is over.
    pub(crate) fn connection_lost(&self) {
        self.inner.generation.fetch_add(1, Ordering::Release);
    }

    /// Passes a progress notification to the listener of its call. Dropped if there is none.
    pub(crate) fn progress(&self, notification: ProgressNotificationParam) {
        let listener = self.inner.listeners.lock().get(&notification.progress_token).cloned();
        let Some(listener) = listener else { return };
        let message = notification.message.map(|mut text| {
            text.truncate(start_bytes(&text, MESSAGE_BYTES).len());
            text
        });
        listener(Progress { progress: notification.progress, total: notification.total, message });
    }

    /// Listens to a call's progress until the guard is dropped.
    pub(crate) fn listen(&self, token: ProgressToken, listener: ProgressListener) -> Listening {
        self.inner.listeners.lock().insert(token.clone(), listener);
        Listening { notifications: self.clone(), token }
    }
}

/// Removes a progress listener when it is dropped.
pub(crate) struct Listening {
    notifications: Notifications,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.notifications.inner.listeners.lock().remove(&self.token);
    }
}

/// Declares this client's capabilities to a server: elicitation and roots, if they are on, and no sampling. Over HTTP
/// it also receives notifications; over stdio the transport reads them.
pub(crate) struct NotificationHandler {
    pub(crate) notifications: Notifications,
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            self.notifications.questions().capabilities(true),
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
        )
        // The newest handshake revision. The stateless revision is negotiated without a handshake.
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.tools_changed();
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.notifications.progress(notification);
    }
}
