//! The scanner's state of one open bracket, and of the previous token.

/// Weight of a bracket, and of a construct that may nest to the right.
pub(super) const LEVEL: u32 = 10;

/// Weight of a link of a chain.
pub(super) const LINK: u32 = 1;

/// The previous token, as far as it determines how the next one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Previous {
    /// An operand must follow.
    Operator,
    /// A dot: a word that follows is a name.
    Dot,
    /// An operand has ended.
    Operand,
    /// A word of the class [`Word::Prefix`].
    Prefix,
    /// A word of the class [`Word::Either`].
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

/// What a parenthesis contains, as far as the token before it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Content {
    /// The head of a statement, an operand, or arguments: the grammar decides.
    #[default]
    Unclear,
    /// The head of an `if`, `for`, `while` or `with`.
    Head,
    /// An operand, parameters or arguments.
    Operand,
}

/// One open bracket, or the whole source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// `(`, `[`, `{`, `` ` `` for `${`, 0 for the source.
    pub(super) bracket: u8,
    /// What the bracket's content is, if it is a parenthesis.
    pub(super) content: Content,
    /// Weight of the operators in the current element (between commas, semicolons, statement ends).
    pub(super) weight: u32,
    /// Angle brackets open in the current statement. `a < b` counts as one until the statement
    /// ends.
    pub(super) angles: u32,
    /// Angle brackets that may still open type arguments: swc parses what follows as types, then as
    /// operands.
    pub(super) tried: u32,
    /// Whether an outer frame was opened where [`Frame::tried`] was above zero.
    pub(super) in_tried: bool,
    /// Constructs in the current element after which swc parses the rest twice.
    pub(super) doublings: u32,
    /// Those of `doublings` that are constraints of inferred types and end at the next `?`, as no function type is in
    /// them.
    pub(super) constraints: u32,
    /// `angles` where the first of these constraints began.
    pub(super) constraint_angles: u32,
    /// Arrow functions and heads of statements in the current element: scopes that need no bracket.
    pub(super) scopes: u32,
    /// Number of times that swc's work on this whole frame doubles.
    pub(super) read_again: u32,
    /// Whether the current element contains a `?` of a conditional expression or of an optional
    /// name.
    pub(super) conditional: bool,
    /// Whether the current element contains a decorator.
    pub(super) decorated: bool,
    /// Whether this is the body of an enum, or inside one.
    pub(super) in_enum: bool,
    /// Whether this is a parenthesis that may contain parameters: none that follows an operand.
    pub(super) may_be_parameters: bool,
    /// Whether a `:` in the current element followed such a parenthesis: swc parses what follows as the type that an
    /// arrow function returns, and again if it is none.
    pub(super) returns: bool,
    /// Whether this is an object, a pattern or an object type: a `:` in it follows no label.
    pub(super) is_object: bool,
    /// Names in the current statement that may be labels: those before a `:`. A comma does not end a label.
    pub(super) labels: u32,
    /// The same of the statements around this frame.
    pub(super) labels_around: u32,
    /// Number of `?` in the current statement whose `:` has not come yet.
    pub(super) questions: u32,
    /// Whether the next `:` ends a `case` or `default`.
    pub(super) in_case: bool,
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

    /// Takes the larger of each figure, if both are the same bracket. Whatever is computed from the
    /// figures grows with each of them.
    pub(super) fn merge(&mut self, other: &Self) -> bool {
        let fixed =
            |frame: &Self| (frame.bracket, frame.content, frame.in_tried, frame.read_again, frame.in_enum);
        if fixed(self) != fixed(other) || self.is_object != other.is_object {
            return false;
        }
        for (figure, others) in [
            (&mut self.weight, other.weight),
            (&mut self.angles, other.angles),
            (&mut self.tried, other.tried),
            (&mut self.doublings, other.doublings),
            (&mut self.scopes, other.scopes),
            (&mut self.labels, other.labels),
            (&mut self.labels_around, other.labels_around),
            (&mut self.tallest, other.tallest),
            (&mut self.peak, other.peak),
        ] {
            *figure = others.max(*figure);
        }
        self.constraints = self.constraints.min(other.constraints);
        self.constraint_angles = self.constraint_angles.min(other.constraint_angles);
        self.conditional |= other.conditional;
        self.decorated |= other.decorated;
        self.may_be_parameters |= other.may_be_parameters;
        self.returns |= other.returns;
        // With less of these there may be more labels.
        self.questions = self.questions.min(other.questions);
        self.in_case &= other.in_case;
        true
    }

    pub(super) fn end_element(&mut self) {
        self.peak = self.peak.max(self.height());
        self.weight = 0;
        self.tallest = 0;
        self.doublings = 0;
        self.constraints = 0;
        self.tried = 0;
        self.scopes = 0;
        self.returns = false;
        self.conditional = false;
        self.decorated = false;
    }

    /// Called at `infer X extends`: swc tries the type that follows as a constraint, and reads it again if it is none.
    pub(super) fn begin_constraint(&mut self) {
        if self.constraints == 0 || self.constraint_angles != self.angles {
            // Those around the angle bracket count up to the end of the element.
            (self.constraints, self.constraint_angles) = (0, self.angles);
        }
        self.constraints += 1;
        self.doublings += 1;
    }

    /// Called after a `?`: no constraint goes on behind it, unless it is in type arguments that are a part of the
    /// constraint.
    pub(super) fn end_constraints(&mut self) {
        if self.angles <= self.constraint_angles {
            self.doublings -= std::mem::take(&mut self.constraints);
        }
    }

    /// Returns how often the work on a bracket doubles because it may stand in type arguments. A
    /// parameter of a function type may have an initializer, a key of an object type may be
    /// computed, and the content of a bracket may be scanned ahead before it is parsed. Each is
    /// parsed once for every angle bracket, and once for none.
    pub(super) fn tries(&self, bracket: u8) -> u32 {
        let looked_at = u32::from(matches!(bracket, b'{' | b'[') && (self.in_tried || self.tried > 0));
        looked_at + self.tried.checked_ilog2().map_or(0, |angles| angles + 2)
    }

    pub(super) fn end_statement(&mut self) {
        self.end_element();
        self.angles = 0;
        self.labels = 0;
        self.questions = 0;
        self.in_case = false;
    }
}

/// What may end the statement before the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    None,
    /// `;`: ends it unless `else` follows.
    Semicolon,
    /// `}`: ends it if a word follows that starts a statement.
    Brace,
    /// A line terminator after an operand: ends it if an operand follows.
    Newline,
}
