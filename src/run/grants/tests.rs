use super::{Access, Grants, HostPattern, Permissions};

fn paths(paths: &[&str]) -> Vec<std::path::PathBuf> {
    paths.iter().map(Into::into).collect()
}

fn hosts(hosts: &[&str]) -> Vec<HostPattern> {
    hosts.iter().map(|host| host.parse().unwrap()).collect()
}

fn grants() -> Grants {
    Grants {
        read: paths(&["/data", "/srv/reports", "/data/deep/in"]),
        write: paths(&["/out"]),
        net: hosts(&["api.example.com:443", "*.internal.example", "192.0.2.7"]),
    }
}

/// The directories that a run gets for a list that it asks for, or what is wrong with it.
fn reads(asked: &[&str]) -> Result<Vec<String>, String> {
    let permissions = Permissions { read: Some(paths(asked)), ..Permissions::default() };
    let run = grants().of_run(&permissions).map_err(|error| error.to_string())?;
    let read = run.directories.iter().filter(|directory| directory.access == Access::Read);
    Ok(read.map(|found| format!("{} in {}", found.path.display(), found.root.display())).collect())
}

#[test]
fn a_run_that_asks_for_nothing_gets_everything() {
    let run = grants().of_run(&Permissions::default()).unwrap();
    let of = |access| run.paths(access).map(|path| path.display().to_string()).collect::<Vec<_>>();
    assert_eq!(of(Access::Read), ["/data", "/srv/reports", "/data/deep/in"]);
    assert_eq!(of(Access::Write), ["/out"]);
    assert_eq!(run.net, grants().net);
}

#[test]
fn an_empty_list_asks_for_none() {
    let none = Permissions { read: Some(Vec::new()), write: Some(Vec::new()), net: Some(Vec::new()) };
    assert!(grants().of_run(&none).unwrap().is_empty());
    assert!(Grants::default().of_run(&none).unwrap().is_empty());
    assert!(Grants::default().of_run(&Permissions::default()).unwrap().is_empty());
}

#[test]
fn a_run_gets_what_is_in_a_granted_directory() {
    assert_eq!(reads(&["/data"]).unwrap(), ["/data in /data"]);
    assert_eq!(
        reads(&["/data/a/b", "/srv/reports"]).unwrap(),
        ["/data/a/b in /data", "/srv/reports in /srv/reports"]
    );
    assert_eq!(reads(&["/data/deep/in/it"]).unwrap(), ["/data/deep/in/it in /data/deep/in"]);
    // Every run has the scratch directory.
    assert_eq!(reads(&["/tmp", "/tmp/x"]).unwrap(), [""; 0]);
}

#[test]
fn a_run_that_asks_for_more_is_refused() {
    for asked in ["/", "/dat", "/database", "/srv", "/out", "/etc/passwd"] {
        let problem = reads(&[asked]).unwrap_err();
        assert!(problem.contains(&format!("`{asked}` is not granted")), "{problem}");
        assert!(problem.contains("`/data`") && problem.contains("--allow-read"), "{problem}");
    }
    for asked in ["data", "", "/data/../etc", "/data/.."] {
        assert!(reads(&[asked]).unwrap_err().contains("expected a"), "{asked}");
    }
    let many = vec!["/data"; 101];
    assert!(reads(&many).unwrap_err().contains("at most 100"), "{many:?}");
    let write = Permissions { write: Some(paths(&["/data"])), ..Permissions::default() };
    assert!(grants().of_run(&write).unwrap_err().to_string().contains("--allow-write"));
    assert!(Grants::default().of_run(&write).unwrap_err().to_string().contains("nothing is"));
}

#[test]
fn hosts_are_asked_for_as_directories_are() {
    let asks = |asked: &[&str]| {
        let permissions = Permissions { net: Some(hosts(asked)), ..Permissions::default() };
        grants().of_run(&permissions).map(|run| run.net)
    };
    let fine = ["api.example.com:443", "a.internal.example", "*.b.internal.example:80", "192.0.2.7:1"];
    assert_eq!(asks(&fine).unwrap(), hosts(&fine));
    for more in ["api.example.com", "api.example.com:80", "internal.example", "*", "*.example", "192.0.2.8"] {
        let problem = asks(&[more]).unwrap_err().to_string();
        assert!(problem.contains("--allow-net") && problem.contains("`api.example.com:443`"), "{problem}");
    }
}

