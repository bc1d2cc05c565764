//! What is shown, and what keys do about it.

use std::cmp::Ordering;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sterna_api::TopBy;

use super::column::{Column, Named};

/// The longest filter: a name has no more.
const FILTER_MAX: usize = 63;

/// What a key asked for that the view cannot do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Other rows: ask the daemon.
    Rows,
    /// The end.
    Quit,
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// Loads.
    Loads(TopBy),
    /// The memory of VMs.
    Vms,
}

impl Rows {
    /// What one of them is, in a word.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Rows::Loads(by) => by.as_str(),
            Rows::Vms => "vm",
        }
    }

    /// The loads that are asked for: those of all disks are shown in any case.
    pub(super) fn loads(self) -> TopBy {
        match self {
            Rows::Loads(by) => by,
            Rows::Vms => TopBy::Disk,
        }
    }
}

/// What is shown.
#[derive(Debug)]
pub(super) struct View {
    /// What the rows are.
    pub(super) by: Rows,
    /// By which column; none is by name.
    pub(super) sort: Option<usize>,
    /// Not in the order in which one would look first.
    pub(super) reversed: bool,
    /// Only names with this in them.
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) typing: bool,
    /// What is shown stays.
    pub(super) paused: bool,
    /// How many rows are above the first that is shown.
    pub(super) above: usize,
    /// How many rows there was room for.
    pub(super) page: usize,
}

impl View {
    /// The busiest first.
    pub(super) fn new(by: Rows) -> View {
        View {
            by,
            sort: Some(0),
            reversed: false,
            filter: String::new(),
            typing: false,
            paused: false,
            above: 0,
            page: 1,
        }
    }

    /// The rows that are to be shown, in order.
    pub(super) fn rows<'a, R: Named>(
        &self,
        all: &'a [R],
        columns: &[Column<R>],
    ) -> Vec<&'a R> {
        let named = |row: &&R| row.name().contains(&self.filter);
        let mut rows: Vec<&R> = all.iter().filter(named).collect();
        rows.sort_by(|a, b| {
            let order = match self.sort.and_then(|at| columns.get(at)) {
                Some(column) => by_column(column, a, b),
                None => a.name().cmp(b.name()),
            };
            let order = if self.reversed { order.reverse() } else { order };
            order.then_with(|| a.name().cmp(b.name()))
        });
        rows
    }

    /// A key was pressed; `columns` are shown.
    pub(super) fn press(&mut self, key: KeyEvent, columns: usize) -> Option<Wish> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Wish::Quit);
        }
        if self.typing {
            self.type_filter(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('d') => return self.show(Rows::Loads(TopBy::Disk)),
            KeyCode::Char('c') => return self.show(Rows::Loads(TopBy::Class)),
            KeyCode::Char('s') => return self.show(Rows::Loads(TopBy::Datastore)),
            KeyCode::Char('v') => return self.show(Rows::Vms),
            KeyCode::Left => self.sort = self.sort.and_then(|at| at.checked_sub(1)),
            KeyCode::Right => {
                let next = self.sort.map_or(0, |at| at + 1);
                self.sort = Some(next.min(columns.saturating_sub(1)));
            }
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Up => self.above = self.above.saturating_sub(1),
            KeyCode::Down => self.above = self.above.saturating_add(1),
            KeyCode::PageUp => self.above = self.above.saturating_sub(self.page),
            KeyCode::PageDown => self.above = self.above.saturating_add(self.page),
            KeyCode::Home => self.above = 0,
            // Drawing knows how many rows there are, and goes no farther.
            KeyCode::End => self.above = usize::MAX,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ') => self.paused = !self.paused,
            _ => {}
        }
        None
    }

    fn show(&mut self, by: Rows) -> Option<Wish> {
        // The columns of loads are others than those of memory.
        if (self.by == Rows::Vms) != (by == Rows::Vms) {
            (self.sort, self.reversed) = (Some(0), false);
        }
        self.by = by;
        self.above = 0;
        Some(Wish::Rows)
    }

    fn type_filter(&mut self, key: KeyCode) {
        self.above = 0;
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.len() < FILTER_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
    }
}

/// The larger number first; rows with nothing to say last.
fn by_column<R>(column: &Column<R>, a: &R, b: &R) -> Ordering {
    let value = |row| (column.value)(row).unwrap_or(f64::NEG_INFINITY);
    value(b).total_cmp(&value(a))
}

#[cfg(test)]
mod tests {
    use sterna_api::{Load, SideLoad, TopRow, VmMemoryState, VmMemoryTop};

    use super::super::column::{LOADS, MEMORY};
    use super::*;

    fn row(name: &str, iops: f64, response_us: Option<f64>) -> TopRow {
        let read = SideLoad { iops, response_us, ..SideLoad::default() };
        let load = Load { read, ..Load::default() };
        TopRow { name: name.into(), load, device: None }
    }

