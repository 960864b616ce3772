use super::*;

#[test]
fn values_are_of_the_kinds_that_tools_take() {
    for (query, expected) in [
        ("Read 'landlord-notices.txt' and do what it says.", &["file"][..]),
        ("Visit www.example.com, (https://example.org/a.html)!", &["url"]),
        ("Add john.doe@example.com and \"a@b.example\": both", &["email"]),
        ("Send report.pdf to a@b.example.", &["file", "email"]),
        ("a.txt b.md “c.json”", &["file"]),
        ("The price is 3.5, e.g. node.js and v1.2", &[]),
        ("@someone .txt a@ @b.c x@localhost www http:/", &[]),
        ("", &[]),
    ] {
        assert_eq!(kinds(query), expected, "{query}");
    }
}
