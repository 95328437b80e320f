//! What of a request single models refuse, of those that speak a shape.

/// Something of a request that has a place in a shape, and that single models of that shape refuse all the same. Whoever sends the
/// request knows which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Particular {
    /// It ends with an assistant's message, which the model is to go on with.
    Beginning,
    /// A temperature above 1.
    Heat,
    /// What is no text, in what whoever made the program says between the turns.
    Interjection,
    /// Odds of tokens, told or set.
    Odds,
    /// A text at which the answer is to end.
    Stop,
    /// More of those than the shape's maker takes.
    Stops,
    /// Tools.
    Tools,
}
