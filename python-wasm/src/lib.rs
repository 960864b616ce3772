//! CPython 3.14 on WASI as one WebAssembly component, for `cx`.
//!
//! The component has the interpreter, the importable part of the standard library, some packages in
//! pure Python, and the guest half of cx's host interface. It cannot run without that interface, and
//! its version must be the one that `cx` asks for. The README says what it contains, under which
//! licenses, and how it is built.
//!
//! The build script compiles the component to machine code of the target with wasmtime, whose version
//! and settings must be those of `cx`. That takes some ten seconds of processor time in a build
//! script that is optimized, and minutes in one that is not: `docs/library.md` says how to have it
//! optimized in a project of your own.

/// The component, compressed with zstd in one frame. Its window is 64 MiB, which a decoder may have
/// to be told. Decompressed it is about 41 MB.
pub const COMPRESSED: &[u8] = include_bytes!("../python.wasm.zst");

/// Output of `sha256sum` for [`COMPRESSED`]: the digest in hexadecimal digits, two spaces, a file
/// name, a newline. It identifies the component without hashing 10 MB.
pub const SHA256: &str = include_str!("../python.wasm.zst.sha256");

/// The component's machine code without its memory image, compressed with zlib. Empty if the build
/// script had no compiler for the target, and where only documentation is built. Decompressed it is
/// about 20 MB.
pub const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/code.zlib"));

/// SHA-256 of [`CODE`] in hexadecimal digits, which identifies it.
pub const CODE_SHA256: &str = include_str!(concat!(env!("OUT_DIR"), "/code.sha256"));
