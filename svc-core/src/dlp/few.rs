//! A few things of one kind, kept where they are: what is looked for at every number of a text is not to cost memory at each.

use std::ops::Deref;

/// At most `MAX` of them; what is beyond is left out.
#[derive(Clone, Copy)]
pub(super) struct Few<T, const MAX: usize> {
    items: [T; MAX],
    count: usize,
}

impl<T: Copy + Default, const MAX: usize> Few<T, MAX> {
    pub(super) fn new() -> Self {
        Self { items: [T::default(); MAX], count: 0 }
    }

    pub(super) fn push(&mut self, item: T) {
        if let Some(place) = self.items.get_mut(self.count) {
            *place = item;
            self.count = self.count.saturating_add(1);
        }
    }
}

impl<T, const MAX: usize> Deref for Few<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or_default()
    }
}
