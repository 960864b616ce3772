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
        let mut prefix = "_".to_owned();
        while text.contains(&format!("#{prefix}")) {
            prefix.push('_');
        }
        Self { prefix, count: 0 }
    }

    /// Makes a name that no class has.
    pub(super) fn fresh(&mut self) -> PrivateName {
        self.count += 1;
        PrivateName { span: DUMMY_SP, name: format!("{}{}", self.prefix, self.count).into() }
    }
}
