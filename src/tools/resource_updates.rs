//! What a server of tools reports of a resource that somebody has subscribed to.

use tokio::sync::watch;

/// The dispatcher's end of a [subscription](super::ServerRequest::Subscribe) to a resource. The subscriber is told that
/// nothing more will be reported when the last clone of this is dropped, for example with the connection.
#[derive(Clone, Debug)]
pub struct ResourceUpdates(watch::Sender<u64>);

impl ResourceUpdates {
    /// A new subscription, and the subscriber's end of it: the value is marked as changed with each report. Reports
    /// that follow each other before the subscriber looks are one change, so that they take no memory.
    pub(crate) fn channel() -> (Self, watch::Receiver<u64>) {
        let (sender, receiver) = watch::channel(0);
        (Self(sender), receiver)
    }

    /// Reports that the resource may have changed.
    pub fn report(&self) {
        self.0.send_modify(|reports| *reports = reports.wrapping_add(1));
    }

    /// Completes when the subscriber is gone. The subscription is over then.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl PartialEq for ResourceUpdates {
    /// Whether both are of the same subscription.
    fn eq(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}
