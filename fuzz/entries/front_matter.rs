//! Target of the front matter of scripts. The first byte chooses the language.

use super::{FrontMatter, MAX_DESCRIPTION, read, write};
use crate::storage::scripts::Extension;

pub(crate) fn front_matter(data: &[u8]) {
    let Some((language, rest)) = data.split_first() else { return };
    let extension = if language % 2 == 0 { Extension::Ts } else { Extension::Py };
    let source = String::from_utf8_lossy(rest);
    let Ok(matter) = read(&source, extension) else { return };
    let FrontMatter { name, description, input, has_block } = &matter;
    if !has_block {
        assert!(name.is_none() && input.is_none(), "{matter:?}");
        return;
    }
    let length = description.as_ref().map_or(0, |text| text.chars().count());
    assert!(length <= MAX_DESCRIPTION, "{length}");
    assert!(input.as_ref().is_none_or(serde_json::Value::is_object), "{matter:?}");
    let is_plain = |name: &&String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    if let Some(name) = name.as_ref().filter(is_plain) {
        let written = write(extension, name, description.as_deref(), input.as_ref());
        assert_eq!(read(&written, extension).as_ref(), Ok(&matter), "{written}");
    }
}

#[test]
fn v_416_front_matter_of_scripts() {
    crate::fuzzing::smoke("front_matter", 10_000, front_matter);
}