    fn top() -> Vec<TopRow> {
        vec![
            row("idle", 0.0, None),
            row("web-1", 10.0, Some(900.0)),
            row("web-2", 700.0, Some(100.0)),
        ]
    }

    fn names(view: &View, top: &[TopRow]) -> Vec<String> {
        view.rows(top, &LOADS).iter().map(|row| row.name.clone()).collect()
    }

    #[test]
    fn of_vms_those_that_have_most_out_come_first() {
        let vm = |name: &str, out: Option<u64>| VmMemoryTop {
            vm: name.into(),
            state: VmMemoryState::Awake,
            size: None,
            resident: None,
            out,
            balloon: None,
            entitled: None,
            faults: None,
            faults_per_s: None,
        };
        let vms = [vm("a", None), vm("b", Some(1)), vm("c", Some(1 << 30))];
        let mut view = View::new(Rows::Loads(TopBy::Disk));
        press(&mut view, &[KeyCode::Right, KeyCode::Char('r'), KeyCode::Char('v')]);
        assert_eq!((view.by, view.sort), (Rows::Vms, Some(0)));
        let names = |view: &View| -> Vec<String> {
            view.rows(&vms, &MEMORY).iter().map(|it| it.vm.clone()).collect()
        };
        assert_eq!(names(&view), ["c", "b", "a"]);
        press(&mut view, &[KeyCode::Left]);
        assert_eq!(names(&view), ["a", "b", "c"]);
    }

    fn press(view: &mut View, keys: &[KeyCode]) -> Option<Wish> {
        keys.iter().map(|key| view.press((*key).into(), 8)).last().flatten()
    }

    #[test]
    fn the_busiest_is_first_and_others_can_be() {
        let (mut view, top) = (View::new(Rows::Loads(TopBy::Disk)), top());
        assert_eq!(names(&view, &top), ["web-2", "web-1", "idle"]);
        press(&mut view, &[KeyCode::Right, KeyCode::Right]);
        assert_eq!(LOADS[view.sort.unwrap()].head, "READ ms");
        assert_eq!(names(&view, &top), ["web-1", "web-2", "idle"]);
        press(&mut view, &[KeyCode::Char('r')]);
        assert_eq!(names(&view, &top), ["idle", "web-2", "web-1"]);
        press(&mut view, &[KeyCode::Left; 9]);
        assert_eq!(view.sort, None, "by name");
        press(&mut view, &[KeyCode::Char('r')]);
        assert_eq!(names(&view, &top), ["idle", "web-1", "web-2"]);
        press(&mut view, &[KeyCode::Right; 99]);
        assert_eq!(view.sort, Some(7), "only by what is shown");
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let (mut view, top) = (View::new(Rows::Loads(TopBy::Disk)), top());
        // `q` and `d` are letters while a filter is typed.
        press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('d')]);
        assert!(view.typing && names(&view, &top).is_empty());
        press(&mut view, &[KeyCode::Backspace, KeyCode::Backspace]);
        press(&mut view, &[KeyCode::Char('w'), KeyCode::Char('e'), KeyCode::Enter]);
        assert_eq!(names(&view, &top), ["web-2", "web-1"]);
        assert!(!view.typing);
        press(&mut view, &[KeyCode::Esc]);
        assert_eq!(names(&view, &top).len(), 3);
        press(&mut view, &[KeyCode::Char('/')]);
        press(&mut view, &[KeyCode::Char('x'); 200]);
        assert_eq!(view.filter.len(), FILTER_MAX);
    }

    #[test]
    fn rows_are_scrolled_by_one_by_a_screen_and_to_the_ends() {
        let mut view = View { page: 20, ..View::new(Rows::Loads(TopBy::Disk)) };
        for (key, above) in [
            (KeyCode::Up, 0),
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 21),
            (KeyCode::PageUp, 1),
            (KeyCode::PageUp, 0),
            (KeyCode::End, usize::MAX),
            (KeyCode::PageDown, usize::MAX),
            (KeyCode::Home, 0),
        ] {
            press(&mut view, &[key]);
            assert_eq!(view.above, above, "{key:?}");
        }
    }

    #[test]
    fn keys_end_it_and_change_what_is_shown() {
        let mut view = View::new(Rows::Loads(TopBy::Disk));
        assert_eq!(press(&mut view, &[KeyCode::Char('s')]), Some(Wish::Rows));
        assert_eq!(view.by, Rows::Loads(TopBy::Datastore));
        assert_eq!(press(&mut view, &[KeyCode::Char(' ')]), None);
        assert!(view.paused);
        assert_eq!(press(&mut view, &[KeyCode::Char('q')]), Some(Wish::Quit));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        view.typing = true;
        assert_eq!(view.press(interrupt, 8), Some(Wish::Quit));
    }
}
