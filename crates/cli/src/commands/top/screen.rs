//! The screen: totals, the table, and what the keys are.
//!
//! The terminal is put back as it was however this ends: on `q`, on a signal, on an
//! error, and by a hook on a panic.

use std::io;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{self, EnterAlternateScreen};
use ratatui::layout::{Constraint, Layout, Rect, Size};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table};
use ratatui::{DefaultTerminal, Frame, TerminalOptions, Viewport};
use sterna_api::{MemoryTop, Top};
use sterna_console::connect::{Link, explain};
use sterna_console::format::{count, iops, moment, rate, response};

use super::column::{Column, GAP, LOADS, MEMORY, NAME_MIN, Named, that_fit};
use super::memory;
use super::source::{News, Source};
use super::view::{Rows, View, Wish};

/// How often keys and news are looked for: at once, for the eye.
const LOOK: Duration = Duration::from_millis(50);
/// An answer that takes longer is worth a word.
const LATE: Duration = Duration::from_secs(3);

/// More columns and rows than any screen has. Each cell takes memory, and a terminal may claim
/// 65,535 of both.
const SCREEN_MAX: Size = Size { width: 1000, height: 500 };

/// Rows of the screen that are not the table's, nor totals: one of news, one of keys.
const AROUND: u16 = 2;

const FOOT: &str = "q quit  d/c/s/v disk/class/datastore/vm  \u{2190}\u{2192} sort  r order  / filter  space pause";

/// What is on the screen.
struct Screen {
    view: View,
    top: Top,
    /// The memory of the host and of VMs, once the daemon has told it.
    memory: Option<Box<MemoryTop>>,
    /// Why there is nothing newer.
    problem: Option<String>,
    asked: Option<Instant>,
}

/// Draws until somebody has seen enough.
pub(super) fn run(by: Rows, every: Duration, link: &Link) -> anyhow::Result<()> {
    let window_s = every.as_secs_f64();
    // Before the screen is touched: what is wrong from the start is said as always.
    let top = link.ask(async |client| Ok(client.top(by.loads(), window_s).await?))?;
    let source = Source::start(link.silent().client().clone(), window_s)?;
    let mut screen =
        Screen { view: View::new(by), top, memory: None, problem: None, asked: None };
    let ended = begin().and_then(|at| {
        // Dropped, it says where it cannot show the cursor, and panics where nobody can be told.
        let mut at = ManuallyDrop::new(at);
        let ended = screen.follow(&mut at, &source, every);
        let _ = at.show_cursor();
        ended
    });
    // A terminal that is gone cannot be put back, and nobody is left to tell.
    let _ = ratatui::try_restore();
    ended
}

/// Takes the terminal over.
fn begin() -> anyhow::Result<DefaultTerminal> {
    let (width, height) = terminal::size()?;
    let viewport = Viewport::Fixed(drawn(Size { width, height }));
    let terminal = ratatui::try_init_with_options(TerminalOptions { viewport })?;
    execute!(io::stdout(), EnterAlternateScreen)?;
    Ok(terminal)
}

/// What is drawn of a terminal.
fn drawn(terminal: Size) -> Rect {
    let width = terminal.width.min(SCREEN_MAX.width);
    let height = terminal.height.min(SCREEN_MAX.height);
    Rect { x: 0, y: 0, width, height }
}

impl Screen {
    fn follow(
        &mut self,
        terminal: &mut DefaultTerminal,
        source: &Source,
        every: Duration,
    ) -> anyhow::Result<()> {
        let mut due = Instant::now() + every;
        let mut area = terminal.get_frame().area();
        loop {
            let now = drawn(terminal.size()?);
            if now != area {
                terminal.resize(now)?;
                area = now;
            }
            terminal.draw(|frame| self.draw(frame))?;
            if event::poll(LOOK)? {
                match self.take(&event::read()?, self.columns(area.width)) {
                    Some(Wish::Quit) => return Ok(()),
                    Some(Wish::Rows) => due = Instant::now(),
                    None => {}
                }
            }
            for news in source.news() {
                match news {
                    News::Rows(rows) => self.hear((*rows).map_err(Into::into)),
                    News::Memory(_) if self.view.paused => {}
                    News::Memory(memory) => self.memory = Some(memory),
                    News::Stop => return Ok(()),
                }
            }
            if Instant::now() >= due && self.asked.is_none() {
                due = Instant::now() + every;
                self.asked = Some(Instant::now());
                source.ask(self.view.by.loads());
            }
        }
    }

