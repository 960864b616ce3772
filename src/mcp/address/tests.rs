use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn servers_elsewhere_cannot_send_anybody_to_this_machine() {
    for (server, target, may) in [
        ("https://example.com/mcp", "https://login.example.org/authorize", true),
        ("https://example.com/mcp", "http://login.example.org/authorize", false),
        ("https://example.com/mcp", "http://example.com/authorize", false),
        ("https://example.com/mcp", "http://127.0.0.1:2375/", false),
        ("https://example.com/mcp", "https://localhost/", false),
        ("https://example.com/mcp", "http://[::1]/", false),
        ("https://example.com/mcp", "file:///etc/passwd", false),
        ("https://example.com/mcp", "ms-msdt:/id", false),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/", true),
        ("http://127.0.0.1:1/mcp", "http://localhost.:2/", true),
        ("http://127.0.0.1:1/mcp", "http://[::ffff:127.0.0.1]:2/", true),
        ("http://127.0.0.1:1/mcp", "https://login.example.org/", true),
        ("http://127.0.0.1:1/mcp", "http://login.example.org/", false),
        ("https://app.localhost/mcp", "https://localhost/token", true),
        ("https://app.localhost/mcp", "http://localhost/token", false),
        ("https://[64:ff9b::7f00:1]/mcp", "http://127.0.0.1/token", false),
        ("http://intranet:1/mcp", "http://intranet:1/token", true),
        ("http://intranet:1/mcp", "http://intranet:2/token", false),
    ] {
        assert_eq!(may_send_to(&url(server), &url(target)), may, "{server} to {target}");
    }
}

#[test]
fn v_340_every_spelling_of_this_machine_is_this_machine() {
    let remote = url("https://example.com/mcp");
    for host in [
        // Names.
        "localhost",
        "localhost.",
        "localhost..",
        "LOCALHOST",
        "LocalHost.",
        "a.localhost",
        "a.b.localhost.",
        "localhost.localdomain",
        "ip6-localhost",
        "ip6-loopback.",
        "%6cocalhost",
        "\u{24db}\u{24de}\u{24d2}\u{24d0}\u{24db}\u{24d7}\u{24de}\u{24e2}\u{24e3}",
        // IPv4, as URLs may write it.
        "127.0.0.1",
        "127.0.0.1.",
        "127.255.255.254",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "0.0.0.0",
        "0",
        "0x0",
        "0.1.2.3",
        // IPv6, and IPv4 in it.
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:0.0.0.0]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::]",
        "[64:ff9b:1::127.0.0.1]",
        "[64:ff9b:1:7f00:0:100::]",
        "[2002:7f00:1::]",
        "[2001:0:1:2:3:4:80ff:fffe]",
        "[fe80::5efe:127.0.0.1]",
        "[2001:db8::200:5efe:127.0.0.1]",
    ] {
        for scheme in ["https", "http"] {
            let address = url(&format!("{scheme}://{host}:8443/token"));
            assert!(!may_send_to(&remote, &address), "{address}, written as {host}");
        }
    }
    for host in [
        "localhost.example.com",
        "notlocalhost",
        "128.0.0.1",
        "1.127.0.0",
        "[2001:db8::1]",
        "[64:ff9b::808:808]",
    ] {
        assert!(may_send_to(&remote, &url(&format!("https://{host}/token"))), "{host}");
    }
}

/// Plain `http` is allowed only if the data certainly stays on this machine: data for a
/// translator's address leaves it.
#[test]
fn v_340_only_what_stays_here_needs_no_encryption() {
    for (address, is) in [
        ("https://example.com/", true),
        ("http://127.0.0.1/", true),
        ("http://127.9.9.9/", true),
        ("http://0.0.0.0/", true),
        ("http://localhost./", true),
        ("http://[::1]/", true),
        ("http://[::]/", true),
        ("http://[::ffff:127.0.0.1]/", true),
        ("http://example.com/", false),
        ("http://0.1.2.3/", false),
        ("http://[64:ff9b::127.0.0.1]/", false),
        ("http://[2002:7f00:1::]/", false),
        ("http://[::127.0.0.1]/", false),
        ("http://localhost.example.com/", false),
    ] {
        assert_eq!(is_private(&url(address)), is, "{address}");
    }
}
