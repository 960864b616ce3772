//! One pass over a JSON text, without a tree: what a tree of it would cost, and a compact copy.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::numbers::{self, Numbers};

/// Memory that the parts of a tree take, in bytes, rounded up. A `Value` is 72 bytes, vectors start
/// with four elements and grow by doubling, and the smallest non-empty object is a table of four
/// and a vector of three entries of 104 bytes.
const VALUE_COST: usize = 112;
const ARRAY_COST: usize = 220;
const OBJECT_COST: usize = 400;
const ENTRY_COST: usize = 80;
/// Header and rounding of an allocation.
const STRING_COST: usize = 32;

/// Adds up the memory cost of a tree.
pub(super) struct Meter {
    budget: usize,
    pub(super) cost: usize,
    pub(super) values: usize,
    pub(super) is_exceeded: bool,
    /// Whether there was a number of 2^63 or more that is no 64-bit integer.
    pub(super) has_big_numbers: bool,
}

impl Meter {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, cost: 0, values: 0, is_exceeded: false, has_big_numbers: false }
    }

    fn add<E: serde::de::Error>(&mut self, cost: usize) -> Result<(), E> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget {
            self.is_exceeded = true;
            return Err(E::custom("too many values"));
        }
        Ok(())
    }
}

/// Parses a complete text by the rules for trees, adds up its cost, and writes it to `copy` if that
/// is given.
pub(super) fn walk(
    text: &str,
    meter: &mut Meter,
    copy: Option<&mut Vec<u8>>,
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Walk { meter, copy, is_key: false, exact: None }.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// A copy of the text without whitespace, and its cost. Integers are written as they are in the
/// text, marks as null unless they are kept.
pub(super) fn exact_copy(text: &str, keeps_marks: bool) -> Result<(String, usize), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut copy = Vec::with_capacity(text.len());
    let mut meter = Meter::new(usize::MAX);
    let mut numbers = Numbers::new(text);
    let exact = Some(Exact { numbers: &mut numbers, keeps_marks });
    Walk { meter: &mut meter, copy: Some(&mut copy), is_key: false, exact }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((String::from_utf8(copy).map_err(serde_json::Error::custom)?, meter.cost))
}

struct Walk<'a, 't> {
    meter: &'a mut Meter,
    copy: Option<&'a mut Vec<u8>>,
    is_key: bool,
    exact: Option<Exact<'a, 't>>,
}

/// The numbers of the text, which are visited in the same order.
struct Exact<'a, 't> {
    numbers: &'a mut Numbers<'t>,
    keeps_marks: bool,
}

impl<'t> Walk<'_, 't> {
    fn part(&mut self, is_key: bool) -> Walk<'_, 't> {
        let exact = self.exact.as_mut().map(|exact| Exact { numbers: &mut *exact.numbers, ..*exact });
        Walk { meter: &mut *self.meter, copy: self.copy.as_deref_mut(), is_key, exact }
    }

    /// Writes a number as it is in the text if `value` has lost some of it.
    fn number<E: serde::de::Error>(mut self, value: impl Serialize, as_float: Option<f64>) -> Result<(), E> {
        if as_float.is_some_and(numbers::is_big) {
            self.meter.has_big_numbers = true;
        }
        let Some(exact) = &mut self.exact else { return self.scalar(value) };
        let Some((_, token)) = exact.numbers.next() else { return Err(E::custom("a number is missing")) };
        if as_float.is_none() {
            return self.scalar(value);
        }
        if numbers::is_mark(token) && !exact.keeps_marks {
            return self.scalar(());
        }
        if numbers::is_mark(token) || (as_float.is_some_and(numbers::is_big) && numbers::is_integer(token)) {
            self.value(0)?;
            self.write(token.as_bytes());
            return Ok(());
        }
        self.scalar(value)
    }

    fn write(&mut self, text: &[u8]) {
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(text);
        }
    }

    fn scalar<E: serde::de::Error>(mut self, value: impl Serialize) -> Result<(), E> {
        self.value(0)?;
        match self.copy {
            Some(copy) => serde_json::to_writer(copy, &value).map_err(E::custom),
            None => Ok(()),
        }
    }

    fn value<E: serde::de::Error>(&mut self, more: usize) -> Result<(), E> {
        self.meter.values += 1;
        self.meter.add(VALUE_COST + more)
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.number(value, None)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.number(value, None)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.number(value, Some(value))
    }

    fn visit_str<E: serde::de::Error>(mut self, value: &str) -> Result<(), E> {
        let text = if value.is_empty() { 0 } else { STRING_COST + value.len() };
        if self.is_key {
            self.meter.add(ENTRY_COST + text)?;
        } else {
            self.value(text)?;
        }
        match self.copy {
            Some(copy) => serde_json::to_writer(copy, value).map_err(E::custom),
            None => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.value(0)?;
        self.write(b"[");
        let mut is_first = true;
        loop {
            let mark = self.mark();
            if !is_first {
                self.write(b",");
            }
            if items.next_element_seed(self.part(false))?.is_none() {
                self.truncate(mark);
                break;
            }
            if std::mem::take(&mut is_first) {
                self.meter.add(ARRAY_COST)?;
            }
        }
        self.write(b"]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.value(0)?;
        self.write(b"{");
        let mut is_first = true;
        loop {
            let mark = self.mark();
            if !is_first {
                self.write(b",");
            }
            if fields.next_key_seed(self.part(true))?.is_none() {
                self.truncate(mark);
                break;
            }
            if std::mem::take(&mut is_first) {
                self.meter.add(OBJECT_COST)?;
            }
            self.write(b":");
            fields.next_value_seed(self.part(false))?;
        }
        self.write(b"}");
        Ok(())
    }
}

impl Walk<'_, '_> {
    /// The current position in the copy: a comma is written before it is known whether another
    /// element follows.
    fn mark(&self) -> usize {
        self.copy.as_ref().map_or(0, |copy| copy.len())
    }

    fn truncate(&mut self, mark: usize) {
        if let Some(copy) = &mut self.copy {
            copy.truncate(mark);
        }
    }
}
