//! The words for what holds more than its word: one table for each such enum.
//!
//! An enum without members lists its values as `ALL`, and each of them says its word; one whose variants hold something has no such list.

/// Gives an enum `WORDS`, everything that it may be called, and the method that says what one is called. A variant that the table does
/// not have does not build, and one that it has stands wherever the words are listed.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident::$call:ident; $($($variant:ident)|+ $word:literal;)+) => {
        impl $name {
            /// Every word for one.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            $(#[$doc])*
            #[must_use]
            pub const fn $call(&self) -> &'static str {
                match self { $($(Self::$variant { .. })|+ => $word,)+ }
            }
        }
    };
}

pub(crate) use words;
