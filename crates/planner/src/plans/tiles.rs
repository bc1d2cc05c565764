//! Tiles: which disks move together, and which of them go first.
//!
//! Each tile is a group of the plan's state machine. Disks in none are the last group, if
//! there are tiles at all.

use std::collections::HashMap;

use sterna_api::{Error, NAME_RULE, Result, Tile, is_name};
use sterna_placement::waves::{Group, depths};
use sterna_state::PlanRecord;

use super::hooks::check_hooks;
use crate::Planner;

/// The groups of a plan, and which of them each disk is in.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    pub(super) groups: Vec<Group>,
    of: HashMap<String, usize>,
}

impl Grouped {
    /// What these tiles come to; all of their disks must be on the datastore that is
    /// left.
    pub(super) fn of(tiles: &[Tile], is_there: impl Fn(&str) -> bool) -> Result<Grouped> {
        let mut grouped = Grouped::default();
        for (at, tile) in tiles.iter().enumerate() {
            check_tile(tile, &tiles[..at])?;
            for disk in &tile.disks {
                if !is_there(disk) {
                    let name = &tile.name;
                    let message = format!(
                        "disk {disk} of tile {name} is not on the datastore that the \
                         plan empties"
                    );
                    let hint = "remove the disk from the file: see `sterna disk list`";
                    return Err(Error::invalid(message).hint(hint));
                }
                if let Some(other) = grouped.of.insert(disk.clone(), at) {
                    let (one, two) = (&tiles[other].name, &tile.name);
                    let message = format!("disk {disk} is in tile {one} and in {two}");
                    let hint = "a disk moves once: keep the disk in one of the tiles";
                    return Err(Error::invalid(message).hint(hint));
                }
            }
            let after = before(tile, at, tiles)?;
            grouped.groups.push(Group {
                after,
                together: tile.together,
                stops: tile.stop.is_some(),
                starts: tile.start.is_some(),
            });
        }
        if depths(&grouped.groups).is_none() {
            let message = "tiles wait for each other in a circle";
            let hint = "let one of them begin without waiting: `after = []`";
            return Err(Error::invalid(message).hint(hint));
        }
        if !tiles.is_empty() {
            let after = (0..tiles.len()).collect();
            grouped.groups.push(Group { after, ..Group::default() });
        }
        Ok(grouped)
    }

    /// The group of a disk.
    pub(super) fn group_of(&self, disk: &str) -> Option<usize> {
        let rest = self.groups.len().checked_sub(1);
        self.of.get(disk).copied().or(rest)
    }
}

impl Planner {
    /// Refuses a plan of which a tile that is to be together could not move as a whole any
    /// more: the plan may be a week old.
    pub(super) fn check_still_together(&self, record: &PlanRecord) -> Result<()> {
        let design = &record.design;
        let is_together = |group: &usize| design.groups[*group].1;
        for one in &record.moves {
            let tile = one.design.group.filter(is_together);
            let Some(tile) = tile.and_then(|group| design.tiles.get(group)) else {
                continue;
            };
            let name = &one.design.name;
            let is_there = self.storage.store.disk(name)?.is_some_and(|disk| {
                disk.id == one.disk && disk.datastore == design.datastore
            });
            let rests = self.moves.migration_of(one.disk)?.is_none()
                && self.machines.vm_move_of(one.disk)?.is_none();
            if is_there && rests {
                continue;
            }
            let message = format!(
                "tile {} is to move together, but disk {name} has moved, or moves already",
                tile.name
            );
            let hint =
                format!("make a new plan: `sterna plan evacuate {}`", design.datastore);
            return Err(Error::invalid(message).hint(hint));
        }
        Ok(())
    }
}

fn check_tile(tile: &Tile, before: &[Tile]) -> Result<()> {
    let name = &tile.name;
    if !is_name(name) {
        let message = format!("`{name}` cannot be the name of a tile");
        return Err(Error::invalid(message).hint(NAME_RULE));
    }
    if before.iter().any(|other| other.name == *name) {
        let message = format!("two tiles have the name {name}");
        return Err(Error::invalid(message).hint("give one of them another name"));
    }
    if tile.disks.is_empty() {
        let message = format!("tile {name} has no disks");
        return Err(Error::invalid(message).hint("name disks, or leave the tile out"));
    }
    check_hooks(tile)
}

/// The tiles that go before one.
fn before(tile: &Tile, at: usize, tiles: &[Tile]) -> Result<Vec<usize>> {
    let Some(after) = &tile.after else {
        return Ok(at.checked_sub(1).into_iter().collect());
    };
    let find = |name: &String| {
        let found = tiles.iter().position(|other| other.name == *name);
        found.ok_or_else(|| {
            let message =
                format!("tile {} waits for tile {name}, which does not exist", tile.name);
            Error::invalid(message).hint("name a tile of the same file")
        })
    };
    after.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(name: &str, disks: &[&str], after: Option<&[&str]>) -> Tile {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Tile {
            name: name.into(),
            disks: all(disks),
            after: after.map(all),
            together: false,
            stop: None,
            start: None,
        }
    }

    fn hooked(stop: &[&str]) -> Tile {
        let stop = Some(stop.iter().map(|it| (*it).to_owned()).collect());
        Tile { stop, ..tile("db", &["a"], None) }
    }

    fn grouped(tiles: &[Tile]) -> Result<Grouped> {
        Grouped::of(tiles, |disk| disk != "elsewhere")
    }

    #[test]
    fn tiles_go_in_their_order_unless_they_say_otherwise_and_the_rest_goes_last() {
        let tiles = [
            tile("db", &["a", "b"], None),
            tile("web", &["c"], None),
            tile("mail", &["d"], Some(&[])),
        ];
        let grouped = grouped(&tiles).unwrap();
        let after: Vec<&[usize]> =
            grouped.groups.iter().map(|group| group.after.as_slice()).collect();
        assert_eq!(after, [&[] as &[usize], &[0], &[], &[0, 1, 2]]);
        let groups = ["a", "c", "d", "other"].map(|disk| grouped.group_of(disk));
        assert_eq!(groups, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(Grouped::default().group_of("a"), None);
    }

    #[test]
    fn tiles_that_make_no_sense_are_refused_with_a_reason() {
        for (tiles, wrong) in [
            (vec![tile("db", &["elsewhere"], None)], "is not on the datastore"),
            (vec![tile("db", &["a", "a"], None)], "is in tile db and in db"),
            (
                vec![tile("db", &["a"], None), tile("db", &["b"], None)],
                "two tiles have the name db",
            ),
            (vec![tile("db", &[], None)], "has no disks"),
            (vec![tile("a b", &["a"], None)], "cannot be the name"),
            (
                vec![tile("db", &["a"], Some(&["web"]))],
                "waits for tile web, which does not exist",
            ),
            (vec![tile("db", &["a"], Some(&["db"]))], "in a circle"),
            (vec![hooked(&[])], "stop hook of tile db names no program"),
            (vec![hooked(&["true"])], "true is not an absolute path"),
            (vec![hooked(&["/nowhere/true"])], "/nowhere/true cannot be run: No such"),
            (vec![hooked(&["/etc/passwd"])], "/etc/passwd is not executable"),
            (vec![hooked(&["/etc"])], "/etc is not a file"),
        ] {
            let error = grouped(&tiles).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
