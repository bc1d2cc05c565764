//! Writes through a page cache, and whether a flush that fails can be tried again.
//!
//! When the kernel cannot write a page it tells so once, at the next `fsync`, and takes the
//! page for clean: a second `fsync` succeeds and the bytes are nowhere but in memory. So
//! while writes through the cache are *outstanding* (begun, and not covered by a flush that
//! has succeeded), a flush that fails is final. What goes past the cache is on the device or
//! was answered with an error; there a flush can be tried again, and its success is true.
//!
//! **At first something is outstanding**: a process before this one may have left pages that are
//! not written yet, and the first `fsync` of a new descriptor is told of those, too.
//!
//! A flush covers the writes that had ended before it began. One that began while a write
//! was still going covers none, to be safe.

/// What went through the cache.
#[derive(Clone, Copy, Debug)]
pub struct Cached {
    begun: u64,
    going: u64,
    covered: u64,
}

impl Default for Cached {
    fn default() -> Self {
        Cached { begun: 1, going: 0, covered: 0 }
    }
}

impl Cached {
    /// Nothing is outstanding at first.
    pub fn clean() -> Cached {
        Cached { begun: 0, going: 0, covered: 0 }
    }

    /// A write through the cache begins.
    pub fn begins(&mut self) {
        self.begun += 1;
        self.going += 1;
    }

    /// It has ended, well or not.
    pub fn ends(&mut self) {
        self.going -= 1;
    }

    /// What a flush that begins covers, if it succeeds.
    pub fn flush_begins(&self) -> u64 {
        if self.going == 0 { self.begun } else { self.covered }
    }

    /// A flush that would cover this much has succeeded.
    pub fn flushed(&mut self, covers: u64) {
        self.covered = self.covered.max(covers);
    }

    /// Whether there are writes that no flush has covered.
    pub fn is_outstanding(&self) -> bool {
        self.begun > self.covered
    }
}

#[cfg(test)]
mod tests {
    use super::Cached;

    #[test]
    fn a_flush_covers_what_had_ended_before_it_began() {
        let mut cached = Cached::default();
        assert!(cached.is_outstanding(), "of a process before this one");
        cached.flushed(cached.flush_begins());
        assert!(!cached.is_outstanding());
        cached.begins();
        let early = cached.flush_begins();
        cached.ends();
        cached.flushed(early);
        assert!(cached.is_outstanding(), "the write was still going");
        let later = cached.flush_begins();
        cached.begins();
        cached.ends();
        cached.flushed(later);
        assert!(cached.is_outstanding(), "one came behind the flush");
        cached.flushed(cached.flush_begins());
        assert!(!cached.is_outstanding());
        // An older flush that is answered late takes nothing back.
        cached.flushed(early);
        assert!(!cached.is_outstanding());
    }
}
