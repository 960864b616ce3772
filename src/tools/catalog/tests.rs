use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::server::{DISCOVERY_TIME, MAX_REFRESHES};
use super::*;
use crate::storage::files::Store;
use crate::tools::dispatch::{ToolDefinition, ToolList, ToolRequest};
use crate::tools::names::SuggestionBudget;
use crate::tools::native::{NativeTools, definition, erase};
use crate::tools::result::ToolResult;
use crate::tools::schema::Schema;

mod names;

fn catalog(names: &[&str]) -> Catalog {
    let mut tools = NativeTools::default();
    for name in names {
        tools.add(
            name,
            definition(Value::Null),
            erase(|value: Value| async move { Ok::<_, ToolError>(value) }),
        );
    }
    Catalog::new(&[Arc::new(tools)], &CatalogOptions::default())
}

/// What fails a test that would hang.
const WATCHDOG: Duration = Duration::from_secs(120);

fn soon() -> Instant {
    Instant::now() + WATCHDOG
}

fn budget() -> SuggestionBudget {
    SuggestionBudget::of_message()
}

/// A server whose list a test sets and that counts how often it was asked.
#[derive(Default)]
struct Fake {
    list: Mutex<Option<Arc<ToolList>>>,
    generation: AtomicU64,
    asked: AtomicUsize,
    hangs: AtomicBool,
    /// Whether it panics when it is asked for its generation the next time.
    panics: AtomicBool,
    /// How long it takes until it fails.
    fails_after: Option<Duration>,
    /// Whether its client may be asked.
    may_ask: AtomicBool,
}

impl Fake {
    fn offering(names: &[&str]) -> Arc<Self> {
        let fake = Arc::new(Self::default());
        fake.offer(names, "does it", None);
        fake
    }

    fn offer(&self, names: &[&str], description: &str, ttl: Option<Duration>) {
        let tool = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            description: Some(description.to_owned()),
            input_schema: Schema::any_object(),
            output_schema: None,
            annotations: None,
            meta: None,
        };
        *self.list.lock() =
            Some(Arc::new(ToolList { ttl, ..ToolList::new(names.iter().map(tool).collect()) }));
    }

    fn fail(&self) {
        *self.list.lock() = None;
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl ToolDispatcher for Fake {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["s".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            return futures::future::pending().boxed();
        }
        let error = || ToolError::new(ToolErrorCode::UpstreamUnavailable, "it is down");
        if let Some(time) = self.fails_after {
            return tokio::time::sleep(time).map(move |()| Err(error())).boxed();
        }
        futures::future::ready(self.list.lock().clone().ok_or_else(error)).boxed()
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("identity".to_owned())
    }

    fn declares_elicitation(&self, _server: &str) -> bool {
        self.may_ask.load(Ordering::SeqCst)
    }

    fn generation(&self, _server: &str) -> u64 {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "in a test");
        self.generation.load(Ordering::SeqCst)
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        futures::future::ready(Ok(ToolResult::default())).boxed()
    }
}

/// The directory that several processes share.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn options(&self, strict: bool) -> CatalogOptions {
        CatalogOptions {
            cache: Some(ListCache::new(Store::new(self.0.path().join("cache")))),
            pins: Some(self.pins()),
            strict,
            runtime: Some(Handle::current()),
            ..CatalogOptions::default()
        }
    }

    fn pins(&self) -> Pins {
        Pins::new(Store::new(self.0.path().join("state")))
    }

    /// A new process with this server.
    fn process(&self, fake: &Arc<Fake>) -> Catalog {
        Catalog::new(&[Arc::clone(fake) as Arc<dyn ToolDispatcher>], &self.options(false))
    }

    fn strict_process(&self, fake: &Arc<Fake>) -> Catalog {
        Catalog::new(&[Arc::clone(fake) as Arc<dyn ToolDispatcher>], &self.options(true))
    }
}

async fn names(catalog: &Catalog) -> Vec<String> {
    let tools = catalog.tools("s", soon(), &budget()).await.unwrap();
    tools.iter().map(|tool| tool.tool.to_string()).collect()
}

