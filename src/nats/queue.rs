//! The queue of runs: a work queue of JetStream, which holds an offer for each run that waits for a worker.
//!
//! An offer only announces a run. A worker that gets one asks the side that has made it, over the
//! subject of the run, and that side grants the run to the first worker that asks. So an offer that
//! is delivered twice is executed once, one that was withdrawn is never executed, and no record of
//! finished runs is needed.
//!
//! Runs that other runs have called have a queue for each depth. Workers have slots of their own for each, because the
//! runs of a depth keep their slots while they wait for those of the next one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, AckKind, Context, ErrorCode};
use async_nats::{Message, RequestErrorKind, Subject, Subscriber};
use futures::StreamExt as _;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use super::channel::RunChannel;
use super::seal::{Purpose, SharedKey, Side};
use super::server::{MAX_ANSWER_TIME, NatsServer};
use crate::text::ids::random_id;

/// The stream of offers, its consumer and its subject.
const STREAM: &str = "cx-queue";
const CONSUMER: &str = "cx-workers";
const SUBJECT: &str = "cx.queue";

/// The same for runs that other runs have called. Each depth has a consumer and a subject, which end with its number.
const NESTED_STREAM: &str = "cx-nested";
const NESTED_SUBJECT: &str = "cx.nested";

/// The content of an offer and of a claim: the version of this protocol. The offer of a nested run has its depth too.
const VERSION: &[u8] = b"cx run 1";

/// The answers to a claim.
const GRANTED: &[u8] = b"granted";
const REFUSED: &[u8] = b"refused";

/// The message of a worker that cannot read an offer, on the subject of claims. It is not authenticated, and only
/// affects an error message.
const UNREADABLE: &[u8] = b"unreadable";

/// Characters of the id of a run, or of a worker's claim.
const ID: usize = 32;

/// Maximum bytes of an offer, a claim, or the answer to one.
const MAX_BYTES: usize = 256;

/// How long a run waits for a worker.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// How long an offer is kept. It is withdrawn after [`MAX_WAIT`].
const MAX_AGE: Duration = Duration::from_secs(30);

/// An offer that a worker got and has not confirmed after this time goes to another one. A claim takes milliseconds.
const ACK_WAIT: Duration = Duration::from_secs(6);

/// Maximum number of times that an offer is delivered.
const MAX_DELIVER: i64 = 5;

/// The pause before an offer is delivered again whose maker does not answer.
const REDELIVER_AFTER: Duration = Duration::from_secs(1);

/// How long a worker's request for an offer is open. Then it is made again, so that none is forgotten.
const PULL: Duration = Duration::from_secs(30);

/// How many requests of workers may be open at the same time, and how many offers may be unconfirmed: one for each run
/// that all workers together execute.
const MAX_PULLS: i64 = 65_536;

/// How many claims are refused once a run is granted. Others that have arrived get no answer, and their workers ask
/// again later; the NATS server answers those that come afterwards, because there is no subscriber.
const MAX_REFUSED: usize = 64;

/// How the subjects begin to which clients want answers.
const INBOX: &str = "_INBOX.";

/// Why no worker has taken a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferError {
    #[error("the queue is full: all workers are busy and others wait already")]
    Full,
    #[error(
        "there is no queue on the NATS server: no `cx worker` has ever joined it, or it has no JetStream"
    )]
    NoQueue,
    #[error("the NATS server does not answer")]
    Unanswered,
    #[error("the NATS server refuses the run: {0}")]
    Refused(String),
    #[error("no worker has taken the run within {} s: all are busy, or there are none", MAX_WAIT.as_secs())]
    NotTaken,
    #[error("a worker cannot read the run: its key file or its version of cx is another one")]
    Unreadable,
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
    #[error("the keys of the run cannot be derived")]
    NoKeys,
}

/// The subject on which runs are offered that are nested in `depth` others.
fn subject_of_offers(depth: usize) -> String {
    if depth == 0 { SUBJECT.to_owned() } else { format!("{NESTED_SUBJECT}.{depth}") }
}

