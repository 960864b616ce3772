//! Writes the startup snapshot of the isolates and what is not in it, if the build has TypeScript.
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

    pub(crate) fn streams() -> String {
        String::new()
    }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "typescript")]
    write_guest();
}

#[cfg(feature = "typescript")]
fn write_guest() {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = std::path::Path::new(&out);
    std::fs::write(out.join("snapshot.bin"), snapshot::make()).expect("OUT_DIR is writable");
    std::fs::write(out.join("streams.js"), snapshot::streams()).expect("OUT_DIR is writable");
}
