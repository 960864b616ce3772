//! Makes the startup snapshot of every isolate from `js/`. Uses no network and no source of `src`
//! except the declarations of the ops, which the snapshot and its reader must share.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::path::PathBuf;
use std::{env, fs};

#[path = "src/js/ops.rs"]
mod ops;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/js/ops.rs");
    println!("cargo:rerun-if-changed=js");
    let snapshot = deno_core::snapshot::create_snapshot(
        deno_core::snapshot::CreateSnapshotOptions {
            cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
            startup_snapshot: None,
            skip_op_registration: false,
            extensions: ops::extensions(),
            extension_transpiler: None,
            with_runtime_cb: None,
        },
        None,
    )
    .expect("js/ evaluates");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("snapshot.bin"), snapshot.output).expect("OUT_DIR is writable");
}
