//! What a server of tools reports of a resource that somebody has subscribed to.

use std::sync::Arc;

use tokio::sync::watch;

/// The dispatcher's end of a [subscription](super::ServerRequest::Subscribe) to a resource. The subscriber is told that
/// nothing more will be reported when the last clone of this is dropped, for example with the connection.
#[derive(Clone, Debug)]
pub struct ResourceUpdates {
    reports: watch::Sender<u64>,
    owner: Arc<str>,
}

impl ResourceUpdates {
    /// A new subscription of `owner`, and the subscriber's end of it: the value is marked as changed with each report.
    /// Reports that follow each other before the subscriber looks are one change, so that they take no memory.
    pub(crate) fn channel(owner: Arc<str>) -> (Self, watch::Receiver<u64>) {
        let (reports, receiver) = watch::channel(0);
        (Self { reports, owner }, receiver)
    }

    /// Who has subscribed, and has a share of all subscriptions: a tenant, or a client without one.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Reports that the resource may have changed.
    pub fn report(&self) {
        self.reports.send_modify(|reports| *reports = reports.wrapping_add(1));
    }

    /// Completes when the subscriber is gone. The subscription is over then.
    pub async fn closed(&self) {
        self.reports.closed().await;
    }
}

impl PartialEq for ResourceUpdates {
    /// Whether both are of the same subscription.
    fn eq(&self, other: &Self) -> bool {
        self.reports.same_channel(&other.reports)
    }
}
