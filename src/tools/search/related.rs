//! Finds related tools from their texts: a description that names another tool, and a parameter that takes what another
//! tool returns or lists.

mod listed;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::listed::add_listed;
use super::document::{Document, MAX_TEXT_WORDS};
use super::words::{for_each_word, is_stop_word, stem};

/// Weights of the relations: a tool's texts name the other tool; a tool takes what the other returns.
const NAMED: f32 = 1.0;
const PRODUCED: f32 = 0.7;

/// A field that more tools return does not relate to one of them.
const MAX_PRODUCERS: usize = 2;

/// A word that is in the parameters of more of a server's tools is the server's subject, and does not indicate a
/// preceding step.
const MAX_CONSUMERS: usize = 4;

/// Maximum number of words of a field's name.
const MAX_FIELD_WORDS: usize = 8;

/// Maximum number of fields that end in one word. Bounds the work for hostile lists.
const MAX_FIELDS: usize = 8;

/// Maximum number of related tools of a tool.
const MAX_RELATED: usize = 8;

/// Minimum length of a name that is searched in texts. It must also have a mark of a name: `_`, `-` or a capital letter
/// inside. Others are ordinary words.
const MIN_NAME: usize = 5;

/// The tools that each tool is used with. Immutable.
#[derive(Debug, Default)]
pub(crate) struct Related {
    /// The related tools of all tools, with weights, by tool.
    entries: Box<[(u32, f32)]>,
    /// The start of each tool's entries, and the end of the last one's.
    starts: Box<[u32]>,
}

impl Related {
    /// Finds the relations among the documents of each server. `documents` is in the order of their positions.
    pub(crate) fn new(documents: &[Document<'_>]) -> Self {
        let mut by_server: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (position, document) in documents.iter().enumerate() {
            by_server.entry(document.server).or_default().push(position as u32);
        }
        let mut related: Vec<Vec<(u32, f32)>> = vec![Vec::new(); documents.len()];
        for positions in by_server.values() {
            add_named(documents, positions, &mut related);
            add_produced(documents, positions, &mut related);
            add_listed(documents, positions, &mut related);
        }
        let (mut entries, mut starts) = (Vec::new(), vec![0]);
        for mut related in related {
            // Keeps the strongest relation to each tool, and of all tools the strongest relations.
            related.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            related.dedup_by_key(|entry| entry.0);
            related.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            related.truncate(MAX_RELATED);
            entries.extend(related);
            starts.push(entries.len() as u32);
        }
        Self { entries: entries.into(), starts: starts.into() }
    }

    /// The tools that are related to the tool at `position`, with weights above 0 and at most 1.
    pub(crate) fn neighbors(&self, position: usize) -> &[(u32, f32)] {
        let (Some(&start), Some(&end)) = (self.starts.get(position), self.starts.get(position + 1)) else {
            return &[];
        };
        &self.entries[start as usize..end as usize]
    }

    /// Size in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.starts)
    }
}

/// Whether a text has the form of a name and not of a word in a sentence.
fn is_name(text: &str) -> bool {
    let is_mark = |character: char| matches!(character, '_' | '-') || character.is_uppercase();
    text.len() >= MIN_NAME && text.chars().skip(1).any(is_mark)
}

/// The words of a text that have the form of a name.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let words = text.split(move |character| !is_part(character)).take(4 * MAX_TEXT_WORDS);
    words.filter(|word| is_name(word))
}

