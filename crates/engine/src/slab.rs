//! A table of things that come and go, named by small numbers.
//!
//! Numbers are used again once freed, so a number may only be kept while the
//! thing it names is known to be there: every user of a `Slab` here waits for
//! the operations that carry a number before it frees the number.

/// The table.
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    /// Puts `value` in and says its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(key) = self.free.pop() {
            debug_assert!(self.entries[key as usize].is_none());
            self.entries[key as usize] = Some(value);
            return key;
        }
        let key =
            u32::try_from(self.entries.len()).expect("a table has less than 2^32 rows");
        self.entries.push(Some(value));
        key
    }

    /// The number that the next `insert` gives.
    pub(crate) fn next_key(&self) -> u32 {
        let end =
            u32::try_from(self.entries.len()).expect("a table has less than 2^32 rows");
        self.free.last().copied().unwrap_or(end)
    }

    /// Takes the thing with that number out.
    pub(crate) fn remove(&mut self, key: u32) -> Option<T> {
        let value = self.entries.get_mut(key as usize)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(crate) fn get(&self, key: u32) -> Option<&T> {
        self.entries.get(key as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.entries.get_mut(key as usize)?.as_mut()
    }

    /// How many things are in the table.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All things with their numbers, in order of the numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..)
            .zip(&self.entries)
            .filter_map(|(key, entry)| Some((key, entry.as_ref()?)))
    }

    /// The numbers in use now.
    pub(crate) fn keys(&self) -> Vec<u32> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_dead_numbers_name_nothing() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!(slab.get(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.len(), 1);
        assert_eq!(slab.insert('c'), a);
        assert_eq!(slab.keys(), [a, b]);
        assert!(slab.get(77).is_none() && !slab.is_empty());
    }
}
