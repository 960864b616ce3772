//! Compiles the component to machine code of the target, because a compiler takes seconds and the
//! first Python script on a machine cannot wait that long.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Engine};

// Links to files of `src/engine/python`, which are formatted there.
#[path = "build/image.rs"]
#[rustfmt::skip]
mod image;
#[path = "build/settings.rs"]
#[rustfmt::skip]
mod settings;

/// The processor features that code for x86-64 relies on, as a name of Cranelift: SSE4.2, POPCNT and
/// CMPXCHG16B, which processors have had since 2009. Code for x86-64-v3, and for all that the build
/// machine has, is not faster by more than the measurements vary (docs/decisions/0017).
const X86_64: &str = "x86-64-v2";

const COMPONENT: &str = "python.wasm.zst";

fn main() {
    for file in ["build.rs", "build/image.rs", "build/settings.rs", COMPONENT] {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    let code = if has_compiler() { compressed(&compile()) } else { Vec::new() };
    let digest: String = Sha256::digest(&code).iter().map(|byte| format!("{byte:02x}")).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("code.zlib"), code).expect("OUT_DIR is writable");
    fs::write(out.join("code.sha256"), digest).expect("OUT_DIR is writable");
}

/// Whether there is anything to compile, and a compiler for the target. Cranelift is built for the
/// machine's own architecture only, which halves its build time.
fn has_compiler() -> bool {
    // Nothing runs where only documentation is built, and docs.rs has little time.
    if env::var_os("DOCS_RS").is_some() {
        return false;
    }
    let target = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let is_known = matches!(env::consts::ARCH, "x86_64" | "aarch64" | "riscv64" | "s390x");
    if target == env::consts::ARCH && is_known {
        return true;
    }
    println!(
        "cargo:warning=no machine code for {target} is made: cx needs its feature `compile` to run Python"
    );
    false
}

fn compile() -> Vec<u8> {
    let packed = fs::read(COMPONENT).expect("the component is in the crate");
    let mut component = Vec::new();
    let mut decoder = StreamingDecoder::new(&packed[..]).expect("the component is compressed with zstd");
    decoder.read_to_end(&mut component).expect("the component is whole");
    let parts = image::take_apart(component).expect("the component is valid");
    assert!(parts.image.is_some(), "the component's memory image cannot be taken out of it");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let mut config = Config::new();
    // Naming a target also keeps the features of this machine's processor out of the code.
    config.target(&target).expect("wasmtime knows the target");
    settings::configure(&mut config);
    if target.starts_with("x86_64") {
        #[expect(unsafe_code, reason = "flags are unchecked names")]
        // SAFETY: it allows instructions. wasmtime loads the code only if the processor has them.
        unsafe {
            config.cranelift_flag_enable(X86_64)
        };
    }
    let engine = Engine::new(&config).expect("the settings fit together");
    engine.precompile_component(&parts.component).expect("the component is valid")
}

fn compressed(code: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(code).and_then(|()| encoder.finish()).expect("writing to memory succeeds")
}
