use super::*;

fn check(expected: AddressKind, addresses: &[&str]) {
    for address in addresses {
        let parsed: IpAddr = address.parse().unwrap();
        assert_eq!(kind(parsed), expected, "{address}");
    }
}

#[test]
fn hosts_of_the_internet_are_public() {
    check(
        AddressKind::Public,
        &[
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ],
    );
}

#[test]
fn private_networks_are_private_in_every_form() {
    check(
        AddressKind::Private,
        &[
            "127.0.0.1",
            "127.255.255.255",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:a00:1::1",
            "2002:7f00:1::",
            "2001:0:1:2:3:4:80ff:fffe",
        ],
    );
}

#[test]
fn what_no_name_should_lead_to_is_special() {
    check(
        AddressKind::Special,
        &[
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.170.2",
            "192.0.0.192",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.255.255",
            "192.88.99.1",
            "240.0.0.1",
            "255.255.255.254",
            "::",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "2001:db8::1",
            "3fff::1",
            "2001:2::1",
            "100::1",
            "4000::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "2002:a9fe:a9fe::1",
            "5f00::1",
        ],
    );
}

#[test]
fn groups_are_unusable() {
    check(
        AddressKind::Unusable,
        &["224.0.0.1", "239.255.255.250", "255.255.255.255", "ff02::1", "::ffff:224.0.0.1"],
    );
}

#[test]
fn names_that_the_internet_does_not_have() {
    for name in
        ["localhost", "a.localhost", "printer", "nas.local", "metadata.google.internal", "db.home.arpa"]
    {
        assert!(is_private_name(name), "{name}");
    }
    for name in
        ["example.com", "localhost.example.com", "internal.example", "notlocal.com", "mylocalhost.org"]
    {
        assert!(!is_private_name(name), "{name}");
    }
}
