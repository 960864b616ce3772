//! `cx ui`, and the page at `/ui` of `cx serve`.

pub(crate) mod inbox;
mod redirect;
mod state;
mod trails;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cx::CancellationToken;
use cx::server::{HttpToken, MetricsPrinter, Page, PageAnswer, PageHandler, PageRequest, Server};
use tokio::net::TcpListener;

use crate::args::UiArguments;
use crate::exit::{ExitStatus, exit};
use crate::running::RunningServer;
use crate::ui::inbox::Inbox;
use crate::ui::state::{OwnServer, Watch};
use crate::{browser, diagnostic, output, setup, signals};

/// How often the servers are read when no page asks, so that there is a history.
const SAMPLING: Duration = Duration::from_secs(5);

/// Opens the page, and serves it until interrupted.
///
/// # Errors
///
/// What is wrong with the configuration, or if the page cannot be served.
pub(crate) fn run(arguments: &UiArguments) -> anyhow::Result<ExitStatus> {
    cx::check_machine(2, 32, 0)?;
    let audit = setup::audit_directory(&arguments.trail)?;
    let state_directory = setup::directories()?.state;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("cx-ui")
        .enable_all()
        .build()
        .context("failed to start the threads of the page")?;
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        signals::end_with(&stop)?;
        let watch = Arc::new(Watch::of_all(state_directory.clone(), audit));
        let page = Page::new(handler(&watch), None);
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), arguments.port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("failed to listen at {address}: without --port a free port is taken"))?;
        let bound = listener.local_addr().context("failed to find out where the page is")?;
        let link = format!("http://{bound}/ui#token={}", page.one_time_token()?);
        output::print_text(&format!("{link}\n(works once, for 10 minutes; Ctrl-C ends the page)"))?;
        // Removed at the end.
        let mut _redirect = None;
        if !arguments.no_browser {
            match redirect::write(&state_directory, &link) {
                Ok(file) => {
                    if let Err(error) = browser::open(file.path()) {
                        diagnostic::print_note(&format!("no browser could be opened: {error}"));
                    }
                    _redirect = Some(file);
                }
                Err(error) => diagnostic::print_note(&format!("no browser is opened: {error}")),
            }
        }
        let sampling = async {
            let mut interval = tokio::time::interval(SAMPLING);
            loop {
                interval.tick().await;
                watch.refresh().await;
            }
        };
        tokio::select! {
            served = page.serve(listener, &stop) => served?,
            () = sampling => {}
        }
        Ok::<_, anyhow::Error>(ExitStatus::Success)
    })?;
    // Does not return through `main`: a thread may still read a file.
    exit(ended)
}

/// The page of a server itself, and the token of the user's other commands.
///
/// # Errors
///
/// If the system provides no random numbers.
pub(crate) fn of_server(
    server: &Server,
    print: MetricsPrinter,
    description: RunningServer,
    inbox: Option<Arc<Inbox>>,
) -> anyhow::Result<(Page, String)> {
    let (operator, text) = HttpToken::generate()?;
    let own = OwnServer { server: server.clone(), print, description, inbox };
    let watch = Arc::new(Watch::of_server(own));
    Ok((Page::new(handler(&watch), Some(operator)), text))
}

fn handler(watch: &Arc<Watch>) -> PageHandler {
    let watch = Arc::clone(watch);
    Arc::new(move |request| {
        let watch = Arc::clone(&watch);
        Box::pin(async move {
            match request {
                PageRequest::State => PageAnswer::Json(watch.state().await),
                PageRequest::Metrics => match watch.own_metrics() {
                    Some(text) => PageAnswer::Text(text),
                    None => PageAnswer::NotFound("this process has no metrics".to_owned()),
                },
                PageRequest::Approvals => PageAnswer::Json(watch.own_approvals()),
                PageRequest::Run { id } => match watch.run(&id).await {
                    Some(html) => PageAnswer::Html(html),
                    None => PageAnswer::NotFound("there is no such run any more".to_owned()),
                },
                PageRequest::Answer { id, approve, reason } => {
                    match watch.answer(&id, approve, reason).await {
                        Ok(()) => PageAnswer::Json("{}".to_owned()),
                        Err(why) => PageAnswer::NotFound(why),
                    }
                }
                _ => PageAnswer::NotFound("there is no such thing".to_owned()),
            }
        })
    })
}
