//! The server `examples/chaos`, for benches of calls.

/// The path of the program.
///
/// # Panics
///
/// If it is not built.
pub(crate) fn chaos() -> String {
    let mut path = std::env::current_exe().expect("a path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let path = path.join("examples/chaos");
    assert!(path.exists(), "build it first, with the bench's profile: cargo build --example chaos");
    path.to_string_lossy().into_owned()
}
