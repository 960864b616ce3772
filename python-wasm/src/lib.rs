//! CPython 3.14 on WASI as one WebAssembly component, for `cx`.
//!
//! The component has the interpreter, the importable part of the standard library, some packages in
//! pure Python, and the guest half of cx's host interface. It cannot run without that interface, and
//! its version must be the one that `cx` asks for. The README says what it contains, under which
//! licences, and how it is built.

/// The component, compressed with zstd in one frame. Its window is 64 MiB, which a decoder may have
/// to be told. Decompressed it is about 41 MB.
pub const COMPRESSED: &[u8] = include_bytes!("../python.wasm.zst");

/// Output of `sha256sum` for [`COMPRESSED`]: the digest in hexadecimal digits, two spaces, a file
/// name, a newline. It identifies the component without hashing 10 MB.
pub const SHA256: &str = include_str!("../python.wasm.zst.sha256");
