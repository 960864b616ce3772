//! Names that cannot be guessed: of sessions over HTTP and of suspended runs.

/// Returns 128 random bits in hexadecimal. `None` if the system provides no random numbers.
pub(crate) fn random_name() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