async fn eventually(what: &str, look: impl AsyncFn() -> bool) {
    let until = Instant::now() + WATCHDOG;
    while !look().await {
        assert!(Instant::now() < until, "it never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_new_process_asks_no_server_that_was_asked_before() {
    let disk = Disk::new();
    let fake = Fake::offering(&["one", "two"]);
    assert_eq!(names(&disk.process(&fake)).await, ["one", "two"]);
    assert_eq!(fake.asked(), 1);
    let second = disk.process(&fake);
    assert_eq!(names(&second).await, ["one", "two"]);
    assert_eq!(second.known()[0].1.as_ref().unwrap().len(), 2);
    assert_eq!(fake.asked(), 1);
}

/// Some servers list more tools to a client whose user they may ask.
#[tokio::test]
async fn a_list_of_a_client_that_may_not_be_asked_is_partial_for_one_that_may() {
    let disk = Disk::new();
    let fake = Fake::offering(&[]);
    let offer = |names: &[&str], asked: bool| {
        fake.may_ask.store(asked, Ordering::SeqCst);
        fake.offer(names, "does it", None);
        let list = fake.list.lock().take().map(Arc::unwrap_or_clone).unwrap();
        *fake.list.lock() = Some(Arc::new(ToolList { with_elicitation: Some(asked), ..list }));
    };
    offer(&["plain"], false);
    assert_eq!(names(&disk.process(&fake)).await, ["plain"]);
    assert_eq!(names(&disk.process(&fake)).await, ["plain"]);
    assert_eq!(fake.asked(), 1);
    offer(&["plain", "asks"], true);
    let second = disk.process(&fake);
    assert!(second.is_partial("s"));
    assert_eq!(second.fetch_missing().await.len(), 1);
    assert_eq!(names(&second).await, ["plain", "asks"]);
    assert!(!second.is_partial("s") && second.fetch_missing().await.is_empty());
    assert_eq!(names(&disk.process(&fake)).await, ["plain", "asks"]);
    assert_eq!(fake.asked(), 2);
    // The longer one serves both.
    offer(&["plain"], false);
    assert_eq!(names(&disk.process(&fake)).await, ["plain", "asks"]);
    assert_eq!(fake.asked(), 2);
}

#[tokio::test]
async fn a_list_that_does_not_hold_any_more_is_used_while_the_server_is_asked() {
    let disk = Disk::new();
    let fake = Fake::offering(&[]);
    fake.offer(&["old"], "", Some(Duration::ZERO));
    names(&disk.process(&fake)).await;
    fake.offer(&["new"], "", None);
    let second = disk.process(&fake);
    assert_eq!(names(&second).await, ["old"]);
    eventually("the new list", async || names(&second).await == ["new"]).await;
}

/// Whoever does not ask for what is missing gets it a little later.
#[tokio::test]
async fn a_partial_list_is_used_while_the_server_is_asked() {
    let disk = Disk::new();
    let fake = Fake::offering(&["plain"]);
    let list = fake.list.lock().take().map(Arc::unwrap_or_clone).unwrap();
    *fake.list.lock() = Some(Arc::new(ToolList { with_elicitation: Some(false), ..list }));
    names(&disk.process(&fake)).await;
    fake.may_ask.store(true, Ordering::SeqCst);
    fake.offer(&["plain", "asks"], "does it", None);
    let second = disk.process(&fake);
    assert_eq!(names(&second).await, ["plain"]);
    eventually("the longer list", async || names(&second).await == ["plain", "asks"]).await;
}

#[tokio::test]
async fn a_server_that_fails_leaves_the_list_from_before_and_a_warning() {
    let disk = Disk::new();
    let fake = Fake::offering(&["one"]);
    let catalog = disk.process(&fake);
    names(&catalog).await;
    fake.fail();
    fake.changed();
    assert_eq!(names(&catalog).await, ["one"]);
    let (tools, failures) = everything(&catalog, soon()).await;
    assert_eq!((tools.len(), failures.len()), (1, 1));
    assert!(failures[0].is_stale && failures[0].error.message.contains("it is down"), "{failures:?}");
    let line = describe_failures(&failures).unwrap();
    assert!(line.contains("may be out of date") && line.contains("it is down"), "{line}");
    // Without a cached list the failure is returned.
    let unknown = Fake::offering(&[]);
    unknown.fail();
    let error = Disk::new().process(&unknown).resolve("s", "one", soon(), &budget()).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
}

#[tokio::test]
async fn announced_changes_are_seen_at_once_but_not_a_flood_of_them() {
    let fake = Fake::offering(&["one"]);
    let catalog = Disk::new().process(&fake);
    names(&catalog).await;
    fake.offer(&["one", "two"], "", None);
    fake.changed();
    assert_eq!(names(&catalog).await, ["one", "two"]);
    for _ in 0..1000 {
        fake.changed();
        names(&catalog).await;
    }
    assert!(fake.asked() <= MAX_REFRESHES, "{}", fake.asked());
}

#[tokio::test]
async fn a_name_that_is_not_in_the_list_from_before_is_looked_for_in_a_new_one() {
    let disk = Disk::new();
    let fake = Fake::offering(&["one"]);
    names(&disk.process(&fake)).await;
    fake.offer(&["one", "two"], "", None);
    let second = disk.process(&fake);
    let one = second.resolve("s", "one", soon(), &budget()).await.ok().unwrap();
    assert_eq!(fake.asked(), 1);
    assert!(second.resolve("s", "two", soon(), &budget()).await.is_ok());
    assert_eq!(fake.asked(), 2);
    // The list now comes from the server, so an unknown name is an error.
    let unknown = second.resolve("s", "three", soon(), &budget()).await.err().unwrap();
    assert_eq!(unknown.code, ToolErrorCode::ToolNotFound);
    assert_eq!(fake.asked(), 2);
    // What was resolved in the list from before is resolved in the new one, without another request.
    let again = second.resolve_again(&one, soon(), &budget()).await.unwrap().unwrap();
    assert!(second.resolve_again(&again, soon(), &budget()).await.unwrap().is_none());
    assert_eq!(fake.asked(), 2);
}

/// Threats 166 and 211.
#[tokio::test]
async fn di_166_in_strict_mode_a_changed_tool_is_neither_found_nor_called_until_it_is_accepted() {
    let disk = Disk::new();
    let fake = Fake::offering(&["send", "read"]);
    assert_eq!(names(&disk.strict_process(&fake)).await, ["send", "read"]);
    fake.offer(&["send", "read", "extra"], "does it, and more", None);
    for catalog in [disk.strict_process(&fake), disk.strict_process(&fake)] {
        assert!(names(&catalog).await.is_empty());
        for tool in ["send", "read", "extra"] {
            let error = catalog.resolve("s", tool, soon(), &budget()).await.err().unwrap();
            assert_eq!(error.code, ToolErrorCode::ToolDenied);
            assert!(error.message.contains("cx tools accept"), "{error}");
        }
        assert!(everything(&catalog, soon()).await.0.is_empty());
    }
    // Without strict mode the change is detected too.
    assert_eq!(names(&disk.process(&fake)).await.len(), 3);
    assert_eq!(disk.pins().changes().unwrap().len(), 3);
    // A running process also sees it.
    let running = disk.strict_process(&fake);
    let changed = running.resolve("s", "send", soon(), &budget()).await.err().unwrap();
    assert_eq!(changed.code, ToolErrorCode::ToolDenied);
    disk.pins().accept("s", Some("send")).unwrap();
    assert!(running.resolve("s", "send", soon(), &budget()).await.is_ok());
    assert_eq!(names(&disk.strict_process(&fake)).await, ["send"]);
    disk.pins().accept("s", None).unwrap();
    assert_eq!(names(&disk.strict_process(&fake)).await.len(), 3);
}

#[tokio::test]
async fn di_166_a_server_that_hides_its_list_gains_nothing() {
    let disk = Disk::new();
    let fake = Fake::offering(&["send"]);
    names(&disk.strict_process(&fake)).await;
    fake.offer(&["send"], "does it, and more", None);
    // From here on the changed list is on disk.
    let changed = disk.strict_process(&fake).resolve("s", "send", soon(), &budget()).await.err().unwrap();
    assert_eq!(changed.code, ToolErrorCode::ToolDenied);
    fake.fail();
    let later = disk.strict_process(&fake);
    for _ in 0..2 * MAX_REFRESHES {
        assert!(later.resolve("s", "send", soon(), &budget()).await.is_err());
    }
    assert!(later.search_known("send", 10, |_, _| true).is_empty());
    assert_eq!(later.known()[0].1.as_ref().map(Vec::len), Some(0));
    assert!(!later.declarations(|_, _| true).contains("and more"));
}

#[tokio::test]
async fn di_166_what_was_accepted_and_cannot_be_read_accepts_nothing() {
    let disk = Disk::new();
    let fake = Fake::offering(&["send"]);
    names(&disk.strict_process(&fake)).await;
    for entry in std::fs::read_dir(disk.0.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            std::fs::write(path, "{").unwrap();
        }
    }
    let strict = disk.strict_process(&fake);
    let error = strict.resolve("s", "send", soon(), &budget()).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::ToolDenied);
    assert!(error.message.contains("damaged") && error.message.contains("cx tools accept"), "{error}");
    // Without strict mode it is only a warning, and the tool is a difference until it is accepted.
    assert_eq!(names(&disk.process(&fake)).await, ["send"]);
    for catalog in [disk.strict_process(&fake), disk.process(&fake)] {
        let changes = catalog.changes().unwrap();
        assert!(changes.len() == 1 && changes[0].pinned.is_none(), "{changes:?}");
        let [damaged] = &catalog.damaged_pins()[..] else { panic!("not damaged") };
        assert_eq!((&*damaged.server, std::fs::read(&damaged.file).unwrap()), ("s", b"{".to_vec()));
    }
    assert_eq!(strict.accept("s", Some("send")).unwrap(), 1);
    assert!(strict.damaged_pins().is_empty());
    assert!(disk.strict_process(&fake).resolve("s", "send", soon(), &budget()).await.is_ok());
}

