//! Ranked search over tool definitions.

use std::collections::HashMap;

use super::catalog::ResolvedTool;

/// More words than this say nothing more about what is wanted. Bounds the work on hostile queries.
const MOST_WORDS: usize = 32;

/// Longer words are nobody's; and prefix comparison is linear in them.
const LONGEST_WORD: usize = 64;

/// Okapi BM25's usual parameters: how soon repetition stops counting, and how much long texts are
/// discounted.
const SATURATION: f64 = 1.2;
const LENGTH_DISCOUNT: f64 = 0.75;

/// A name says what a tool is for; a description often mentions what it is not for.
const NAME_WEIGHT: f64 = 3.0;
const SERVER_WEIGHT: f64 = 1.5;
const DESCRIPTION_WEIGHT: f64 = 1.0;
const PARAMETER_WEIGHT: f64 = 0.5;

/// A query word that only begins a text's word counts for this much of a whole match.
const PREFIX_VALUE: f64 = 0.5;

/// The tools that match at least one word of `query`, best first; ties keep their order. All tools,
/// in order, for a query without words.
pub(crate) fn rank(tools: &[ResolvedTool], query: &str) -> Vec<ResolvedTool> {
    let wanted = words(query, MOST_WORDS);
    if wanted.is_empty() {
        return tools.to_vec();
    }
    let documents: Vec<Document> = tools.iter().map(Document::new).collect();
    let average_length =
        documents.iter().map(|document| document.length).sum::<f64>() / documents.len().max(1) as f64;
    let mut scores = vec![0.0_f64; documents.len()];
    for word in &wanted {
        let weights: Vec<f64> = documents.iter().map(|document| document.weight(word)).collect();
        let matching = weights.iter().filter(|&&weight| weight > 0.0).count() as f64;
        let total = documents.len() as f64;
        let rarity = ((total - matching + 0.5) / (matching + 0.5)).ln_1p();
        for ((score, weight), document) in scores.iter_mut().zip(&weights).zip(&documents) {
            let length = document.length / average_length.max(1.0);
            let discount = SATURATION * (1.0 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * length);
            *score += rarity * weight * (SATURATION + 1.0) / (weight + discount);
        }
    }
    let mut ranked: Vec<(f64, usize)> = scores
        .into_iter()
        .enumerate()
        .filter_map(|(position, score)| (score > 0.0).then_some((score, position)))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, position)| tools[position].clone()).collect()
}

/// A tool's words with how much each counts.
struct Document {
    weights: HashMap<String, f64>,
    length: f64,
}

impl Document {
    fn new(tool: &ResolvedTool) -> Self {
        // Enough for any honest description; bounds what a giant one costs.
        const MOST_TEXT_WORDS: usize = 512;
        let mut document = Self { weights: HashMap::new(), length: 0.0 };
        let definition = tool.definition();
        document.add(&tool.tool, NAME_WEIGHT, MOST_WORDS);
        document.add(&tool.server, SERVER_WEIGHT, MOST_WORDS);
        document.add(definition.description.as_deref().unwrap_or(""), DESCRIPTION_WEIGHT, MOST_TEXT_WORDS);
        if let Some(properties) = definition.input_schema.to_value()["properties"].as_object() {
            for name in properties.keys().take(MOST_WORDS) {
                document.add(name, PARAMETER_WEIGHT, MOST_WORDS);
            }
        }
        document
    }

    fn add(&mut self, text: &str, weight: f64, most_words: usize) {
        for word in words(text, most_words) {
            *self.weights.entry(word).or_default() += weight;
            self.length += 1.0;
        }
    }

    fn weight(&self, wanted: &str) -> f64 {
        let exact = self.weights.get(wanted).copied().unwrap_or(0.0);
        if exact > 0.0 || wanted.len() < 3 {
            return exact;
        }
        // `issue` finds `issues`, and `repositories` finds `repository` by their common beginning.
        self.weights
            .iter()
            .filter(|(word, _)| {
                word.starts_with(wanted) || (word.len() >= 4 && wanted.starts_with(word.as_str()))
            })
            .map(|(_, weight)| weight * PREFIX_VALUE)
            .fold(0.0, f64::max)
    }
}

/// The words of a text in lower case: split at everything that is no letter or digit and at the
/// humps of camelCase.
fn words(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_lower_case = false;
    for character in text.chars() {
        let starts_hump = character.is_uppercase() && after_lower_case;
        if (!character.is_alphanumeric() || starts_hump) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
            if words.len() == most {
                return words;
            }
        }
        if character.is_alphanumeric() && word.len() < LONGEST_WORD {
            word.extend(character.to_lowercase());
        }
        after_lower_case = character.is_lowercase() || character.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests;
