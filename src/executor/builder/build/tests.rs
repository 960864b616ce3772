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

/// Worker processes would have to be started for nothing, by a program that may not be made for them.
#[test]
fn a_back_end_takes_the_place_of_configured_worker_processes() {
    let mut builder = Executor::builder().backend(Nothing);
    builder.config.isolation = Some(Isolation::process());
    assert_eq!(builder.build().unwrap().isolation(), "backend");
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
