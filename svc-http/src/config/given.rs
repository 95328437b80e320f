//! A value of a setting as a source gives it, and the forms that it is read in.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::within;

/// A value as a source gives it.
#[derive(Clone, Copy)]
pub(super) struct Given<'source> {
    /// Its text; several where the source is a list.
    pub(super) texts: &'source [String],
    /// The folder that relative paths are seen from; `None` is the working directory.
    pub(super) folder: Option<&'source Path>,
    /// The least and the most that it may be, where the setting is a whole number.
    pub(super) range: Option<(u64, u64)>,
}

impl Given<'_> {
    /// The one text.
    pub(super) fn text(&self) -> Result<&str, String> {
        match self.texts {
            [one] => Ok(one),
            _ => Err("must be one value, not a list".to_owned()),
        }
    }

    /// The one text, read; `must` says what it has to be.
    pub(super) fn one<T: FromStr>(&self, must: &str) -> Result<T, String> {
        self.text()?.parse().map_err(|_| must.to_owned())
    }

    /// A path, relative ones seen from where the value was found.
    pub(super) fn path(&self) -> Result<PathBuf, String> {
        match self.text()? {
            "" => Err("must be a path".to_owned()),
            path => Ok(within(self.folder, path)),
        }
    }

    /// A whole number in the setting's range.
    pub(super) fn number<T: TryFrom<u64>>(&self) -> Result<T, String> {
        let (least, most) = self.range.unwrap_or((0, u64::MAX));
        let must = || format!("must be a whole number from {least} to {most}");
        let number: u64 = self.text()?.parse().map_err(|_| must())?;
        if !(least..=most).contains(&number) {
            return Err(must());
        }
        T::try_from(number).map_err(|_| must())
    }

    /// Milliseconds in the setting's range.
    pub(super) fn span(&self) -> Result<Duration, String> {
        Ok(Duration::from_millis(self.number()?))
    }
}
