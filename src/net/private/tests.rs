use serde_json::{Value, json};

use super::*;

fn found(value: &Value) -> Option<String> {
    private_address(json!({ "input": value }).as_object().unwrap())
}

/// Each text is found, with this host.
fn private(texts: &[(&str, &str)]) {
    for (text, host) in texts {
        assert_eq!(found(&json!(text)), Some(format!("the private address `{host}`")), "{text}");
    }
}

fn public(texts: &[&str]) {
    for text in texts {
        assert_eq!(found(&json!(text)), None, "{text}");
    }
}

#[test]
fn v_556_addresses_of_the_web_are_found_in_every_spelling() {
    private(&[
        ("http://127.0.0.1/", "127.0.0.1"),
        ("  HTTPS://10.1.2.3:8443/a?b#c\n", "10.1.2.3"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("http://2130706433/", "2130706433"),
        ("http://0x7f.1/", "0x7f.1"),
        ("http://017700000001", "017700000001"),
        ("http://127.1", "127.1"),
        ("http://0/", "0"),
        ("http://%31%32%37.0.0.1/", "%31%32%37.0.0.1"),
        ("http://\u{ff11}27\u{3002}0.0.1/", "\u{ff11}27\u{3002}0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1."),
        ("http://[::1]:80/", "::1"),
        ("http://[fe80::1%25eth0]/", "fe80::1"),
        ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1"),
        ("http://[64:ff9b::a00:1]", "64:ff9b::a00:1"),
        ("http://localhost", "localhost"),
        ("http://LOCALHOST.:3000", "LOCALHOST."),
        ("http://printer/", "printer"),
        ("https://api.internal/", "api.internal"),
        ("ws://db.home.arpa", "db.home.arpa"),
        ("http:127.0.0.1", "127.0.0.1"),
        ("http:/127.0.0.1", "127.0.0.1"),
        (r"http:\\127.0.0.1\a", "127.0.0.1"),
        ("http:////127.0.0.1", "127.0.0.1"),
        ("ht\ntp://local\thost/", "localhost"),
        ("http://example.com@127.0.0.1/", "127.0.0.1"),
        ("http://a:b@example.com@10.0.0.1:80", "10.0.0.1"),
        (r"http://127.0.0.1\@example.com", "127.0.0.1"),
        (r"http://example.com\@127.0.0.1", "127.0.0.1"),
    ]);
}

#[test]
fn v_556_hosts_without_a_scheme_and_other_schemes_are_found() {
    private(&[
        ("127.0.0.1", "127.0.0.1"),
        ("10.0.0.1:5432", "10.0.0.1"),
        ("192.168.1.1/admin?x", "192.168.1.1"),
        ("root@172.16.0.9:22", "172.16.0.9"),
        ("::1", "::1"),
        ("[fd00::1]:80", "fd00::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("localhost:8080/a", "localhost"),
        ("app.localhost", "app.localhost"),
        ("Metadata.Google.Internal", "Metadata.Google.Internal"),
        ("//127.0.0.1/share", "127.0.0.1"),
        (r"\\10.0.0.7\share", "10.0.0.7"),
        ("postgres://user:secret@10.0.0.7:5432/db", "10.0.0.7"),
        ("redis://localhost", "localhost"),
        ("gopher://cache.internal/", "cache.internal"),
    ]);
}

#[test]
fn v_556_addresses_inside_of_texts_and_values_are_found() {
    private(&[
        ("read http://127.0.0.1/a, then say so", "127.0.0.1"),
        ("[a](http://10.0.0.1)", "10.0.0.1"),
        ("(see http://localhost)", "localhost"),
        ("http://10.0.0.1.", "10.0.0.1."),
        ("https://example.com/?to=http://169.254.169.254/", "169.254.169.254"),
        ("curl -s 'http://[::1]:8080/'", "::1"),
        (r#"{"url":"http://192.168.0.1"}"#, "192.168.0.1"),
    ]);
    let expected = Some("the private address `10.0.0.1`".to_owned());
    assert_eq!(found(&json!([1, null, { "a": [{ "b": "http://10.0.0.1" }] }])), expected);
    assert_eq!(found(&json!({ "http://10.0.0.1": true })), expected);
    let mut deep = json!("http://10.0.0.1");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert_eq!(found(&deep), expected);
}

#[test]
fn what_is_no_private_address_is_left_alone() {
    public(&[
        "",
        "https://example.com/a?b=10.0.0.1",
        "http://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://user:10.0.0.1@example.com/",
        "8.8.8.8:53",
        "version 10.0.0.1 is out",
        "10.5",
        "127",
        "report.local",
        "db",
        "a.test",
        "git@github.com:a/b.git",
        "memo://7",
        "memo://insights",
        "file:///etc/hosts",
        "/srv/localhost",
        "http: the protocol",
        "https://",
        "://",
        "10:30",
        "std::fs",
        "file:///srv.local/a",
        "the host localhost is this machine",
    ]);
    assert_eq!(found(&json!([2_130_706_433_u32, true])), None);
}

#[test]
fn v_556_the_work_is_bounded_and_what_is_over_it_is_not_let_through() {
    let many = "http://a.example ".repeat(MAX_ADDRESSES);
    assert_eq!(found(&json!(many)), None);
    let more = format!("more than {MAX_ADDRESSES} addresses");
    assert_eq!(found(&json!([many, "see http://a.example"])), Some(more));
    let long = format!("see http://{}@10.0.0.1/", "a".repeat(MAX_AUTHORITY));
    assert_eq!(found(&json!(long)).as_deref(), Some("an address that is too long to look at"));
    let long = format!("http://{}@10.0.0.1/", "a".repeat(3 * MAX_AUTHORITY));
    assert_eq!(found(&json!(long)).as_deref(), Some("an address that is too long to look at"));
}
