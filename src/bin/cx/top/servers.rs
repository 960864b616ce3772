//! The running servers as last read by `cx top`, and how many runs end there in a second.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Instant;

use cx::server::PageClient;
use futures::future::join_all;

use crate::reading::ServerReading;
use crate::running::{self, RunningServer};

/// The last reading.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    pub(crate) servers: Vec<WatchedServer>,
    /// Number of readings, with those that failed.
    pub(crate) readings: u64,
    /// Why the servers cannot be listed.
    pub(crate) failure: Option<String>,
    /// When each server was last read, and how many runs had ended, by its process and start.
    before: HashMap<(u32, u64), (Instant, f64)>,
}

/// One server.
#[derive(Clone)]
pub(crate) struct WatchedServer {
    pub(crate) description: RunningServer,
    pub(crate) reading: ServerReading,
    /// Runs that ended per second; `None` at the first reading.
    pub(crate) runs_per_second: Option<f64>,
}

impl Watched {
    /// Reads the servers that run now.
    ///
    /// # Errors
    ///
    /// If their files cannot be listed.
    pub(crate) async fn read(&mut self, state: &Path) -> io::Result<()> {
        self.readings += 1;
        let running = running::list(state)?;
        let read = join_all(running.into_iter().map(read)).await;
        let mut before = HashMap::new();
        self.servers.clear();
        for (description, reading) in read {
            let key = (description.process, description.started);
            let mut runs_per_second = None;
            if let ServerReading::Read(reading) = &reading {
                let runs = reading.runs_ok + reading.runs_failed;
                runs_per_second = self.before.get(&key).map(|&(at, runs_before)| {
                    let seconds = at.elapsed().as_secs_f64().max(0.001);
                    ((runs - runs_before) / seconds).max(0.0)
                });
                before.insert(key, (Instant::now(), runs));
            }
            self.servers.push(WatchedServer { description, reading, runs_per_second });
        }
        self.before = before;
        Ok(())
    }
}

async fn read(description: RunningServer) -> (RunningServer, ServerReading) {
    let Some(address) = description.address else { return (description, ServerReading::NotListening) };
    let metrics = PageClient::new(address, description.token.clone()).metrics().await;
    (description, ServerReading::from_metrics(metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame is drawn after each reading: one that is not counted would not show its failure.
    #[test]
    fn a_reading_that_fails_is_counted() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("running"), "").unwrap();
        let mut watched = Watched::default();
        assert!(futures::executor::block_on(watched.read(state.path())).is_err());
        assert_eq!(watched.readings, 1);
    }
}