/// The content of the offers of such runs.
fn text_of_offers(depth: usize) -> Vec<u8> {
    if depth == 0 { VERSION.to_vec() } else { [VERSION, format!(" at {depth}").as_bytes()].concat() }
}

fn subject_of_claims(run: &str) -> String {
    format!("cx.run.{run}.claim")
}

/// The subjects to and from a worker.
fn subjects(run: &str, worker: &str) -> (Subject, Subject) {
    (format!("cx.run.{run}.{worker}.to").into(), format!("cx.run.{run}.{worker}.from").into())
}

/// The id at the start of a message, and the rest.
fn split_id(message: &[u8]) -> Option<(&str, &[u8])> {
    let (id, sealed) = message.split_at_checked(ID).filter(|_| message.len() <= MAX_BYTES)?;
    let is_id = id.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
    Some((std::str::from_utf8(id).ok().filter(|_| is_id)?, sealed))
}

/// Where to answer a message. Its sender names that subject, and the NATS server lets this side publish there: without a
/// check it could be an entry of a bucket, or the queue, to which the sender may not publish.
fn inbox_of(message: &Message) -> Option<&Subject> {
    message.reply.as_ref().filter(|reply| reply.starts_with(INBOX))
}

/// Offers a run that is nested in `depth` others, and returns the channel to the worker that has taken it. Dropping the
/// future withdraws the offer.
///
/// # Errors
///
/// If the queue cannot be used, or no worker has taken the run within [`MAX_WAIT`].
pub(crate) async fn offer(
    server: &NatsServer,
    key: &SharedKey,
    depth: usize,
) -> Result<RunChannel, OfferError> {
    let run = random_id().map_err(|_| OfferError::NoRandomNumbers)?;
    let unanswered = |_| OfferError::Unanswered;
    let claims = timeout(MAX_ANSWER_TIME, server.client.subscribe(subject_of_claims(&run)));
    let claims = claims.await.map_err(unanswered)?;
    let mut claims = claims.map_err(|error| OfferError::Refused(error.to_string()))?;
    let sealed = key.seal(Purpose::Offer, &[&run], &text_of_offers(depth));
    let sealed = sealed.ok_or(OfferError::NoRandomNumbers)?;
    let offer = PublishMessage::build()
        .payload([run.as_bytes(), &sealed].concat().into())
        // If it is sent twice, it is kept once.
        .message_id(&run);
    let mut context = jetstream::new(server.client.clone());
    context.set_timeout(MAX_ANSWER_TIME);
    let published = async {
        let sent = context.send_publish(subject_of_offers(depth), offer).await?;
        sent.await
    };
    let is_unreadable = AtomicBool::new(false);
    let taken = async {
        let claim = take_claim(server, key, &run, &mut claims, &is_unreadable).await;
        // Other workers may still ask: the server answers that there is no subscriber.
        drop(claims);
        claim
    };
    tokio::pin!(published, taken);
    let first = timeout(MAX_WAIT, async {
        tokio::select! {
            channel = &mut taken => return channel,
            published = &mut published => published.map_err(|error| offer_error(&error))?,
        };
        taken.await
    });
    first.await.unwrap_or_else(|_late| {
        Err(if is_unreadable.load(Ordering::Relaxed) { OfferError::Unreadable } else { OfferError::NotTaken })
    })
}

fn offer_error(error: &jetstream::context::PublishError) -> OfferError {
    match error.kind() {
        PublishErrorKind::StreamNotFound => OfferError::NoQueue,
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => OfferError::Unanswered,
        _ => {
            let source =
                std::error::Error::source(error).and_then(|error| error.downcast_ref::<jetstream::Error>());
            match source.map(jetstream::Error::error_code) {
                Some(ErrorCode::STREAM_STORE_FAILED) => OfferError::Full,
                _ => OfferError::Refused(error.to_string()),
            }
        }
    }
}