/// Threat 168.
#[tokio::test]
async fn di_168_a_search_waits_once_and_not_long_for_a_server_that_hangs() {
    let hung = Arc::new(Fake { hangs: AtomicBool::new(true), ..Fake::default() });
    let mut well = NativeTools::default();
    well.add(
        "well.tool",
        definition(Value::Null),
        erase(|value: Value| async move { Ok::<_, ToolError>(value) }),
    );
    let options = CatalogOptions { runtime: Some(Handle::current()), ..CatalogOptions::default() };
    let catalog = Catalog::new(&[Arc::new(well), hung], &options);
    let far = Instant::now() + 100 * DISCOVERY_TIME;
    // The second one ends before a wait that begins with it would. Both timers are on one clock,
    // and what is ready counts first, so that this holds on a busy machine too.
    for patience in [10 * DISCOVERY_TIME, DISCOVERY_TIME] {
        let found = tokio::time::timeout(patience, everything(&catalog, far)).await;
        let (tools, failures) = found.expect("it does not wait");
        assert_eq!((tools.len(), failures.len()), (1, 1));
        assert_eq!(&*failures[0].server, "s");
        assert!(failures[0].error.message.contains("has not listed its tools yet"), "{failures:?}");
    }
}

/// A dispatcher that does not keep its deadline: those who need the list later do not wait for the same answer.
#[tokio::test(start_paused = true)]
async fn v_580_a_list_that_never_comes_is_asked_for_again() {
    let fake = Fake::offering(&["one"]);
    fake.hangs.store(true, Ordering::SeqCst);
    let options = CatalogOptions { runtime: Some(Handle::current()), ..CatalogOptions::default() };
    let catalog = Catalog::new(&[Arc::clone(&fake) as Arc<dyn ToolDispatcher>], &options);
    let far = Instant::now() + Duration::from_secs(100_000);
    let error = catalog.tools("s", far, &budget()).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::ToolTimeout);
    assert!(error.message.contains("did not list its tools in time"), "{error}");
    fake.hangs.store(false, Ordering::SeqCst);
    let tools = catalog.tools("s", far, &budget()).await.unwrap();
    assert_eq!((tools.len(), fake.asked()), (1, 2));
}

