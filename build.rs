//! Writes the startup snapshot of the isolates, if the build has TypeScript.
#![cfg_attr(
    feature = "typescript",
    expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")
)]

#[cfg(all(feature = "typescript", not(cx_docs)))]
#[path = "build/snapshot.rs"]
mod snapshot;

/// Where only documentation is built there is no V8 to link, and nothing starts an isolate.
#[cfg(all(feature = "typescript", cx_docs))]
mod snapshot {
    pub(crate) fn make() -> Box<[u8]> {
        Box::default()
    }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "typescript")]
    write_snapshot();
}

#[cfg(feature = "typescript")]
fn write_snapshot() {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let file = std::path::Path::new(&out).join("snapshot.bin");
    std::fs::write(file, snapshot::make()).expect("OUT_DIR is writable");
}