/// Waits for the first claim, and grants it.
async fn take_claim(
    server: &NatsServer,
    key: &SharedKey,
    run: &str,
    claims: &mut Subscriber,
    is_unreadable: &AtomicBool,
) -> Result<RunChannel, OfferError> {
    loop {
        let Some(message) = claims.next().await else { return Err(OfferError::Unanswered) };
        if message.payload == UNREADABLE {
            is_unreadable.store(true, Ordering::Relaxed);
            continue;
        }
        let Some((worker, sealed)) = split_id(&message.payload) else { continue };
        let Some(reply) = inbox_of(&message) else { continue };
        if key.open(Purpose::Claim, &[run, worker], sealed).is_none_or(|version| version != VERSION) {
            tracing::debug!("a claim of a run is not from a worker with the same key");
            continue;
        }
        let (to, from) = subjects(run, worker);
        let incoming = server.client.subscribe(from.clone()).await;
        let incoming = incoming.map_err(|error| OfferError::Refused(error.to_string()))?;
        let grant = key.seal(Purpose::Grant, &[run, worker], GRANTED).ok_or(OfferError::NoRandomNumbers)?;
        let granted = timeout(MAX_ANSWER_TIME, server.client.publish(reply.clone(), grant.into())).await;
        if !matches!(granted, Ok(Ok(()))) {
            return Err(OfferError::Unanswered);
        }
        refuse_others(server, key, run, claims).await;
        let keys = key.conversation(Side::Executor, run, worker).ok_or(OfferError::NoKeys)?;
        return Ok(RunChannel::new(server.clone(), incoming, (from, to), keys));
    }
}

/// Answers some of the claims that have come already: their workers need not wait.
async fn refuse_others(server: &NatsServer, key: &SharedKey, run: &str, claims: &mut Subscriber) {
    for _ in 0..MAX_REFUSED {
        let Some(Some(message)) = futures::FutureExt::now_or_never(claims.next()) else { return };
        let Some((worker, _)) = split_id(&message.payload) else { continue };
        if let (Some(reply), Some(refused)) =
            (inbox_of(&message), key.seal(Purpose::Grant, &[run, worker], REFUSED))
        {
            let _gone = server.client.publish(reply.clone(), refused.into()).await;
        }
    }
}

/// Why there is no queue to take runs from.
#[derive(Debug, thiserror::Error)]
#[error("the queue (`{STREAM}`, `{NESTED_STREAM}`) of the NATS server cannot be used: {0}")]
pub(crate) struct QueueError(String);

/// The error for a server that does not answer in time.
fn unanswered(_late: Elapsed) -> QueueError {
    QueueError("it does not answer".to_owned())
}

/// The queue of one depth, for a worker.
#[derive(Clone)]
pub(crate) struct Queue {
    server: NatsServer,
    key: SharedKey,
    /// How many runs the offered ones are nested in.
    depth: usize,
    consumer: Consumer<pull::Config>,
    max_queued: u32,
}

impl Queue {
    /// Joins the queues of all depths up to `max_depth`, and returns them in this order. They are made if they are not
    /// there; what is there stays as its operator has made it.
    ///
    /// # Errors
    ///
    /// Why that was not possible.
    pub(crate) async fn join(
        server: &NatsServer,
        key: &SharedKey,
        max_queued: u32,
        max_depth: usize,
    ) -> Result<Vec<Self>, QueueError> {
        let mut queues = Vec::new();
        for depth in 0..=max_depth {
            let consumer = match timeout(3 * MAX_ANSWER_TIME, join(server, depth, max_queued)).await {
                Ok(Ok(consumer)) => consumer,
                Ok(Err(error)) => return Err(QueueError(error.to_string())),
                Err(late) => return Err(unanswered(late)),
            };
            queues.push(Self { server: server.clone(), key: key.clone(), depth, consumer, max_queued });
        }
        Ok(queues)
    }

    /// Whether the connection has ended for good. Connect and join again.
    pub(crate) fn has_ended(&self) -> bool {
        self.server.has_ended()
    }

