//! A bucket of JetStream's key-value store: sealed entries, each of which is replaced if it is still the one that was
//! read.
//!
//! The stream is that of a bucket, so that the tools of NATS show it. It is used as a stream: reads go to its leader,
//! because those of async-nats' own type can be answered by a replica that has not seen the last write.

use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use futures::StreamExt as _;
use tokio::time::timeout;

use super::seal::tenant::TenantKey;
use super::server::{MAX_ANSWER_TIME, NatsServer};

/// How long it may take to list the entries of a bucket.
const MAX_LIST_TIME: Duration = Duration::from_secs(30);

/// Maximum number of entries that are listed, and maximum bytes of their keys. A key of cx has some 80.
const MAX_LISTED: usize = 1_000_000;
const MAX_LISTED_BYTES: usize = 64 << 20;

/// The options with which a bucket is made, if it does not exist. One that exists stays as its operator has made it.
pub(crate) struct BucketOptions {
    pub(crate) name: String,
    pub(crate) description: &'static str,
    pub(crate) max_bytes: i64,
    /// After this time entries are removed; zero: never.
    pub(crate) max_age: Duration,
    /// Whether the oldest entries make space for new ones. Otherwise a full bucket refuses them.
    pub(crate) drops_oldest: bool,
}

/// An entry, or its absence.
#[derive(Default)]
pub(crate) struct BucketEntry {
    pub(crate) value: Option<Vec<u8>>,
    /// 0 if there is none.
    pub(crate) revision: u64,
    /// In seconds since 1970, by the server's clock.
    pub(crate) written_at: i64,
}

/// Why a bucket cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BucketError {
    #[error("the NATS server does not answer")]
    Unanswered,
    #[error("the bucket does not exist")]
    Missing,
    #[error("the bucket is full")]
    Full,
    #[error("the NATS server refuses it: {0}")]
    Refused(String),
    #[error("an entry was not sealed with this key")]
    Forged,
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
}

/// A bucket that is there.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    context: Context,
    stream: Stream,
    key: TenantKey,
    name: String,
    /// The prefix of the subjects of its entries.
    prefix: String,
}

impl Bucket {
    /// Opens the bucket, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// Why that was not possible.
    pub(crate) async fn open(
        server: &NatsServer,
        key: &TenantKey,
        options: BucketOptions,
    ) -> Result<Self, BucketError> {
        let mut context: Context = jetstream::new(server.client.clone());
        context.set_timeout(MAX_ANSWER_TIME);
        let BucketOptions { name, description, max_bytes, max_age, drops_oldest } = options;
        let prefix = format!("$KV.{name}.");
        let stream = context.get_or_create_stream(Config {
            name: format!("KV_{name}"),
            description: Some(description.to_owned()),
            subjects: vec![format!("{prefix}>")],
            max_messages_per_subject: 1,
            storage: StorageType::File,
            max_bytes,
            max_age,
            discard: if drops_oldest { DiscardPolicy::Old } else { DiscardPolicy::New },
            allow_rollup: true,
            ..Config::default()
        });
        let stream = timeout(2 * MAX_ANSWER_TIME, stream).await.map_err(|_late| BucketError::Unanswered)?;
        let stream = stream.map_err(|error| BucketError::Refused(error.to_string()))?;
        Ok(Self { context, stream, key: key.clone(), name, prefix })
    }

    /// The name by which an entry is sealed, so that it is none of another key or bucket.
    fn sealed_name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(crate) async fn get(&self, key: &str) -> Result<BucketEntry, BucketError> {
        let subject = format!("{}{key}", self.prefix);
        let message = timeout(MAX_ANSWER_TIME, self.stream.get_last_raw_message_by_subject(&subject)).await;
        let message = match message.map_err(|_late| BucketError::Unanswered)? {
            Ok(message) => message,
            Err(error) => {
                return match error.kind() {
                    LastRawMessageErrorKind::NoMessageFound => Ok(BucketEntry::default()),
                    LastRawMessageErrorKind::JetStream(error) => Err(refused(&error)),
                    // A request without an answer.
                    _ => Err(BucketError::Unanswered),
                };
            }
        };
        let (revision, written_at) = (message.sequence, message.time.unix_timestamp());
        // An entry that a person has deleted with the tools of NATS leaves an empty message.
        if message.payload.is_empty() {
            return Ok(BucketEntry { value: None, revision, written_at });
        }
        let value = self.key.open(&self.sealed_name(key), &message.payload).ok_or(BucketError::Forged)?;
        Ok(BucketEntry { value: Some(value), revision, written_at })
    }

