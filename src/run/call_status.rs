//! The names of how a call ended, in replies and in recordings.

use crate::run::result::ToolCallStatus;
use crate::run::sampling::ModelCallStatus;

/// Both directions from one table, in which no status can be missing. Behind the table are those that have a code or a
/// reason, which is written and read otherwise.
macro_rules! statuses {
    ($type:ident { $($status:ident => $name:literal,)+ } $($other:pat => $text:expr,)+) => {
        impl $type {
            /// The status as replies write it: a few words, or the code of the call's error.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$status => $name,)+
                    $($other => $text,)+
                }
            }

            /// The status with this name, of those in the table.
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$status),)+
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    ToolCallStatus {
        InFlight => "in flight",
        Ok => "ok",
        AwaitingApproval => "awaiting approval",
        Simulated => "simulated",
    }
    ToolCallStatus::Failed(code) => code.as_str(),
    ToolCallStatus::NotApproved(_) => "not approved",
}

statuses! {
    ModelCallStatus {
        InFlight => "in flight",
        Ok => "ok",
    }
    ModelCallStatus::Failed(code) => code.as_str(),
}