    /// Makes the queue again if it is not there any more, such as after the server has lost its files.
    pub(crate) async fn restore(&self) {
        // The next request says whether it is there.
        let _failed = timeout(3 * MAX_ANSWER_TIME, join(&self.server, self.depth, self.max_queued)).await;
    }

    /// Waits for an offer. `None` if there was none for a while: ask again.
    ///
    /// # Errors
    ///
    /// If the queue cannot be used any more. Join it again.
    pub(crate) async fn next(&self) -> Result<Option<Offer>, QueueError> {
        let failed = |error: &dyn std::error::Error| QueueError(error.to_string());
        let pulling = async {
            let batch = self.consumer.batch().max_messages(1).expires(PULL).messages().await;
            let mut batch = batch.map_err(|error| failed(&error))?;
            batch.next().await.transpose().map_err(|error| QueueError(error.to_string()))
        };
        tokio::select! {
            offer = timeout(PULL + MAX_ANSWER_TIME, pulling) => {
                // A request that was not answered at all is made again.
                let message = offer.unwrap_or(Ok(None))?;
                Ok(message.map(|message| Offer { queue: self.clone(), message }))
            }
            // The server that had the request may have forgotten it.
            () = self.server.reconnected() => Ok(None),
        }
    }

    /// How many offers wait for a worker.
    ///
    /// # Errors
    ///
    /// If the server does not say it.
    pub(crate) async fn waiting(&self) -> Result<u64, QueueError> {
        let mut consumer = self.consumer.clone();
        let info = timeout(MAX_ANSWER_TIME, consumer.info()).await;
        let info = info.map_err(unanswered)?;
        Ok(info.map_err(|error| QueueError(error.to_string()))?.num_pending)
    }
}

async fn join(
    server: &NatsServer,
    depth: usize,
    max_queued: u32,
) -> Result<Consumer<pull::Config>, async_nats::Error> {
    let mut context: Context = jetstream::new(server.client.clone());
    context.set_timeout(MAX_ANSWER_TIME);
    let max_queued = i64::from(max_queued);
    let of_this_depth = match depth {
        0 => Config {
            name: STREAM.to_owned(),
            description: Some("Runs of cx that wait for a worker".to_owned()),
            subjects: vec![SUBJECT.to_owned()],
            max_messages: max_queued,
            ..Config::default()
        },
        // One stream for all depths, with a bound for each.
        _ => Config {
            name: NESTED_STREAM.to_owned(),
            description: Some("Runs of cx that other runs have called, and wait for a worker".to_owned()),
            subjects: vec![format!("{NESTED_SUBJECT}.*")],
            max_messages_per_subject: max_queued,
            discard_new_per_subject: true,
            ..Config::default()
        },
    };
    let stream = context.get_or_create_stream(Config {
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_age: MAX_AGE,
        duplicate_window: MAX_AGE,
        max_message_size: i32::try_from(2 * MAX_BYTES).unwrap_or(i32::MAX),
        // A run that finds the queue full is refused; no other one is dropped for it.
        discard: DiscardPolicy::New,
        ..of_this_depth
    });
    let (name, filter_subject) = match depth {
        0 => (CONSUMER.to_owned(), String::new()),
        _ => (format!("{NESTED_STREAM}-{depth}"), subject_of_offers(depth)),
    };
    let consumer = pull::Config {
        durable_name: Some(name.clone()),
        filter_subject,
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_deliver: MAX_DELIVER,
        max_waiting: MAX_PULLS,
        max_ack_pending: MAX_PULLS,
        ..pull::Config::default()
    };
    Ok(stream.await?.get_or_create_consumer(&name, consumer).await?)
}

/// An offer that was delivered to this worker.
pub(crate) struct Offer {
    queue: Queue,
    message: jetstream::Message,
}