/// Those who need the list later do not get the panic of those who waited for it.
#[tokio::test]
async fn v_635_a_list_that_a_panic_has_kept_is_asked_for_again() {
    let fake = Fake::offering(&["one"]);
    let options = CatalogOptions { runtime: Some(Handle::current()), ..CatalogOptions::default() };
    let catalog = Catalog::new(&[Arc::clone(&fake) as Arc<dyn ToolDispatcher>], &options);
    fake.panics.store(true, Ordering::SeqCst);
    let error = catalog.servers[0].refreshed(soon()).await.err().unwrap();
    assert_eq!((error.code, &*error.message), (ToolErrorCode::ToolError, "the server has panicked"));
    assert_eq!(names(&catalog).await, ["one"]);
    assert_eq!(fake.asked(), 1);
}

/// Threat 393.
#[tokio::test]
async fn v_393_a_search_does_not_wait_for_a_server_that_hung_a_moment_ago() {
    let time = DISCOVERY_TIME + Duration::from_millis(200);
    let hung = Arc::new(Fake { fails_after: Some(time), ..Fake::default() });
    let options = CatalogOptions { runtime: Some(Handle::current()), ..CatalogOptions::default() };
    let catalog = Catalog::new(&[Arc::clone(&hung) as Arc<dyn ToolDispatcher>], &options);
    let far = Instant::now() + Duration::from_secs(30);
    assert_eq!(everything(&catalog, far).await.1.len(), 1);
    eventually("it has failed", async || catalog.servers[0].hung_recently()).await;
    for _ in 0..3 {
        // A wait would be longer. What is ready counts first, so that this holds on a busy machine
        // too.
        let found = tokio::time::timeout(DISCOVERY_TIME / 2, everything(&catalog, far)).await;
        let (_, failures) = found.expect("it does not wait");
        assert!(failures[0].error.message.contains("it is down"), "{failures:?}");
    }
    assert_eq!(hung.asked(), 2, "it is asked again in the background, once");
}

