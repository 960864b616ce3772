//! The measures of a sandbox as a message has them.

use std::fmt;

use serde::Deserializer;
use serde::de::{self, SeqAccess, Visitor};

/// Maximum number of measures in one list. A sandbox has some twenty.
pub(super) const MAX_MEASURES: usize = 256;

/// Reads a list of at most [`MAX_MEASURES`] texts. A worker that was taken over chooses the length, and an empty text
/// takes one byte of a message and 24 bytes of memory.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_seq(Measures)
}

struct Measures;

impl<'de> Visitor<'de> for Measures {
    type Value = Vec<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {MAX_MEASURES} texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Self::Value, A::Error> {
        let mut measures = Vec::new();
        while let Some(text) = texts.next_element()? {
            if measures.len() == MAX_MEASURES {
                return Err(de::Error::invalid_length(MAX_MEASURES + 1, &self));
            }
            measures.push(text);
        }
        Ok(measures)
    }
}