impl Offer {
    /// Asks for the run. `None` if another worker has it, or it was withdrawn.
    ///
    /// # Errors
    ///
    /// What is wrong with the offer or the answer.
    pub(crate) async fn claim(self) -> Result<Option<RunChannel>, QueueError> {
        let Queue { server, key, depth, .. } = &self.queue;
        let claimed = claim(server, key, *depth, &self.message.message).await;
        let kind = match &claimed {
            // From here on the side that has offered the run is responsible for it.
            Ok(Claimed::Granted(_)) => AckKind::Ack,
            Ok(Claimed::Refused) => AckKind::Term,
            // Another worker may have the key that it needs.
            Ok(Claimed::Unanswered) | Err(_) => AckKind::Nak(Some(REDELIVER_AFTER)),
        };
        let confirmed = timeout(MAX_ANSWER_TIME, self.message.ack_with(kind)).await;
        if !matches!(confirmed, Ok(Ok(()))) {
            // It is delivered again, and refused.
            tracing::debug!(?confirmed, "an offer was not confirmed");
        }
        match claimed? {
            Claimed::Granted(channel) => Ok(Some(*channel)),
            Claimed::Refused | Claimed::Unanswered => Ok(None),
        }
    }
}

/// The outcome of a claim.
pub(super) enum Claimed {
    Granted(Box<RunChannel>),
    Refused,
    Unanswered,
}

/// Asks for the run of an offer, which is one of the queue of `depth`.
///
/// # Errors
///
/// What is wrong with the offer or the answer.
pub(super) async fn claim(
    server: &NatsServer,
    key: &SharedKey,
    depth: usize,
    message: &Message,
) -> Result<Claimed, QueueError> {
    let forged = || {
        QueueError("a message in it is not a run, or is from another key file or version of cx".to_owned())
    };
    let failed = |error: &dyn std::error::Error| QueueError(error.to_string());
    let no_random_numbers = || QueueError("the system provides no random numbers".to_owned());
    let (run, sealed) = split_id(&message.payload).ok_or_else(forged)?;
    if key.open(Purpose::Offer, &[run], sealed).is_none_or(|text| text != text_of_offers(depth)) {
        let told = server.client.publish(subject_of_claims(run), UNREADABLE.into());
        let _late_or_gone = timeout(MAX_ANSWER_TIME, told).await;
        return Err(forged());
    }
    let worker = random_id().map_err(|_| no_random_numbers())?;
    let (to, from) = subjects(run, &worker);
    let incoming = timeout(MAX_ANSWER_TIME, server.client.subscribe(to.clone())).await;
    let incoming = incoming.map_err(unanswered)?.map_err(|error| failed(&error))?;
    let sealed = key.seal(Purpose::Claim, &[run, &worker], VERSION).ok_or_else(no_random_numbers)?;
    let claim = [worker.as_bytes(), &sealed].concat();
    let no_keys = || QueueError("the keys of the run cannot be derived".to_owned());
    let keys = key.conversation(Side::Worker, run, &worker).ok_or_else(no_keys)?;
    let mut channel = RunChannel::new(server.clone(), incoming, (to, from), keys);
    let began = Instant::now();
    let answer = channel.hear_until(server.client.request(subject_of_claims(run), claim.into()));
    let answer = match answer.await {
        Ok(answer) => answer,
        // The other side may only have lost its server for a moment.
        Err(error) if error.kind() == RequestErrorKind::NoResponders => return Ok(Claimed::Unanswered),
        Err(error) => {
            tracing::info!(%error, waited = ?began.elapsed(), "the side that has offered a run does not answer");
            return Ok(Claimed::Unanswered);
        }
    };
    let opened = (answer.payload.len() <= MAX_BYTES)
        .then(|| key.open(Purpose::Grant, &[run, &worker], &answer.payload));
    match opened.flatten().as_deref() {
        Some(GRANTED) => Ok(Claimed::Granted(Box::new(channel))),
        Some(_) => Ok(Claimed::Refused),
        None => Err(forged()),
    }
}

/// A pause after a failure, longer after each one in a row.
pub(crate) async fn pause_after(failures: u32) {
    const FIRST: Duration = Duration::from_millis(200);
    const MAX: Duration = Duration::from_secs(10);
    sleep(FIRST.saturating_mul(1 << failures.min(8)).min(MAX)).await;
}