    /// Returns whether the entry was stored: `false` if the current one has another revision than `expected`.
    pub(crate) async fn put(
        &self,
        key: &str,
        value: &[u8],
        expected: Option<u64>,
    ) -> Result<bool, BucketError> {
        let sealed = self.key.seal(&self.sealed_name(key), value).ok_or(BucketError::NoRandomNumbers)?;
        let mut message = PublishMessage::build().payload(sealed.into());
        if let Some(expected) = expected {
            message = message.expected_last_subject_sequence(expected);
        }
        let publishing = async {
            let sent = self.context.send_publish(format!("{}{key}", self.prefix), message).await?;
            sent.await
        };
        match timeout(MAX_ANSWER_TIME, publishing).await.map_err(|_late| BucketError::Unanswered)? {
            Ok(_stored) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(publish_error(&error)),
        }
    }

    /// Removes the entries whose keys match: `*` stands for a part of a key. With `revision` only those that are not
    /// newer.
    pub(crate) async fn remove(&self, pattern: &str, revision: Option<u64>) -> Result<(), BucketError> {
        let purge = self.stream.purge().filter(format!("{}{pattern}", self.prefix));
        let purged = match revision {
            // All entries before this sequence number.
            Some(revision) => {
                timeout(MAX_ANSWER_TIME, purge.sequence(revision.saturating_add(1)).into_future()).await
            }
            None => timeout(MAX_ANSWER_TIME, purge.into_future()).await,
        };
        let purged = purged.map_err(|_late| BucketError::Unanswered)?;
        purged.map(drop).map_err(|error| BucketError::Refused(error.to_string()))
    }

    /// The keys of all entries, and when the last one was written.
    pub(crate) async fn keys(&self) -> Result<(Vec<String>, i64), BucketError> {
        let listing = async {
            let failed = |error: &dyn std::error::Error| BucketError::Refused(error.to_string());
            let subjects = self.stream.info_with_subjects(format!("{}>", self.prefix)).await;
            let mut subjects = subjects.map_err(|error| failed(&error))?;
            let newest = subjects.info.state.last_timestamp.unix_timestamp();
            let mut listed = ListedKeys::default();
            while let Some(subject) = subjects.next().await {
                let (subject, _count) = subject.map_err(|error| failed(&error))?;
                if subject.strip_prefix(&self.prefix).is_some_and(|key| !listed.add(key)) {
                    break;
                }
            }
            Ok((listed.keys, newest))
        };
        timeout(MAX_LIST_TIME, listing).await.unwrap_or(Err(BucketError::Unanswered))
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The keys of a listing, within its bounds: whoever may write to the bucket chooses them.
#[derive(Default)]
pub(super) struct ListedKeys {
    pub(super) keys: Vec<String>,
    bytes: usize,
}

impl ListedKeys {
    /// Adds a key. Returns whether there is space for another one.
    pub(super) fn add(&mut self, key: &str) -> bool {
        self.bytes += key.len();
        self.keys.push(key.to_owned());
        self.keys.len() < MAX_LISTED && self.bytes < MAX_LISTED_BYTES
    }
}

fn refused(error: &jetstream::Error) -> BucketError {
    match error.error_code() {
        ErrorCode::STREAM_NOT_FOUND => BucketError::Missing,
        ErrorCode::STREAM_STORE_FAILED | ErrorCode::INSUFFICIENT_RESOURCES => BucketError::Full,
        _ => BucketError::Refused(error.to_string()),
    }
}

fn publish_error(error: &PublishError) -> BucketError {
    match error.kind() {
        PublishErrorKind::StreamNotFound => BucketError::Missing,
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => BucketError::Unanswered,
        _ => {
            let source =
                std::error::Error::source(error).and_then(|error| error.downcast_ref::<jetstream::Error>());
            source.map_or_else(|| BucketError::Refused(error.to_string()), refused)
        }
    }
}
