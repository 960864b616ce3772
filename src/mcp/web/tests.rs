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
