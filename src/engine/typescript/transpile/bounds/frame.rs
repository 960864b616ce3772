//! What the scanner knows of one open bracket and of the token before.

/// Weight of what may nest to the right, and of a bracket.
pub(super) const LEVEL: u32 = 10;

/// Weight of a link of a chain.
pub(super) const LINK: u32 = 1;

/// The token before, as far as it decides what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Previous {
    /// An operand must follow.
    Operator,
    /// A dot: a word that follows is a name.
    Dot,
    /// An operand has ended.
    Operand,
    /// As of [`Word::Prefix`].
    Prefix,
    /// As of [`Word::Either`].
    Either,
    /// `>` that may end type arguments.
    Angle,
    /// `if`, `for`, `while`, `with`.
    Head,
    /// The parenthesis that closes the head of an `if`, `for`, `while` or `with`.
    HeadEnd,
    /// `}`: the end of a block or of an object.
    Brace,
}

/// One open bracket, or the source itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// `(`, `[`, `{`, `` ` `` for `${`, 0 for the source.
    pub(super) bracket: u8,
    /// Whether what the bracket's parenthesis closes is a head, and how sure that is.
    pub(super) head: Option<bool>,
    /// Operators in the current element (between commas, semicolons, statement ends).
    pub(super) weight: u32,
    /// Angle brackets open in the current statement. `a < b` looks like one until the statement ends.
    pub(super) angles: u32,
    /// Angle brackets that may still be type arguments: swc reads what follows as types, then as operands.
    pub(super) tried: u32,
    /// Whether an outer frame was opened where [`Frame::tried`] was above zero.
    pub(super) in_tried: bool,
    /// Constructs in the current element whose rest swc reads twice.
    pub(super) doublings: u32,
    /// Arrow functions and heads of statements in the current element: scopes that need no bracket.
    pub(super) scopes: u32,
    /// How often swc's work on all of this frame doubles.
    pub(super) read_again: u32,
    /// Whether the current element holds a `?` of a conditional expression, or of an optional name.
    pub(super) conditional: bool,
    /// Whether a decorator stands in the current element.
    pub(super) decorated: bool,
    /// Whether this is the body of an enum, or inside one.
    pub(super) in_enum: bool,
    /// Height of the highest bracket closed in the current element.
    pub(super) tallest: u32,
    /// Height of the highest element so far.
    pub(super) peak: u32,
}

impl Frame {
    pub(super) fn path(&self) -> u32 {
        self.weight + LEVEL * self.angles
    }

    pub(super) fn height(&self) -> u32 {
        self.path() + self.tallest
    }

    pub(super) fn end_element(&mut self) {
        self.peak = self.peak.max(self.height());
        self.weight = 0;
        self.tallest = 0;
        self.doublings = 0;
        self.tried = 0;
        self.scopes = 0;
        self.conditional = false;
        self.decorated = false;
    }

    /// How often the work on a bracket doubles because it may stand in type arguments: a parameter of a function type
    /// may have an initialiser and a key of an object type may be computed, and what is in a bracket may be looked at
    /// before it is read. Each is read for every angle bracket, and for none.
    pub(super) fn tries(&self, bracket: u8) -> u32 {
        let looked_at = u32::from(matches!(bracket, b'{' | b'[') && (self.in_tried || self.tried > 0));
        looked_at + self.tried.checked_ilog2().map_or(0, |angles| angles + 2)
    }

    pub(super) fn end_statement(&mut self) {
        self.end_element();
        self.angles = 0;
    }
}

/// What may end the statement before the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    None,
    /// `;`: unless `else` follows.
    Semicolon,
    /// `}`: if a word follows that begins a statement.
    Brace,
    /// A line terminator after an operand: if an operand follows.
    Newline,
}
