//! The compiler of components, in a build with the feature `compile`, and in tests.

use std::hash::{Hash as _, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use super::compiled::Compiler;
use crate::machine;

/// Memory in bytes that is mapped to compile the component.
const COMPILE_MEMORY: usize = 1 << 30;

/// The compiler of this build.
pub(super) const INCLUDED: Option<Compiler> = Some(Compiler { fingerprint, compile });

/// Digest of all that machine code depends on besides its component: wasmtime's version, the
/// processor's features, and the settings.
fn fingerprint(engine: &Engine) -> [u8; 32] {
    let mut hasher = KeyHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

fn compile(engine: &Engine, component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    // The compiler panics if the system refuses a thread, and the process ends if it refuses
    // memory.
    machine::check_machine(machine::processors(), 0, COMPILE_MEMORY)?;
    engine.precompile_component(component)
}

/// Hashes with SHA-256. The standard library's hasher may change with the compiler, and has only 64
/// bits.
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0.clone().finalize()[..8]);
        u64::from_le_bytes(first)
    }
}
