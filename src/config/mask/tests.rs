use super::{arguments, raw_url, written_url, written_urls};

#[test]
fn cf_189_passwords_in_addresses_are_masked_wherever_these_stand() {
    let shown = arguments([
        "--database=postgres://u:geheim@db/name",
        "postgres://u:geheim@db:${PORT}/name",
        "--mirror=https://u:geh/eim@${HOST}/x?key=geheim",
        "https://h.example/x",
        "curl https://h.example/y",
        "--define=a:b",
    ]);
    assert_eq!(
        shown,
        [
            "--database=postgres://***@db/name",
            "postgres://***@db:${PORT}/name",
            "--mirror=https://***@${HOST}/x",
            "https://h.example/x",
            "curl https://h.example/y",
            "--define=a:b",
        ]
    );
}

#[test]
fn cf_189_an_address_with_references_shows_no_password() {
    let cases = [
        ("https://u:geheim@h.example:${PORT}/x?key=geheim#geheim", "https://***@h.example:${PORT}/x"),
        ("https://u:geh?eim@h.example:${PORT}/x", "https://***@h.example:${PORT}/x"),
        ("https://h.example:${PORT}/ghp_geheim3geheim3geheim3", "https://h.example:${PORT}/***"),
        ("u:geheim@${HOST}/x", "***@${HOST}/x"),
        ("${URL}?key=geheim", "${URL}"),
        ("${URL}", "${URL}"),
    ];
    for (written, shown) in cases {
        assert_eq!(raw_url(written), shown);
    }
}

#[test]
fn v_710_a_password_with_commas_is_masked_as_a_whole() {
    for (written, shown) in [
        ("nats://a:4222,tls://b:4222", "nats://a:4222,tls://b:4222"),
        ("a:4222, b:4222", "a:4222, b:4222"),
        ("nats://a:4222,nats://me:geheim@b:4222", "nats://a:4222,nats://***@b:4222"),
        ("nats://me:ge,he,im@a:4222,nats://b:4222", "nats://***@a:4222,nats://b:4222"),
        ("me:geheim@a:4222", "***@a:4222"),
        ("nats://a:4222?token=geheim", "nats://a:4222?token=***"),
        ("nats://a:4222,b:4222?token=geheim", "nats://a:4222,b:4222"),
    ] {
        assert_eq!(written_urls(written), shown);
    }
    for (written, shown) in [
        ("https://h.example", "https://h.example"),
        ("https://me:ge,heim@h.example", "https://***@h.example/"),
        ("https://h.example/ghp_geheim3geheim3geheim3/v1", "https://h.example/***/v1"),
        ("https://h.example#geheim", "https://h.example/#***"),
    ] {
        assert_eq!(written_url(written), shown);
    }
}
