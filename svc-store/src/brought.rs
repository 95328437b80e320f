//! What is said of a database that was brought to a newer schema.

/// Says that the way back is closed, whatever brought the database there: the start of a server, or a command beside none. One that
/// was made just now comes from nowhere.
pub(crate) fn tell_of(from: i64, to: i64) {
    if (1..to).contains(&from) {
        tracing::warn!(
            from,
            to,
            "the database was brought to the schema of this release: those of before cannot open it any more, only a backup from before"
        );
    }
}
