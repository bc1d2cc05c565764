//! Which images are a migration's own, by what they say of themselves.
//!
//! An image is raised, copied onto or removed only if it says what this migration
//! itself can have made it say. A state that was restored from an old backup knows
//! migrations that ended long ago, and what it takes for a copy may by now be the
//! only truth of the disk.
//!
//! ```text
//! the record             the source              the destination
//! G, G+1  copying        active G                partial G+1
//! G, G+1  switching      active G, or G+2 if     partial G+1, or active G+1 if
//!                        a fence was begun       it was sealed
//! G+2, G+3  copying      active G+2              as it was, then partial G+3
//! ```

use sterna_engine::sidecar::{Identity, Role};
use sterna_state::MigrationRecord;

use super::start::partial;

/// How far a fence raises both generations: the source's past the one with which
/// the destination may have been sealed, which is the source's plus one.
const FENCE: u64 = 2;

/// What the source may say of itself: as it was, or as a fence that was begun left
/// it.
pub(super) fn sources(record: &MigrationRecord) -> [Identity; 2] {
    [0, FENCE].map(|raised| Identity {
        generation: record.source_generation + raised,
        role: Role::Active,
        ..partial(record)
    })
}

/// What the copy may say of itself: what it should, or what it said before the last fence,
/// unfinished or sealed.
pub(super) fn copies(record: &MigrationRecord) -> [Identity; 3] {
    let now = partial(record);
    let generation = now.generation.saturating_sub(FENCE);
    let before = Identity { generation, ..now.clone() };
    let sealed = Identity { role: Role::Active, ..before.clone() };
    [now, before, sealed]
}

/// Whether an image is the copy that this migration makes: unfinished; or sealed in
/// a switch-over that was undone, so that a fence has outranked it.
pub(super) fn is_copy(found: &Identity, record: &MigrationRecord) -> bool {
    let behind = record.destination_generation.checked_sub(found.generation);
    let ours = match (found.role, behind) {
        (Role::Partial, Some(_)) => true,
        (Role::Active, Some(behind)) => behind > 0 && behind.is_multiple_of(FENCE),
        _ => false,
    };
    ours && found.id == record.disk && found.size == record.size
}

/// Whether an image is the source that a switch-over has left behind, retired or
/// not yet.
pub(super) fn is_old_source(found: &Identity, record: &MigrationRecord) -> bool {
    found.id == record.disk && found.generation <= record.source_generation
}

#[cfg(test)]
mod tests {
    use sterna_api::{AskGuard, Guard, StartMigration};
    use sterna_core::DiskId;
    use sterna_state::Step;

    use super::*;
    use sterna_storage::recovery::MARGIN;

    /// A migration whose source has this generation.
    fn migration(source_generation: u64) -> MigrationRecord {
        let disk = sterna_state::DiskRecord {
            id: DiskId(7),
            name: "db".into(),
            size: 512,
            datastore: "fast".into(),
            image: "db.raw".into(),
            provision: sterna_api::Provision::Thin,
            imported: false,
            generation: source_generation,
            created: 0,
            vhost_user: None,
        };
        let request = StartMigration {
            disk: "db".into(),
            to: "slow".into(),
            provision: None,
            rate: None,
            verify: false,
            keep_source: false,
            skip_bad_sectors: false,
            guard: AskGuard::default(),
        };
        let record =
            super::super::start::new_record(&disk, &request, Guard::default(), None);
        MigrationRecord { step: Step::Copying, ..record }
    }

    fn says(generation: u64, role: Role) -> Identity {
        Identity { generation, role, ..partial(&migration(1)) }
    }

    #[test]
    fn an_unfinished_copy_is_this_migrations() {
        let (first, fenced) = (migration(5), migration(5 + FENCE));
        assert!(is_copy(&partial(&first), &first));
        assert!(is_copy(&partial(&first), &fenced));
        assert!(!is_copy(&partial(&fenced), &first));
    }

    #[test]
    fn all_that_a_copy_may_say_is_a_copys() {
        for record in [migration(1), migration(5), migration(5 + FENCE)] {
            let all = copies(&record);
            assert!(all.contains(&partial(&record)));
            assert!(all.iter().all(|it| is_copy(it, &record)), "{all:?}");
        }
        assert!(copies(&migration(5 + FENCE)).contains(&says(6, Role::Active)));
    }

    #[test]
    fn what_was_sealed_is_a_copy_only_after_a_fence() {
        let (first, fenced) = (migration(5), migration(5 + FENCE));
        let sealed = says(6, Role::Active);
        assert!(!is_copy(&sealed, &first));
        assert!(is_copy(&sealed, &fenced));
        // No seal of this migration has written these.
        for generation in [5, 7, 8, 9] {
            assert!(!is_copy(&says(generation, Role::Active), &fenced), "{generation}");
        }
    }

    #[test]
    fn a_retired_image_or_one_of_another_disk_is_no_copy() {
        let record = migration(5);
        assert!(!is_copy(&says(6, Role::Retired), &record));
        assert!(!is_copy(&Identity { id: DiskId(8), ..partial(&record) }, &record));
        assert!(!is_copy(&Identity { size: 1024, ..partial(&record) }, &record));
    }

    #[test]
    fn an_image_that_was_recovered_is_neither_copy_nor_source_of_an_older_state() {
        let record = migration(5);
        let fenced = migration(5 + FENCE);
        for found in [5, 6] {
            let recovered = says(found + MARGIN, Role::Active);
            for record in [&record, &fenced] {
                assert!(!is_copy(&recovered, record));
                assert!(!sources(record).contains(&recovered));
                assert!(!is_old_source(&recovered, record));
            }
        }
    }
}
