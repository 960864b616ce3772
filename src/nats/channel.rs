//! Forwards bytes between a local stream and the other side of a conversation, over two subjects of
//! a NATS server.

use std::io;
use std::time::{Duration, Instant};

use async_nats::{Message, StatusCode, Subject, Subscriber};
use futures::StreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::conversation::{Conversation, Heard, MAX_DATA};
use super::seal::ConversationKeys;
use super::server::NatsServer;

/// Interval of heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// A side without a message for this time is dead. A restart of the server, or the change to
/// another server of a cluster, takes less.
const MAX_SILENCE: Duration = Duration::from_secs(10);

/// Maximum heartbeats in a row to which the server answers that there is no subscriber: the other
/// side has no connection and does not reconnect. The server knows immediately that a process has
/// ended.
const MAX_UNHEARD: u32 = 3;

/// How long a message may take to be queued in this process. It takes longer only while there is no server.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(10);

/// How long the other side may take to receive the end of the stream.
const MAX_LINGER: Duration = Duration::from_secs(3);

/// Maximum time to send the message that aborts a conversation. Without it the other side notices
/// the silence.
const MAX_ABORT_TIME: Duration = Duration::from_millis(100);

/// One side of a conversation, with its subjects.
pub(crate) struct RunChannel {
    server: NatsServer,
    incoming: Subscriber,
    /// Where the messages of the other side come from.
    from: Subject,
    to: Subject,
    conversation: Conversation,
    unheard: u32,
    /// How it has ended before anything was passed on.
    early_end: Option<ChannelEnd>,
}

/// What the end of the local stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalEnd {
    /// Everything has been said: the other side gets all of it, and then the end.
    Finish,
    /// The rest is not needed: the other side is told to abort.
    Abort,
}

/// How a conversation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChannelEnd {
    /// One side has sent everything, and the other side has received it.
    #[error("it has ended")]
    Finished,
    /// One side has aborted.
    #[error("the other side has aborted")]
    Aborted,
    /// Nothing was heard of the other side.
    #[error("the other side is silent")]
    Silent,
    /// There is no connection to the server.
    #[error("the connection to the NATS server is lost")]
    NoServer,
    /// A message could not be sealed.
    #[error("a message cannot be encrypted")]
    Unsealed,
}

impl RunChannel {
    pub(super) fn new(
        server: NatsServer,
        incoming: Subscriber,
        subjects: (Subject, Subject),
        keys: ConversationKeys,
    ) -> Self {
        let (from, to) = subjects;
        let conversation = Conversation::new(keys, Instant::now());
        Self { server, incoming, from, to, conversation, unheard: 0, early_end: None }
    }

    /// Waits for something else before bytes are passed on. Messages that come meanwhile are handled as in
    /// [`pass_on`](Self::pass_on), so that they do not collect here: whoever may publish to this side's subject can
    /// send a thousand messages of a megabyte.
    pub(super) async fn hear_until<T>(&mut self, done: impl Future<Output = T>) -> T {
        let mut done = std::pin::pin!(done);
        loop {
            tokio::select! {
                biased;
                result = &mut done => return result,
                Some(message) = self.incoming.next() => {
                    let end = self.hear(&message);
                    self.early_end = self.early_end.or(end);
                }
            }
        }
    }

    /// Whether a message waits that was not handled.
    #[cfg(test)]
    pub(super) fn has_waiting(&mut self) -> bool {
        futures::FutureExt::now_or_never(self.incoming.next()).is_some()
    }

