//! TLS of the HTTP clients of cx.

use std::time::SystemTime;

use reqwest::Url;

/// Makes ring the process's provider of cryptography, unless it has one. reqwest takes a provider for one client only
/// together with a verifier, and users expect the platform's verifier.
pub(crate) fn install_provider() {
    let _made_already = rustls::crypto::ring::default_provider().install_default();
}

/// Refuses a request over TLS while the machine's clock is before 1970. rustls compares certificates with the time
/// since then, and panics.
///
/// # Errors
///
/// The problem, and what to do.
pub(crate) fn check_clock(url: &Url, now: SystemTime) -> Result<(), &'static str> {
    if url.scheme() == "https" && now < SystemTime::UNIX_EPOCH {
        return Err(
            "the clock of this machine is before 1970, so no certificate can be checked; set the clock",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn before_1970_tls_is_refused_and_nothing_else() {
        let (tls, plain) = (Url::parse("https://a.example/").unwrap(), Url::parse("http://[::1]/").unwrap());
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let problem = check_clock(&tls, before).unwrap_err();
        assert!(problem.contains("before 1970") && problem.contains("set the clock"), "{problem}");
        assert_eq!(check_clock(&plain, before), Ok(()));
        for now in [SystemTime::UNIX_EPOCH, SystemTime::now()] {
            assert_eq!(check_clock(&tls, now), Ok(()));
        }
    }
}
