//! The words for the values of enums: one table for each.
//!
//! An enum whose variants hold nothing lists its values as `ALL`, and each of them says its word; one whose variants hold something lists
//! its words alone.

/// Gives an enum without members `ALL`, `parse` and `as_str`; a comment before its name says in which order they stand, where that means
/// something. Gives one with members `WORDS`, everything that it may be called, and the method that says what one is called. A variant that
/// the table does not have does not build, and one that it has stands wherever the words are listed.
macro_rules! words {
    ($(#[$order:meta])* $name:ident; $($variant:ident $word:literal;)+) => {
        impl $name {
            /// Every value.
            $(#[$order])*
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The value with this word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == word)
            }

            /// The word for it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
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
