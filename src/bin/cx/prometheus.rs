//! Parses metrics in Prometheus' text format, as far as `cx serve` writes it.
//!
//! It parses names, labels and values, which is sufficient for a table of numbers. Types, help texts, times and
//! exemplars are skipped.
//!
//! `prometheus-parse` parses the whole format, with regular expressions for the lines and chrono for the times. The
//! part that is needed here is shorter than the code that would convert its types.

use std::collections::BTreeMap;

/// Maximum number of samples that are read: fifty servers have some thousands.
const MAX_SAMPLES: usize = 50_000;

#[cfg(test)]
thread_local! {
    /// Number of samples that were examined on this thread: searched for a name, or grouped.
    pub(crate) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Maximum value of a sample. No number of cx is larger, or negative: 300 digits would hide the rest of a line.
const MAX_VALUE: f64 = 1e18;

/// Maximum number of labels of a sample. The page comes from another process, and one of its lines can be as long as
/// the page.
const MAX_LABELS: usize = 32;

/// The samples of one reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Sample>);

/// One line of the page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl Sample {
    /// The value of a label; empty if the sample does not have it.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value)
    }
}

impl Samples {
    /// Reads a page. Lines that cannot be read are left out.
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).take(MAX_SAMPLES).collect())
    }

    /// The samples of a name.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + self.0.len());
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The samples by the value of a label. Those without it are left out.
    pub(crate) fn by_label(&self, label: &str) -> BTreeMap<&str, Self> {
        let mut by_value: BTreeMap<&str, Self> = BTreeMap::new();
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + self.0.len());
        for sample in &self.0 {
            if let Some((_, value)) = sample.labels.iter().find(|(name, _)| name == label) {
                by_value.entry(value).or_default().0.push(sample.clone());
            }
        }
        by_value
    }

    /// The sum of all samples of a name, whatever their labels; 0 without any.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        total(self.named(name).map(|sample| sample.value))
    }

    /// The sum of the samples of a name whose label has this value.
    pub(crate) fn sum_with(&self, name: &str, label: &str, value: &str) -> f64 {
        total(self.named(name).filter(|sample| sample.label(label) == value).map(|sample| sample.value))
    }
}

/// The sum of numbers. The standard library's sum of nothing is a negative zero, which would be shown with its sign.
pub(crate) fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

fn parse_line(line: &str) -> Option<Sample> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|letter: char| letter == '{' || letter.is_ascii_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        (labels, rest) = parse_labels(inner)?;
    }
    // A time may follow the value.
    let value: f64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    // No range contains NaN.
    if !(0.0..=MAX_VALUE).contains(&value) {
        return None;
    }
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads labels up to the closing brace. Returns them and what follows.
fn parse_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        if labels.len() >= MAX_LABELS {
            return None;
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        rest = loop {
            let (offset, letter) = letters.next()?;
            match letter {
                '"' => break after.get(offset + 1..)?,
                '\\' => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                _ => value.push(letter),
            }
        };
        labels.push((name.to_owned(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 592.
    #[test]
    fn v_592_a_line_of_many_labels_is_left_out() {
        let page = format!("many{{{}}} 1\nfew{{a=\"b\",c=\"d\"}} 2\n", vec!["a=\"\""; 100].join(","));
        let samples = Samples::parse(&page);
        assert_eq!((samples.named("many").count(), samples.named("few").count()), (0, 1));
    }

    /// Threat 735.
    #[test]
    fn v_735_numbers_that_cx_never_has_are_left_out() {
        let page = "a -1e308\na -1\na 1e308\na inf\na -inf\na nan\na 1e18\na 0\n";
        let values: Vec<f64> = Samples::parse(page).named("a").map(|sample| sample.value).collect();
        assert_eq!(values, [1e18, 0.0]);
    }
}
