//! Ids that cannot be guessed: of sessions over HTTP, of suspended runs, and of run records.

/// Characters of short ids: none needs escaping in a URI, and no two differ only by case.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Length of a short id in characters: 80 random bits, for at most a few dozen ids in use at once.
const SHORT_LETTERS: usize = 16;

/// Returns 128 random bits in hexadecimal. `None` if the system provides no random numbers.
pub(crate) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Returns an id of 16 letters, which a model repeats without mistakes. `None` if the system
/// provides no random numbers.
pub(crate) fn short_random_id() -> Option<String> {
    let mut bytes = [0_u8; SHORT_LETTERS];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// Returns 256 random bits. `None` if the system provides no random numbers.
pub(crate) fn random_seed() -> Option<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).ok()?;
    Some(seed)
}
