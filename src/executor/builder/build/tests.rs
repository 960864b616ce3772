use futures::future::BoxFuture;

use super::*;
use crate::engine::backend::{Backend, BackendRun};
use crate::run::isolation::RemoteWorkers;
use crate::run::result::Outcome;

struct Nothing;

impl Backend for Nothing {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        let outcome = run.failed("nothing is executed");
        Box::pin(async move { outcome })
    }
}

/// Number 160 of docs/promises.md, and the default of `trim_after`.
#[test]
fn idle_engines_are_trimmed_after_half_a_minute() {
    assert_eq!(TIME_TO_IDLE_TRIM, Duration::from_secs(30));
}

/// Worker processes would have to be started for nothing, by a program that may not be made for them.
#[test]
fn a_back_end_takes_the_place_of_configured_worker_processes() {
    let mut builder = Executor::builder().backend(Nothing);
    builder.config.isolation = Some(Isolation::process());
    assert_eq!(builder.build().unwrap().isolation(), "backend");
}

/// A program that gets a back end later must not lose sight of the state that its scripts share with others.
#[cfg(all(feature = "nats", target_os = "linux"))]
#[test]
fn a_back_end_does_not_take_the_place_of_a_configured_tenant() {
    use crate::run::isolation::{NatsWorkers, SharedTenant};
    let mut workers = NatsWorkers::new("tls://nats.example.com:4222", "/nonexistent/queue-key");
    workers.shared = Some(SharedTenant { name: "payments".to_owned(), key_file: "/nonexistent/key".into() });
    let mut builder = Executor::builder().backend(Nothing);
    builder.config.isolation = Some(Isolation::Nats(workers));
    let Err(Error::InvalidOptions { option: OptionName::Isolation, problem }) = builder.build() else {
        panic!("the tenant's key is not read")
    };
    assert!(problem.contains("/nonexistent/key"), "{problem}");
}

#[test]
fn a_back_end_and_another_isolation_contradict_each_other() {
    for isolation in [Isolation::process(), Isolation::Remote(RemoteWorkers::new("https://cx.example.com"))] {
        let Err(Error::InvalidOptions { option: OptionName::Isolation, problem }) =
            Executor::builder().backend(Nothing).isolation(isolation.clone()).build()
        else {
            panic!("{isolation:?}")
        };
        assert!(problem.starts_with("a back end executes all scripts"), "{problem}");
    }
    let in_process = Executor::builder().backend(Nothing).isolation(Isolation::InProcess).build();
    assert_eq!(in_process.unwrap().isolation(), "backend");
}