/// Adds the tools whose names are in the texts of others.
fn add_named(documents: &[Document<'_>], positions: &[u32], related: &mut [Vec<(u32, f32)>]) {
    let names: HashMap<&str, u32> = positions
        .iter()
        .map(|&position| (documents[position as usize].tool, position))
        .filter(|(name, _)| is_name(name))
        .collect();
    for &position in positions {
        let document = &documents[position as usize];
        let descriptions = document.parameters.iter().map(|(_, description)| description.as_str());
        for text in descriptions.chain([document.description]) {
            let named = names_in(text).filter_map(|word| names.get(word));
            let others = named.filter(|&&other| other != position);
            related[position as usize].extend(others.map(|&other| (other, NAMED)).take(MAX_RELATED));
        }
    }
}

/// The words of a field's name, and the tools that return it.
type Field<'a> = (&'a [u32], &'a [u32]);

/// Adds the tools that return what others take: a field all of whose words are in one parameter's
/// name and description (`zipcode`: `city`, "The zipcode of the city").
fn add_produced(documents: &[Document<'_>], positions: &[u32], related: &mut [Vec<(u32, f32)>]) {
    let mut words = FieldWords::default();
    let producers = producers(documents, positions, &mut words);
    // Fields by their last word.
    let mut fields: HashMap<u32, Vec<Field<'_>>> = HashMap::new();
    for (field, producers) in &producers {
        let fields = field.last().map(|last| fields.entry(*last).or_default());
        if let Some(fields) = fields.filter(|fields| fields.len() < MAX_FIELDS) {
            fields.push((field, producers));
        }
    }
    if fields.is_empty() {
        return;
    }
    let Taken { words: taken, consumers } = taken_words(documents, positions, &mut words);
    for (position, words) in &taken {
        let rare =
            words.iter().filter(|word| consumers.get(word).is_some_and(|&tools| tools <= MAX_CONSUMERS));
        for (field, producers) in rare.filter_map(|word| fields.get(word)).flatten() {
            if field.iter().all(|word| words.binary_search(word).is_ok()) {
                let others = producers.iter().filter(|producer| *producer != position);
                let weight = PRODUCED / producers.len() as f32;
                related[*position as usize].extend(others.map(|&producer| (producer, weight)));
            }
        }
    }
}

/// The fields that few tools return, by the words of their names, each with these tools.
fn producers(
    documents: &[Document<'_>],
    positions: &[u32],
    words: &mut FieldWords,
) -> BTreeMap<Vec<u32>, Vec<u32>> {
    let mut producers: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for &position in positions {
        let document = &documents[position as usize];
        for (field, _) in document.results {
            // A field that a tool both takes and returns does not come from that tool.
            let is_echo = document.parameters.iter().any(|(name, _)| name == field);
            let field = if is_echo { Vec::new() } else { words.add(field) };
            if !field.is_empty() {
                let producers = producers.entry(field).or_default();
                // One more than the maximum records that there are too many.
                if producers.len() <= MAX_PRODUCERS && producers.last() != Some(&position) {
                    producers.push(position);
                }
            }
        }
    }
    producers.retain(|_, producers| producers.len() <= MAX_PRODUCERS);
    producers
}

/// The words of parameters that are in names of fields.
#[derive(Default)]
struct Taken {
    /// The words of each parameter, sorted, with the parameter's tool.
    words: Vec<(u32, Vec<u32>)>,
    /// The number of tools whose parameters have each of these words.
    consumers: HashMap<u32, usize>,
}

fn taken_words(documents: &[Document<'_>], positions: &[u32], words: &mut FieldWords) -> Taken {
    let mut taken = Taken::default();
    for &position in positions {
        let mut all: HashSet<u32> = HashSet::new();
        let mut left = MAX_TEXT_WORDS;
        for (name, description) in documents[position as usize].parameters {
            let mut found = Vec::new();
            left = left.saturating_sub(words.find(name, left, &mut found));
            left = left.saturating_sub(words.find(description, left, &mut found));
            if !found.is_empty() {
                found.sort_unstable();
                all.extend(&found);
                taken.words.push((position, found));
            }
        }
        for word in all {
            *taken.consumers.entry(word).or_default() += 1;
        }
    }
    taken
}

/// The words of the names of fields, as numbers of their stems.
#[derive(Default)]
struct FieldWords {
    stems: HashMap<String, u32>,
    /// The stem of each word as written, if it is one of these. Most words occur many times, so each is
    /// stemmed only once.
    forms: HashMap<String, Option<u32>>,
}

impl FieldWords {
    /// Adds a field's name and returns its words. All names are added before texts are searched.
    fn add(&mut self, field: &str) -> Vec<u32> {
        let mut words = Vec::new();
        for_each_word(field, MAX_FIELD_WORDS, |word| {
            if !is_stop_word(word.text) {
                let count = self.stems.len() as u32;
                words.push(*self.stems.entry(stem(word.text)).or_insert(count));
            }
        });
        words
    }

    /// Adds the words of a text that occur in names of fields to `found`, each once. Returns how many words the text
    /// has, at most `most`.
    fn find(&mut self, text: &str, most: usize, found: &mut Vec<u32>) -> usize {
        let mut count = 0;
        for_each_word(text, most, |word| {
            count += 1;
            let known = match self.forms.get(word.text) {
                Some(&known) => known,
                None => {
                    let known = self.stems.get(&stem(word.text)).copied();
                    self.forms.insert(word.text.to_owned(), known);
                    known
                }
            };
            found.extend(known.filter(|known| !found.contains(known)));
        });
        count
    }
}

#[cfg(test)]
mod tests;
