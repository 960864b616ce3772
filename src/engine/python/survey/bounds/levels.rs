//! Counts the levels of a tree from what is read of its source.

/// What is open at an offset of a source: the statement, or a bracket in it. Counts the levels of
/// the tree there.
#[derive(Debug)]
pub(super) struct Levels<Bracket> {
    pub(super) open: Vec<Level<Bracket>>,
    /// What all levels have together, with their brackets.
    depth: usize,
    pub(super) blocks: usize,
    /// The greatest depth of all offsets.
    pub(super) greatest: usize,
}

#[derive(Debug)]
pub(super) struct Level<Bracket> {
    pub(super) bracket: Bracket,
    /// The levels of the tree that remain after a comma: a `lambda` and a `yield` may have commas.
    kept: usize,
    /// Those since the last comma.
    passing: usize,
}

impl<Bracket: Copy> Levels<Bracket> {
    /// The beginning of a source. `statement` stands for the bracket around a statement.
    pub(super) fn new(statement: Bracket) -> Self {
        let mut open = Vec::with_capacity(16);
        open.push(Level { bracket: statement, kept: 0, passing: 0 });
        Self { open, depth: 0, blocks: 0, greatest: 0 }
    }

    pub(super) fn is_in_bracket(&self) -> bool {
        self.open.len() > 1
    }

    pub(super) fn measure(&mut self) {
        self.greatest = self.greatest.max(self.depth + 2 * self.blocks);
    }

    /// An operator, a dot or a keyword.
    pub(super) fn pass(&mut self) {
        if let Some(level) = self.open.last_mut() {
            level.passing += 1;
            self.depth += 1;
            self.measure();
        }
    }

    /// A keyword whose part of the tree does not end at the next comma.
    pub(super) fn keep(&mut self) {
        if let Some(level) = self.open.last_mut() {
            level.kept += 1;
            self.depth += 1;
            self.measure();
        }
    }

    pub(super) fn comma(&mut self) {
        if let Some(level) = self.open.last_mut() {
            self.depth -= std::mem::take(&mut level.passing);
        }
    }

    pub(super) fn open(&mut self, bracket: Bracket) {
        self.open.push(Level { bracket, kept: 0, passing: 0 });
        self.depth += 1;
        self.measure();
    }

    /// Closes the innermost bracket if `is_pair` accepts it, and returns whether it did.
    pub(super) fn close(&mut self, is_pair: impl FnOnce(Bracket) -> bool) -> bool {
        match self.open.last() {
            Some(level) if self.is_in_bracket() && is_pair(level.bracket) => {
                self.depth -= 1 + level.kept + level.passing;
                self.open.pop();
                true
            }
            _ => false,
        }
    }

    /// The end of a statement, outside of brackets.
    pub(super) fn end_statement(&mut self) {
        if let [statement] = self.open.as_mut_slice() {
            (statement.kept, statement.passing) = (0, 0);
            self.depth = 0;
        }
    }
}
