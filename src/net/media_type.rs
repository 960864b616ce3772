//! The media types that the headers of messages name.

/// JSON, as [`media_type`] writes it.
pub(crate) const JSON: &str = "application/json";

/// The name of the media type in a `Content-Type`, or in one entry of an `Accept`: in lower case, without parameters.
pub(crate) fn media_type(content_type: &[u8]) -> String {
    let text = String::from_utf8_lossy(content_type);
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_parameters_do_not_matter() {
        let is_json = |value: &str| media_type(value.as_bytes()) == JSON;
        assert!(is_json("application/json"));
        assert!(is_json(" Application/JSON ; charset=utf-8"));
        assert!(is_json("application/json;charset=utf-8"));
        for value in ["", ";application/json", "application/jsonl", "application/json-seq", "text/json"] {
            assert!(!is_json(value), "{value}");
        }
        assert_ne!(media_type(b"application/json\xff"), JSON);
    }
}
