//! Text in columns.
//!
//! A table is as wide as its content; where that is too wide, the columns
//! that are marked as flexible give way, and show `…` where something is left
//! out. (The whole is in `show` and in `--json`.) What has to be read to its end goes on
//! in the next line instead.

use sterna_api::{printable, printable_line};

/// How a text is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// A heading.
    Head,
    /// All is well.
    Good,
    /// Somebody should look.
    Warn,
    /// Something is wrong.
    Bad,
}

impl Style {
    /// The text with the terminal's codes around it.
    pub(crate) fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Style::Plain => return text.into(),
            Style::Head => "1",
            Style::Good => "32",
            Style::Warn => "33",
            Style::Bad => "31",
        };
        if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::styled(text, Style::Plain)
    }
}

/// Which side a column's text keeps to, and whether it gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Words.
    Left,
    /// Numbers.
    Right,
    /// Words that may be shortened, of which the end says more: names and paths.
    Flexible,
    /// Words that are shortened before those, of which the beginning says more.
    Sentence,
    /// Words that give way first, and go on in the next line: reasons and requirements.
    Wrapped,
}

impl Column {
    /// A text as it stands in a column of that width.
    fn lines(self, text: &str, width: usize) -> Vec<String> {
        match self {
            Column::Wrapped => {
                let lines = wrap(text, width).into_iter();
                lines.flat_map(|line| pieces(&line, width)).collect()
            }
            Column::Sentence => vec![begin(text, width)],
            Column::Left | Column::Right | Column::Flexible => vec![shorten(text, width)],
        }
    }
}

/// So much of a name is left while that is enough for the table to fit: most names are
/// shorter.
const NAME: usize = 8;

/// So much of a name is left where the table is too wide otherwise: less would say nothing.
const NAME_AT_LEAST: usize = 4;

