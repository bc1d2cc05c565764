//! Images, as one number a block; and what has which name.

use sterna_core::Nanos;

/// Which image: its inode.
pub(crate) type Inode = usize;

/// Where the disk is at first.
pub(crate) const SOURCE: Inode = 0;

/// An image of somebody else's, which the machine may be given.
pub(crate) const OTHER: Inode = 1;

/// What files of others hold; no guest writes it.
const THEIRS: u64 = 999;

/// What an image of ours says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Active,
    Partial,
    /// It is no disk of ours.
    None,
}

#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) blocks: Vec<u64>,
    pub(crate) role: Role,
    /// It was removed, or its name was taken; whoever has it open has it still.
    pub(crate) removed: bool,
    /// Somebody else has made it.
    pub(crate) foreign: bool,
    /// A guest has run on it.
    pub(crate) was_used: bool,
    /// When it was made.
    pub(crate) born: Nanos,
}

/// All images, and the destination's name.
pub(crate) struct Images {
    pub(crate) all: Vec<Image>,
    pub(crate) destination: Option<Inode>,
}

impl Images {
    pub(crate) fn new(blocks: usize) -> Self {
        let mut images = Images { all: Vec::new(), destination: None };
        for foreign in [false, true] {
            let image = images.make(blocks, Role::None, foreign, Nanos(0));
            images.all[image].was_used = true;
        }
        images.all[SOURCE].blocks = (1..=blocks as u64).collect();
        images
    }

    fn make(&mut self, blocks: usize, role: Role, foreign: bool, born: Nanos) -> Inode {
        let blocks = vec![0; blocks];
        let (removed, was_used) = (false, false);
        self.all.push(Image { blocks, role, removed, foreign, was_used, born });
        self.all.len() - 1
    }

    /// Makes the destination.
    pub(crate) fn make_destination(&mut self, role: Role, born: Nanos) -> Inode {
        let blocks = self.all[SOURCE].blocks.len();
        let new = self.make(blocks, role, false, born);
        self.destination = Some(new);
        new
    }

    /// Somebody puts a file of his own, with nothing in it, in the destination's place.
    pub(crate) fn replace_destination(&mut self, born: Nanos) {
        let blocks = self.all[SOURCE].blocks.len();
        self.destination = Some(self.make(blocks, Role::None, true, born));
    }

    /// Somebody renames another file, which holds something, onto the destination's name.
    pub(crate) fn rename_onto_destination(&mut self, born: Nanos) {
        self.replace_destination(born);
        if let Some(new) = self.destination {
            self.all[new].blocks.fill(THEIRS);
        }
    }

    /// Removes what has the destination's name.
    pub(crate) fn remove_destination(&mut self) {
        let Some(gone) = self.destination.take() else { return };
        let image = &mut self.all[gone];
        assert!(!image.foreign, "a file was removed that is somebody else's");
        assert!(!image.was_used, "an image was removed that the guest has written to");
        image.removed = true;
    }

    /// Whether an image that is kept holds this in this block.
    pub(crate) fn is_kept(&self, block: usize, value: u64) -> bool {
        let kept = self.all.iter().filter(|image| !image.removed);
        kept.into_iter().any(|image| image.blocks[block] == value)
    }
}
