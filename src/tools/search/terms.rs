//! The sorted terms of an index.

/// Terms by their position in the order of their texts. Immutable.
#[derive(Debug)]
pub(crate) struct Terms {
    /// All terms, sorted and concatenated.
    texts: Box<str>,
    /// The start of each term, and the end of the last one.
    starts: Box<[u32]>,
}

impl Terms {
    /// From sorted texts.
    pub(crate) fn new<'a>(sorted: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut texts = String::with_capacity(sorted.clone().map(str::len).sum());
        let mut starts = vec![0];
        for text in sorted {
            texts.push_str(text);
            starts.push(texts.len() as u32);
        }
        Self { texts: texts.into(), starts: starts.into() }
    }

    /// The number of terms.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The text of a term.
    pub(crate) fn text(&self, term: usize) -> &str {
        &self.texts[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The first term that does not sort before `text`.
    fn lower_bound(&self, text: &str) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if self.text(middle) < text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The term of this text.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let term = self.lower_bound(text);
        (term < self.count() && self.text(term) == text).then_some(term)
    }

    /// The terms that begin with `prefix`, in order.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = usize> {
        (self.lower_bound(prefix)..self.count()).take_while(move |&term| self.text(term).starts_with(prefix))
    }

    /// Size in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.texts.len() + size_of_val(&*self.starts)
    }
}