/// Rows under a heading.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Column)]) -> Self {
        let head = columns.iter().map(|(head, _)| Cell::styled(*head, Style::Head));
        Table {
            columns: columns.iter().map(|(_, column)| *column).collect(),
            rows: vec![head.collect()],
        }
    }

    /// Adds a row: one cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let shown = cells.into_iter().zip(&self.columns).map(|(cell, column)| {
            let text = match column {
                Column::Wrapped => printable(&cell.text),
                _ => printable_line(&cell.text),
            };
            Cell { text: text.into_owned(), ..cell }
        });
        self.rows.push(shown.collect());
    }

    fn widths(&self, limit: usize) -> Vec<usize> {
        let widest = |at: usize| self.rows.iter().map(|row| row[at].width()).max();
        let mut widths: Vec<usize> =
            (0..self.columns.len()).map(|at| widest(at).unwrap_or(0)).collect();
        let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        let mut excess = total.saturating_sub(limit);
        // They give way down to their heading.
        let of = |kind| {
            let columns = self.columns.iter().enumerate();
            columns.filter(move |(_, column)| **column == kind).map(|(at, _)| at)
        };
        let first = of(Column::Wrapped).chain(of(Column::Sentence));
        let mut give_way = |at: usize, least: usize| {
            let spare = widths[at].saturating_sub(self.rows[0][at].width().max(least));
            let cut = spare.min(excess);
            widths[at] -= cut;
            excess -= cut;
        };
        first.chain(of(Column::Flexible)).for_each(|at| give_way(at, NAME));
        // The first name says what the row is about.
        let last: Vec<usize> = of(Column::Flexible).collect();
        last.into_iter().rev().for_each(|at| give_way(at, NAME_AT_LEAST));
        widths
    }

    /// The table as text, no wider than `limit` as far as that can be had.
    pub fn render(&self, limit: usize, colour: bool) -> String {
        let widths = self.widths(limit);
        let mut text = String::new();
        for row in &self.rows {
            let mut cells: Vec<_> = row
                .iter()
                .zip(&widths)
                .zip(&self.columns)
                .map(|((cell, width), column)| column.lines(&cell.text, *width))
                .map(Vec::into_iter)
                .collect();
            let height = cells.iter().map(ExactSizeIterator::len).max();
            for _ in 0..height.unwrap_or(1) {
                let mut line = String::new();
                let next = cells.iter_mut().map(|it| it.next().unwrap_or_default());
                let parts = next.zip(row).zip(&widths).zip(&self.columns);
                for (((shown, cell), width), column) in parts {
                    let gap = " ".repeat(width.saturating_sub(shown.chars().count()));
                    let shown = cell.style.paint(&shown, colour);
                    match column {
                        Column::Right => line.push_str(&format!("{gap}{shown}  ")),
                        _ => line.push_str(&format!("{shown}{gap}  ")),
                    }
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// How far in it begins what has a line of its own.
const ALONE: usize = 2;

/// Names and values, one pair a line.
#[derive(Debug, Default)]
pub struct Pairs {
    pairs: Vec<(String, Cell)>,
}

impl Pairs {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair.
    pub fn add(&mut self, name: &str, value: impl Into<Cell>) {
        let value: Cell = value.into();
        let text = printable(&value.text).into_owned();
        self.pairs.push((printable_line(name).into(), Cell { text, ..value }));
    }

    /// Adds a pair if there is a value.
    pub fn maybe<T: Into<Cell>>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// The pairs as text; long values go on in the next line. What is too long beside its
    /// name and cannot be broken has a line of its own.
    pub fn render(&self, limit: usize, colour: bool) -> String {
        let width = self.pairs.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0) + 2;
        let mut text = String::new();
        for (name, value) in &self.pairs {
            let mut name = name.as_str();
            let indent = name.len() - name.trim_start().len();
            for line in wrap(&value.text, limit - width) {
                let is_long = width + line.chars().count() > limit;
                if is_long && !name.is_empty() {
                    let name = Style::Head.paint(std::mem::take(&mut name), colour);
                    text.push_str(&format!("{name}\n"));
                }
                let width = if is_long { ALONE + indent } else { width };
                let line = value.style.paint(&line, colour);
                let gap = " ".repeat(width - name.chars().count());
                let name = Style::Head.paint(std::mem::take(&mut name), colour);
                text.push_str(&format!("{name}{gap}{line}\n"));
            }
        }
        text
    }
}

/// The text, or its end behind `…` if it is longer than `width`: of a path, the
/// end says more.
pub fn shorten(text: &str, width: usize) -> String {
    let len = text.chars().count();
    if len <= width {
        return text.into();
    }
    let kept = text.chars().skip(len + 1 - width.max(1));
    "…".chars().chain(kept).collect()
}

/// The text, or its beginning before `…` if it is longer than `width`.
fn begin(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width.max(1) - 1).chain(['…']).collect()
}

/// The text in lines no longer than `width`, broken at spaces; what is indented
/// stays so. A path or an address that is longer stays whole: somebody will copy it. Any
/// other word is broken. The codes of colours take no room.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let words = paragraph.trim_start_matches(' ');
        let indent = &paragraph[..paragraph.len() - words.len()];
        let mut line = indent.to_owned();
        let room = width.saturating_sub(indent.len());
        let parts = words.split(' ').flat_map(|word| match word.contains('/') {
            true => vec![word.to_owned()],
            false => pieces(word, room),
        });
        for word in parts {
            let full = room_of(&line) + 1 + room_of(&word) > width;
            if full && line.len() > indent.len() {
                lines.push(std::mem::replace(&mut line, indent.to_owned()));
            }
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A text in parts that are no longer than `width`.
fn pieces(text: &str, width: usize) -> Vec<String> {
    if room_of(text) <= width {
        return vec![text.to_owned()];
    }
    let all: Vec<char> = text.chars().collect();
    all.chunks(width.max(1)).map(|part| part.iter().collect()).collect()
}

/// How many places a text takes on a screen: the codes of colours (`ESC [ … m`) take none.
fn room_of(text: &str) -> usize {
    let mut is_code = false;
    let is_shown = |letter: &char| {
        let was_code = is_code;
        is_code = *letter == '\x1b' || is_code && *letter != 'm';
        !was_code && !is_code
    };
    text.chars().filter(is_shown).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_fit() {
        let columns =
            [("NAME", Column::Left), ("SIZE", Column::Right), ("AT", Column::Flexible)];
        let mut table = Table::new(&columns);
        table.row(vec!["a".into(), "10 GiB".into(), "/x".into()]);
        table.row(vec!["longer".into(), "1 B".into(), "/y".repeat(60).into()]);
        let text = table.render(40, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NAME      SIZE  AT");
        assert_eq!(lines[1], "a       10 GiB  /x");
        assert_eq!(lines[2].chars().count(), 40);
        assert!(lines[2].starts_with("longer     1 B  …"), "{}", lines[2]);
    }

    #[test]
    fn short_names_give_way_too_if_the_rest_needs_the_room_and_the_first_last() {
        let columns = [
            ("DISK", Column::Flexible),
            ("FROM", Column::Flexible),
            ("TO", Column::Flexible),
            ("LEFT", Column::Right),
        ];
        let mut table = Table::new(&columns);
        table.row(["web/vdb", "newarr", "vmfast", "18 min 51 s"].map(Into::into).into());
        let row = |limit| table.render(limit, false).lines().nth(1).map(str::to_owned);
        assert_eq!(row(36).as_deref(), Some("web/vdb  newarr  vmfast  18 min 51 s"));
        assert_eq!(row(35).as_deref(), Some("web/vdb  newarr  …fast  18 min 51 s"));
        assert_eq!(row(33).as_deref(), Some("web/vdb  …warr  …ast  18 min 51 s"));
        assert_eq!(row(29).as_deref(), Some("…vdb  …arr  …ast  18 min 51 s"));
    }

    #[test]
    fn the_codes_of_colours_take_no_room() {
        let painted = Style::Bad.paint("not served", true);
        assert_eq!((room_of(&painted), room_of("é…")), (10, 2));
        let line = format!("db  {painted}  1");
        assert_eq!(wrap(&line, 17), [line.as_str()]);
        assert_eq!(wrap(&line, 16).len(), 2);
    }

    #[test]
    fn a_sentence_gives_way_at_its_end_and_before_a_name() {
        let columns = [("NAME", Column::Flexible), ("WHAT", Column::Sentence)];
        let mut table = Table::new(&columns);
        table.row(vec!["migration".into(), "40.0 MiB/s, 5000 IO/s".into()]);
        let shown = |limit| table.render(limit, false).lines().last().map(str::to_owned);
        assert_eq!(shown(80).as_deref(), Some("migration  40.0 MiB/s, 5000 IO/s"));
        assert_eq!(shown(24).as_deref(), Some("migration  40.0 MiB/s, …"));
        assert_eq!(shown(18).as_deref(), Some("…gration  40.0 Mi…"));
    }

    #[test]
    fn what_has_to_be_read_goes_on_in_the_next_line() {
        let columns = [("WHY", Column::Wrapped), ("BAR", Column::Left)];
        let mut table = Table::new(&columns);
        table.row(vec!["all of this is wanted".into(), "none".into()]);
        assert_eq!(
            table.render(80, false),
            "WHY                    BAR\nall of this is wanted  none\n"
        );
        let narrow = "WHY            BAR\nall of this    none\nis wanted\n";
        assert_eq!(table.render(19, false), narrow);
    }

    #[test]
    fn long_values_go_on_in_the_next_line() {
        let mut pairs = Pairs::new();
        pairs.add("reason", "the destination is full");
        assert_eq!(pairs.render(24, false), "reason  the destination\n        is full\n");
    }

    #[test]
    fn what_nobody_copies_is_broken_where_it_is_too_long() {
        let long = "x".repeat(20);
        assert_eq!(wrap(&format!("a {long} b"), 12), ["a", &long[..12], "xxxxxxxx b"]);
        let path = format!("/{long}");
        assert_eq!(wrap(&format!("a {path} b"), 12), ["a", &path, "b"]);
        let mut table = Table::new(&[("WHY", Column::Wrapped), ("BAR", Column::Left)]);
        table.row(vec![path.into(), "none".into()]);
        let text = table.render(20, false);
        assert!(text.lines().all(|line| line.chars().count() <= 20), "{text}");
    }

    #[test]
    fn an_address_that_is_too_long_beside_its_name_has_a_line_of_its_own() {
        let mut pairs = Pairs::new();
        pairs.add("image", "nbd+unix:///a/socket");
        pairs.add("state", "up");
        assert_eq!(pairs.render(22, false), "image\n  nbd+unix:///a/socket\nstate  up\n");
    }

    #[test]
    fn what_is_indented_stays_so() {
        let text = "Commands:\n  create  Make one\n\n  remove it, and its image";
        let lines = wrap(text, 18);
        let expected =
            ["Commands:", "  create  Make one", "", "  remove it, and", "  its image"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_others_have_named_breaks_no_line_and_reaches_no_terminal() {
        let columns = [("NAME", Column::Left), ("AT", Column::Flexible)];
        let mut table = Table::new(&columns);
        table.row(vec!["a".into(), "/x\ny\u{1b}[31m".into()]);
        let text = table.render(80, false);
        assert_eq!(text, "NAME  AT\na     /x\\ny\\u{1b}[31m\n");
        let mut pairs = Pairs::new();
        pairs.add("image", "/x\r\u{1b}[2J");
        assert_eq!(pairs.render(80, false), "image  /x\\r\\u{1b}[2J\n");
    }

    #[test]
    fn colour_does_not_count_for_the_width() {
        let mut table = Table::new(&[("A", Column::Left), ("B", Column::Left)]);
        table.row(vec![Cell::styled("x", Style::Bad), "y".into()]);
        assert!(table.render(80, true).contains("\x1b[31mx\x1b[0m  y"));
    }
}
