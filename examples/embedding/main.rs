//! How a program embeds cx: one file for each thing that an embedder does.
//!
//! `cargo run --example embedding -- hooks` runs one of them; without a name all run in turn. The tests run them too.
//! `servers` starts the server of `examples/library`: `cargo build --example library-server` makes it.
#![expect(clippy::print_stdout, reason = "a program for people to look at")]

mod approver;
mod backend;
mod blocking;
mod check;
mod follow;
mod hooks;
mod servers;
mod tools;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().nth(1);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if is_wanted("follow") {
        println!("follow: {:?}", runtime.block_on(follow::example())?);
    }
    if is_wanted("check") {
        println!("check: {:?}", runtime.block_on(check::example())?);
    }
    if is_wanted("tools") {
        println!("tools: {:?}", runtime.block_on(tools::example())?);
    }
    if is_wanted("servers") {
        // cargo puts all examples into one directory.
        let library = std::env::current_exe()?.with_file_name("library-server");
        let library = cx::McpServer::stdio("library", library.to_string_lossy());
        println!("servers: {:?}", runtime.block_on(servers::example(library))?);
    }
    if is_wanted("hooks") {
        println!("hooks: {:?}", runtime.block_on(hooks::example())?);
    }
    if is_wanted("approver") {
        println!("approver: {:?}", runtime.block_on(approver::example())?);
    }
    if is_wanted("backend") {
        println!("backend: {:?}", runtime.block_on(backend::example())?);
    }
    if is_wanted("blocking") {
        println!("blocking: {:?}", blocking::example(runtime.handle())?);
    }
    Ok(())
}