#[test]
fn v_393_forty_servers_that_are_down_are_one_line() {
    let failure = |number: usize| ListFailure {
        server: format!("server-{number}\n{}", "x".repeat(100)).into(),
        error: ToolError::new(
            ToolErrorCode::UpstreamUnavailable,
            format!(
                "server `{number}` ended\u{202e} with exit status 1; the end of its stderr:\n{}",
                "e".repeat(2_000)
            ),
        ),
        is_stale: number % 2 == 1,
    };
    let failures: Vec<_> = (0..40).map(failure).collect();
    let line = describe_failures(&failures).unwrap();
    assert!(line.len() < 2_000 && !line.contains(['\n', '\u{202e}']), "{} bytes: {line}", line.len());
    for part in
        ["the tools of 20 servers are missing", "the tools of 20 servers may be out of date", "and 10 more"]
    {
        assert!(line.contains(part), "{line}");
    }
    let line = describe_failures(&failures[..1]).unwrap();
    assert!(line.contains("are missing: UPSTREAM_UNAVAILABLE: server `0` ended"), "{line}");
    assert_eq!(describe_failures(&[]), None);
}

async fn everything(catalog: &Catalog, deadline: Instant) -> (Vec<ResolvedTool>, Vec<ListFailure>) {
    {
        let (found, failures) = catalog.search("", usize::MAX, false, |_| true, |_, _| true, deadline).await;
        (found.tools, failures)
    }
}