    fn take(&mut self, event: &Event, columns: usize) -> Option<Wish> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.view.press(*key, columns)
            }
            _ => None,
        }
    }

    fn hear(&mut self, rows: anyhow::Result<Top>) {
        self.asked = None;
        match rows {
            Ok(top) => {
                self.problem = None;
                // An answer to what was asked before a key is too late; other rows are
                // shown even in a pause, for there is nothing else to show.
                let other = top.by != self.top.by;
                if top.by == self.view.by.loads() && (other || !self.view.paused) {
                    self.top = top;
                }
            }
            Err(error) => self.problem = Some(explain(&error).message),
        }
    }

    fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        let totals = self.totals();
        let height = totals.len() as u16;
        let [head, news, body, foot] = Layout::vertical([
            Constraint::Length(height),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Text::from(totals), head);
        frame.render_widget(self.news(), news);
        let shown = usize::from(area.height.saturating_sub(height + AROUND + 1));
        let width = usize::from(area.width);
        let table = match self.view.by {
            Rows::Loads(_) => table(&mut self.view, &self.top.rows, &LOADS, width, shown),
            Rows::Vms => {
                let vms = self.memory.as_ref().map_or(&[][..], |memory| &memory.vms);
                table(&mut self.view, vms, &MEMORY, width, shown)
            }
        };
        frame.render_widget(table, body);
        frame.render_widget(Line::from(FOOT).style(Modifier::DIM), foot);
    }

    fn totals(&self) -> Vec<Line<'static>> {
        let Top { total, rows, .. } = &self.top;
        let busy =
            rows.iter().filter(|row| super::column::outstanding(row) > 0.0).count();
        let bold = |text: String| Span::styled(text, Modifier::BOLD);
        let by = self.view.by.as_str();
        let mut totals = vec![
            Line::from(vec![
                bold(format!("sterna top by {by}")),
                Span::raw(format!(
                    "  {}  {}, {busy} of {} busy, {}",
                    moment(self.top.at_ms / 1000),
                    count(self.top.disks, "disk"),
                    rows.len(),
                    count(self.top.migrations, "migration"),
                )),
            ]),
            Line::from(format!(
                "all disks: {} IO/s, {}, read {}, write {}, p99 {}",
                iops(total.iops()),
                rate(total.bytes_per_second()),
                response(total.read.response_us),
                response(total.write.response_us),
                response(total.p99_us),
            )),
        ];
        let memory = self.memory.as_ref().and_then(|memory| memory::line(memory));
        totals.extend(memory.map(Line::from));
        totals
    }

    /// What is out of the ordinary.
    fn news(&self) -> Line<'static> {
        let late = self.asked.is_some_and(|asked| asked.elapsed() > LATE);
        let mut words = Vec::new();
        if let Some(problem) = &self.problem {
            words.push(problem.clone());
        } else if late {
            words.push("the daemon does not answer".into());
        }
        if self.view.paused {
            words.push("paused".into());
        }
        match (self.view.typing, self.view.filter.as_str()) {
            (true, filter) => words.push(format!("filter: {filter}_")),
            (false, "") => {}
            (false, filter) => words.push(format!("filter: {filter}")),
        }
        Line::from(words.join("  ")).style(Modifier::BOLD)
    }

    /// How many columns there are.
    fn columns(&self, width: u16) -> usize {
        let width = usize::from(width);
        match self.view.by {
            Rows::Loads(_) => that_fit(&LOADS, width).len(),
            Rows::Vms => that_fit(&MEMORY, width).len(),
        }
    }
}

fn table<R: Named>(
    view: &mut View,
    all: &[R],
    columns: &'static [Column<R>],
    width: usize,
    shown: usize,
) -> Table<'static> {
    let columns = that_fit(columns, width);
    let rows = view.rows(all, columns);
    // What is left for names.
    let taken: usize = columns.iter().map(|column| column.width + GAP).sum();
    let name_width = width.saturating_sub(taken);
    let above = view.above.min(rows.len().saturating_sub(shown));
    let body = rows.iter().skip(above).take(shown).map(|row| {
        let number = |column: &Column<R>| right(&column.text(row), column.width);
        let name = Cell::from(sterna_console::table::shorten(row.name(), name_width));
        Row::new([name].into_iter().chain(columns.iter().map(number)))
    });
    let body: Vec<Row<'static>> = body.collect();
    view.above = above;
    view.page = shown.max(1);
    let sorted = |at: Option<usize>| match view.sort == at {
        true => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        false => Style::new().add_modifier(Modifier::BOLD),
    };
    let name = Cell::from(view.by.as_str().to_uppercase()).style(sorted(None));
    let heads = columns
        .iter()
        .enumerate()
        .map(|(at, column)| right(column.head, column.width).style(sorted(Some(at))));
    let widths = columns.iter().map(|column| column.width as u16);
    let widths = [Constraint::Min(NAME_MIN as u16)]
        .into_iter()
        .chain(widths.map(Constraint::Length));
    Table::new(body, widths)
        .column_spacing(GAP as u16)
        .header(Row::new([name].into_iter().chain(heads)))
}

fn right(text: &str, width: usize) -> Cell<'static> {
    Cell::from(format!("{text:>width$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_terminal_that_claims_to_be_huge_a_part_is_drawn() {
        let usual = Size { width: 80, height: 24 };
        assert_eq!(drawn(usual).as_size(), usual);
        let huge = Size { width: u16::MAX, height: u16::MAX };
        assert_eq!(drawn(huge).as_size(), SCREEN_MAX);
    }
}