    /// Passes bytes on until one of the sides has ended. If this is dropped before, the other side finds out by itself:
    /// see [`abort`](Self::abort).
    pub(crate) async fn pass_on<S>(&mut self, local: S, on_local_end: LocalEnd) -> ChannelEnd
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if let Some(end) = self.early_end {
            return end;
        }
        let (mut reader, mut writer) = tokio::io::split(local);
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0; MAX_DATA];
        let mut finished_at: Option<Instant> = None;
        loop {
            if let Some(at) = finished_at
                && (self.conversation.is_received() || at.elapsed() > MAX_LINGER)
            {
                return ChannelEnd::Finished;
            }
            if self.conversation.should_tell() {
                let beat = self.conversation.beat();
                if let Some(end) = self.publish(beat).await {
                    return end;
                }
            }
            let space = self.conversation.space();
            let step = {
                let arrived = self.conversation.arrived();
                let has_arrived = arrived.is_some();
                tokio::select! {
                    message = self.incoming.next() => Step::Heard(message),
                    read = reader.read(&mut buffer[..space]), if finished_at.is_none() && space > 0 => {
                        Step::Read(read)
                    }
                    written = deliver(&mut writer, arrived), if has_arrived => Step::Delivered(written),
                    _ = beats.tick() => Step::Beat,
                }
            };
            let end = match step {
                Step::Heard(None) => Some(ChannelEnd::NoServer),
                Step::Heard(Some(message)) => self.hear(&message),
                Step::Read(Ok(count)) if count > 0 => {
                    let message = self.conversation.send(&buffer[..count], Instant::now());
                    self.publish(message).await
                }
                Step::Read(_ended) if on_local_end == LocalEnd::Abort => {
                    self.abort().await;
                    Some(ChannelEnd::Aborted)
                }
                Step::Read(_ended) => {
                    finished_at = Some(Instant::now());
                    let message = self.conversation.send(&[], Instant::now());
                    self.publish(message).await
                }
                Step::Delivered(Ok(Some(count))) => {
                    self.conversation.delivered(count);
                    None
                }
                // The other side has sent everything. It waits for this confirmation.
                Step::Delivered(Ok(None)) => {
                    let beat = self.conversation.beat();
                    let _gone = self.publish(beat).await;
                    self.server.flush(MAX_ABORT_TIME).await;
                    Some(ChannelEnd::Finished)
                }
                // The local reader has gone. `reader` reports it too, if that matters.
                Step::Delivered(Err(_gone)) if on_local_end == LocalEnd::Finish => {
                    self.conversation.delivered(usize::MAX);
                    None
                }
                Step::Delivered(Err(_gone)) => {
                    self.abort().await;
                    Some(ChannelEnd::Aborted)
                }
                Step::Beat => self.beat().await,
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn hear(&mut self, message: &Message) -> Option<ChannelEnd> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            self.unheard += 1;
            return (self.unheard >= MAX_UNHEARD).then_some(ChannelEnd::Silent);
        }
        match self.conversation.hear(&message.payload, Instant::now()) {
            Heard::Alive => {
                self.unheard = 0;
                None
            }
            Heard::Aborted => Some(ChannelEnd::Aborted),
            Heard::Refused => {
                tracing::debug!(
                    "a message on the subject of a run is not from its other side, or an old one"
                );
                None
            }
        }
    }

    async fn beat(&mut self) -> Option<ChannelEnd> {
        let now = Instant::now();
        if self.conversation.silence(now) > MAX_SILENCE {
            return Some(ChannelEnd::Silent);
        }
        for message in self.conversation.resend(now) {
            if let Some(end) = self.publish(message).await {
                return Some(end);
            }
        }
        let Some(beat) = self.conversation.beat() else { return Some(ChannelEnd::Unsealed) };
        // The server replies to this side's subject if there is no subscriber.
        let (to, from) = (self.to.clone(), self.from.clone());
        let published = self.server.client.publish_with_reply(to, from, beat.into());
        let published = timeout(MAX_QUEUE_TIME, published).await;
        (!matches!(published, Ok(Ok(())))).then_some(ChannelEnd::NoServer)
    }

    async fn publish(&self, message: Option<Vec<u8>>) -> Option<ChannelEnd> {
        let Some(message) = message else { return Some(ChannelEnd::Unsealed) };
        let published = self.server.client.publish(self.to.clone(), message.into());
        let published = timeout(MAX_QUEUE_TIME, published).await;
        (!matches!(published, Ok(Ok(())))).then_some(ChannelEnd::NoServer)
    }

    /// Tells the other side to abort.
    pub(crate) async fn abort(&mut self) {
        let Some(message) = self.conversation.abort() else { return };
        let aborted = async {
            let _gone = self.server.client.publish(self.to.clone(), message.into()).await;
            let _gone = self.server.client.flush().await;
        };
        let _late = timeout(MAX_ABORT_TIME, aborted).await;
    }
}

enum Step {
    Heard(Option<Message>),
    Read(io::Result<usize>),
    Delivered(io::Result<Option<usize>>),
    Beat,
}

/// Writes some of what has arrived; `None` after the end of it.
async fn deliver<W: AsyncWrite + Unpin>(writer: &mut W, arrived: Option<&[u8]>) -> io::Result<Option<usize>> {
    match arrived {
        Some([]) | None => {
            writer.shutdown().await?;
            Ok(None)
        }
        Some(data) => writer.write(data).await.map(Some),
    }
}