/// Whatever is combined, nothing is reached that one of the two does not grant, and what is granted is either kept
/// as it is or left out.
#[test]
fn combining_only_restricts() {
    let lists: [&[&str]; 6] =
        [&[], &["/"], &["/data"], &["/data/deep"], &["/other", "/data/x"], &["/database"]];
    let nets: [&[&str]; 5] =
        [&[], &["*"], &["*.internal.example:443"], &["api.example.com"], &["192.0.2.7:80", "other.example"]];
    let (places, names) = (
        ["/", "/data", "/data/deep/in/it", "/data/x/y", "/database", "/other", "/out", "/srv/reports/a"],
        ["api.example.com", "a.internal.example", "internal.example", "192.0.2.7", "other.example"],
    );
    let own = grants();
    for list in lists {
        for net in nets {
            let asked = Permissions { read: Some(paths(list)), write: None, net: Some(hosts(net)) };
            let both = own.restricted_to(&asked);
            assert_eq!(both.write, own.write);
            assert!(both.read.iter().all(|path| own.read.contains(path)), "{list:?}");
            assert!(both.net.iter().all(|host| own.net.contains(host)), "{net:?}");
            for place in places {
                let reaches = |list: &[std::path::PathBuf]| {
                    list.iter().any(|path| std::path::Path::new(place).starts_with(path))
                };
                let expected = reaches(&own.read) && reaches(&paths(list));
                assert!(expected || !reaches(&both.read), "{place} with {list:?}");
            }
            for name in names {
                for port in [80, 443] {
                    let reaches = |list: &[HostPattern]| list.iter().any(|host| host.matches(name, port));
                    let expected = reaches(&own.net) && reaches(&hosts(net));
                    assert!(expected || !reaches(&both.net), "{name}:{port} with {net:?}");
                }
            }
        }
    }
    assert_eq!(own.restricted_to(&Permissions::default()), own);
}

#[test]
fn grants_of_one_person_add_up() {
    let more = Grants { read: paths(&["/data", "/more"]), ..Grants::default() };
    assert_eq!(grants().and(more).read, paths(&["/data", "/srv/reports", "/data/deep/in", "/more"]));
}

#[test]
fn paths_are_checked() {
    grants().validate().unwrap();
    for (path, expected) in
        [("relative", "absolute"), ("/a/../b", "without `..`"), ("/tmp", "scratch"), ("/tmp/", "scratch")]
    {
        let wrong = Grants { write: paths(&[path]), ..Grants::default() };
        let problem = wrong.validate().unwrap_err().to_string();
        assert!(problem.contains(expected) && problem.contains("allow_write"), "{problem}");
    }
    Grants { read: paths(&["/tmp/mine"]), ..Grants::default() }.validate().unwrap();
}

#[test]
fn patterns_of_hosts() {
    for (pattern, host, port, matches) in [
        ("Example.COM", "example.com", 80, true),
        ("example.com", "example.com.", 80, true),
        ("example.com", "EXAMPLE.com", 80, true),
        ("example.com", "a.example.com", 80, false),
        ("example.com", "badexample.com", 80, false),
        ("example.com:443", "example.com", 443, true),
        ("example.com:443", "example.com", 80, false),
        ("*.example.com", "a.b.example.com", 1, true),
        ("*.example.com", "example.com", 1, false),
        ("*.example.com", "badexample.com", 1, false),
        ("*.example.com", ".example.com", 1, false),
        ("*", "example.com", 1, true),
        ("*", "127.0.0.1", 1, false),
        ("*", "::1", 1, false),
        ("*:443", "localhost", 443, true),
        ("127.0.0.1", "127.0.0.1", 1, true),
        ("127.0.0.1", "::ffff:127.0.0.1", 1, true),
        ("[::1]:80", "::1", 80, true),
        ("[0:0:0:0:0:0:0:1]", "::1", 80, true),
        ("[::ffff:192.0.2.1]", "192.0.2.1", 80, true),
        ("localhost", "127.0.0.1", 80, false),
        ("localhost", "2130706433", 80, false),
    ] {
        let parsed: HostPattern = pattern.parse().unwrap();
        assert_eq!(parsed.matches(host, port), matches, "{pattern} {host}:{port}");
        assert_eq!(parsed.to_string().parse::<HostPattern>().unwrap(), parsed);
    }
}

#[test]
fn what_is_no_pattern_is_refused() {
    for text in [
        "",
        ":80",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:+1",
        "http://example.com",
        "example.com/path",
        "a b",
        "ex*mple.com",
        "a.*.com",
        "*example.com",
        "*.",
        "*.1",
        "a..b",
        "bücher.example",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "127.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "::1",
        "[::1",
        "[::1]80",
        "[127.0.0.1]",
        "user@example.com",
        "example.com:80:80",
        "a\u{202e}b",
    ] {
        let problem = text.parse::<HostPattern>().unwrap_err().to_string();
        assert!(problem.starts_with("expected a host"), "{text}: {problem}");
        assert!(!problem.contains('\u{202e}'), "{problem}");
    }
    assert!("a".repeat(64).parse::<HostPattern>().is_err());
    assert!(["a"; 128].join(".").parse::<HostPattern>().is_err());
}
