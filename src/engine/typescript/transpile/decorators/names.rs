//! Private names that are generated.

use swc_common::DUMMY_SP;
use swc_ecma_ast::PrivateName;

/// Makes private names that the author has not used.
#[derive(Debug)]
pub(super) struct PrivateNames {
    prefix: String,
    count: u32,
}

impl PrivateNames {
    /// Names for a module with this text.
    pub(super) fn new(text: &str) -> Self {
        let underscores = |rest: &str| rest.bytes().take_while(|byte| *byte == b'_').count();
        let longest = text.split('#').skip(1).map(underscores).max().unwrap_or(0);
        Self { prefix: "_".repeat(longest + 1), count: 0 }
    }

    /// Makes a name that no class has.
    pub(super) fn fresh(&mut self) -> PrivateName {
        self.count += 1;
        PrivateName { span: DUMMY_SP, name: format!("{}{}", self.prefix, self.count).into() }
    }
}

#[test]
fn private_names_are_not_those_of_the_author() {
    for (text, expected) in [("", "_1"), ("#a #b_", "_1"), ("#_ #__x # ____", "___1")] {
        assert_eq!(PrivateNames::new(text).fresh().name.as_str(), expected, "{text}");
    }
}
