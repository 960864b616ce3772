use super::{arguments, raw_url};

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
