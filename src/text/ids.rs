//! Ids that cannot be guessed: of sessions over HTTP, of suspended runs, and of run records.

use std::io;

/// Characters of short ids: none needs escaping in a URI, and no two differ only by case.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Length of a short id in characters: 80 random bits, for at most a few dozen ids in use at once.
const SHORT_LETTERS: usize = 16;

/// Returns 128 random bits in hexadecimal.
///
/// # Errors
///
/// If the system provides no random numbers.
pub(crate) fn random_id() -> io::Result<String> {
    Ok(format!("{:032x}", u128::from_ne_bytes(random_bytes()?)))
}

/// Returns an id of 16 letters, which a model repeats without mistakes.
///
/// # Errors
///
/// If the system provides no random numbers.
pub(crate) fn short_random_id() -> io::Result<String> {
    let bytes = random_bytes::<SHORT_LETTERS>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// Returns random bytes of the system.
///
/// # Errors
///
/// If the system provides no random numbers.
pub(crate) fn random_bytes<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    fill_random(&mut bytes)?;
    Ok(bytes)
}

/// Fills `bytes` with random bytes of the system.
///
/// # Errors
///
/// If the system provides no random numbers.
pub(crate) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(io::ErrorKind::Unsupported, error),
    })
}
