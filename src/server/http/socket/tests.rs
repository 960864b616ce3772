use super::*;

/// What the heads of a connection say, read in pieces of `size` bytes.
fn heads(text: &str, size: usize) -> Vec<(bool, bool, bool)> {
    let (mut heads, mut found) = (Heads::default(), Vec::new());
    for piece in text.as_bytes().chunks(size) {
        heads.read(piece, |head| found.push((head.is_ambiguous, head.is_last, head.is_http_11)));
    }
    found
}

#[test]
fn heads_are_found_wherever_the_pieces_end() {
    let plain = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\na\r\n\r\nb: c\n";
    let empty = "GET /healthz HTTP/1.0\nContent-Length: 0\n\n";
    let chunked =
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let length_first = "POST / HTTP/1.1\r\ncontent-length: 3\r\nTRANSFER-ENCODING : chunked\r\n\r\n";
    let encoding_first = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
    let (well, old) = ((false, false, true), (false, false, false));
    for (text, expected) in [
        (plain.to_owned(), vec![well]),
        (format!("\r\n{plain}\r\n{empty}{plain}"), vec![well, old, well]),
        (format!("{plain}{chunked}"), vec![well, (false, true, true)]),
        (length_first.to_owned(), vec![(true, true, true)]),
        (format!("{empty}{encoding_first}"), vec![old, (true, true, true)]),
        (format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(2 * MAX_HEAD_BYTES)), vec![]),
    ] {
        for size in [1, 2, 7, 1_000_000] {
            assert_eq!(heads(&text, size), expected, "{size}: {}", &text[..text.len().min(200)]);
        }
    }
}

#[test]
fn a_request_is_complete_with_its_body() {
    let head = "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n";
    let chunked = "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (text, is_complete) in [
        (String::new(), true),
        ("GET / HTTP/1.1\r\n".to_owned(), false),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), true),
        (head.to_owned(), false),
        (format!("{head}a"), false),
        (format!("{head}ab"), true),
        (format!("{head}abP"), false),
        (format!("{chunked}2\r\nab\r\n"), false),
        (format!("{chunked}2;x=y\r\n\r\n\r\n0\r\n"), false),
        (format!("{chunked}2\r\nab\r\n0\r\nA: b\r\n\r\n"), true),
        (format!("{chunked}ffffffffffffffff\r\n"), false),
        (format!("{chunked}x\r\n"), false),
    ] {
        for size in [1, 3, 1_000] {
            let mut heads = Heads::default();
            text.as_bytes().chunks(size).for_each(|piece| heads.read(piece, |_| {}));
            assert_eq!(heads.is_complete(), is_complete, "{size}: {text}");
        }
    }
}
