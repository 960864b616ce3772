//! A process that stands for a worker which has joined a queue on a NATS server. Its executor uses
//! it like a worker of its own. It offers the run, and forwards bytes to the worker that takes it
//! (`nats_lending.rs`).
//!
//! It is a process, and not a task of the executor, because the executor must be able to end a
//! worker by killing it, also when the network hangs.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::engine::process::lost::LostWorker;
use crate::engine::process::refusal::failed;
use crate::engine::process::relay::Relay;
use crate::engine::process::{adopt, end_process_with};
use crate::error::{Error, OptionName};
use crate::nats::channel::{ChannelEnd, LocalEnd, RunChannel};
use crate::nats::queue::offer;
use crate::nats::seal::SharedKey;
use crate::nats::server::{Access, Addresses, NatsServer};
use crate::run::isolation::NatsWorkers;

/// The argument with which a program is started as such a process. The address follows, then the key's file, then
/// those of credentials and of authorities: empty, if there is none.
pub(super) const ARGUMENT: &str = "cx-nats-worker";

/// How many workers a run tries that end before it has had an effect.
const MAX_ATTEMPTS: u32 = 3;

/// Bytes that are passed on at once.
const CHUNK: usize = 64 << 10;

/// Checks what can be checked before there is a run.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the address is not one of a server, or the key cannot be read.
pub(super) fn check(workers: &NatsWorkers) -> Result<(), Error> {
    let invalid = |problem| Error::InvalidOptions { option: OptionName::Isolation, problem };
    Addresses::parse(&workers.url, workers.credentials_file.is_some()).map_err(invalid)?;
    if workers.key_file.as_os_str().is_empty() {
        return Err(invalid("a queue on a NATS server needs a key file (`keyFile`)".to_owned()));
    }
    SharedKey::read(&workers.key_file).map_err(invalid)?;
    Ok(())
}

/// Serves the executor at `socket` for one run.
pub(super) fn run(socket: OwnedFd, mut arguments: impl Iterator<Item = String>) -> ! {
    let (url, key) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let mut file = || arguments.next().filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut workers = NatsWorkers::new(url, key);
    (workers.credentials_file, workers.ca_file) = (file(), file());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut lost = None;
    if let Ok(runtime) = runtime {
        runtime.block_on(async {
            let (Ok(executor), Ok(end)) = (adopt(socket), signal(SignalKind::terminate())) else { return };
            lost = serve(executor, end, &workers).await;
        });
    }
    end_process_with(lost.map_or(0, LostWorker::code))
}

/// Returns how the worker was lost, if its run cannot be begun again with another one.
async fn serve(mut executor: UnixStream, mut end: Signal, workers: &NatsWorkers) -> Option<LostWorker> {
    let connected = tokio::select! {
        connected = connect(workers) => connected,
        _ = end.recv() => return None,
    };
    let (server, key) = match connected {
        Ok(connected) => connected,
        Err(problem) => {
            let _gone = executor.write_all(&failed(&problem)).await;
            return None;
        }
    };
    let mut relay = Relay::default();
    let depth = loop {
        if let Some(depth) = relay.depth() {
            break depth;
        }
        // This may wait for long: executors start some of these processes ahead of time.
        tokio::select! {
            read = read_orders(&mut executor, &mut relay) => if read.is_err() { return None },
            _ = end.recv() => return None,
        }
    };
    let mut problem = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let offered = tokio::select! {
            offered = offer(&server, &key, depth) => offered,
            () = gone(&mut executor, &mut relay) => return None,
            _ = end.recv() => return None,
        };
        let mut channel = match offered {
            Ok(channel) => channel,
            Err(error) => {
                problem = error.to_string();
                break;
            }
        };
        let (rest, ended) = pass_on(executor, &mut end, &mut channel, &mut relay).await?;
        executor = rest;
        if !relay.can_begin_again() {
            return Some(match ended {
                ChannelEnd::Finished | ChannelEnd::Aborted => LostWorker::Ended,
                ChannelEnd::Silent => LostWorker::Silent,
                ChannelEnd::NoServer | ChannelEnd::Unsealed => LostWorker::Unreachable,
            });
        }
        // The worker may still run, if only the connection to it is broken.
        channel.abort().await;
        problem = format!(
            "{MAX_ATTEMPTS} workers were lost before the script had an effect, the last one because {ended}"
        );
        relay.begin_again();
    }
    if !relay.has_passed_anything() {
        let _gone = executor.write_all(&failed(&problem)).await;
    }
    None
}

/// The trust anchors for the server, and the credentials for it.
pub(super) fn access(workers: &NatsWorkers) -> Access {
    Access { credentials: workers.credentials_file.clone(), authorities: workers.ca_file.clone() }
}

/// The error is the rest of a sentence, for the run's author.
async fn connect(workers: &NatsWorkers) -> Result<(NatsServer, SharedKey), String> {
    let addresses = Addresses::parse(&workers.url, workers.credentials_file.is_some())?;
    let key = SharedKey::read(&workers.key_file)?;
    let connected = NatsServer::connect(&addresses, &access(workers)).await;
    Ok((connected.map_err(|error| error.to_string())?, key))
}

/// Reads messages of the executor. Dropping the future loses none.
async fn read_orders(executor: &mut UnixStream, relay: &mut Relay) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    match executor.read(&mut buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            relay.note(&buffer[..count]);
            Ok(())
        }
    }
}

/// Completes when the executor has gone.
async fn gone(executor: &mut UnixStream, relay: &mut Relay) {
    while read_orders(executor, relay).await.is_ok() {}
}

/// Forwards bytes between the executor and a worker. Returns the executor's stream and why the
/// worker has ended; `None` if the run is over, so that nothing is left to forward.
async fn pass_on(
    executor: UnixStream,
    end: &mut Signal,
    channel: &mut RunChannel,
    relay: &mut Relay,
) -> Option<(UnixStream, ChannelEnd)> {
    let (near, far) = duplex(CHUNK);
    let mut passing = std::pin::pin!(channel.pass_on(far, LocalEnd::Abort));
    let mut relaying = std::pin::pin!(relay_bytes(executor, end, near, relay));
    let mut ended = None;
    loop {
        tokio::select! {
            relayed = &mut relaying => {
                // Tells the worker that the run is over, if it is still connected.
                let ended = match ended {
                    Some(ended) => ended,
                    None => passing.await,
                };
                return relayed.map(|executor| (executor, ended));
            }
            // What is on its way is still passed on.
            end = &mut passing, if ended.is_none() => ended = Some(end),
        }
    }
}

/// Relays bytes until the worker's side ends, and returns the executor; `None` if the executor has gone, or wants
/// this process to end.
async fn relay_bytes(
    mut executor: UnixStream,
    end: &mut Signal,
    near: DuplexStream,
    relay: &mut Relay,
) -> Option<UnixStream> {
    let (mut from_worker, mut to_worker) = split(near);
    let (mut orders, mut replies) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut to_executor: Vec<u8> = Vec::new();
    let mut is_ended = false;
    {
        let (mut from_executor, mut executor) = executor.split();
        loop {
            if is_ended && to_executor.is_empty() {
                break;
            }
            let unsent = relay.unsent();
            let (unsent, takes_more) = (&unsent[..unsent.len().min(CHUNK)], relay.takes_more());
            tokio::select! {
                _ = end.recv() => return None,
                read = from_executor.read(&mut orders), if takes_more => match read {
                    Ok(0) | Err(_) => return None,
                    Ok(count) => relay.note(&orders[..count]),
                },
                // The end of the channel says why a write has failed.
                written = to_worker.write(unsent), if !unsent.is_empty() && !is_ended => {
                    if let Ok(count) = written {
                        relay.sent(count);
                    } else {
                        is_ended = true;
                    }
                }
                read = from_worker.read(&mut replies), if to_executor.is_empty() && !is_ended => match read {
                    Ok(0) | Err(_) => is_ended = true,
                    Ok(count) => relay.hear(&replies[..count], &mut to_executor),
                },
                written = executor.write(&to_executor), if !to_executor.is_empty() => match written {
                    Ok(count) => drop(to_executor.drain(..count)),
                    Err(_gone) => return None,
                },
            }
        }
    }
    Some(executor)
}
