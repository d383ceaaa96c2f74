//! The screen: draws the state, and does what keys ask for.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{DefaultTerminal, Frame};

use super::live::{Live, Refused};
use super::rates::{Moment, Rates};
use super::state::{State, Wish};
use super::table::{Column, Grid, SPACING};
use super::text::{self, Kind};
use super::{Arguments, snapshot};
use crate::command::Failure;
use crate::command::input::at;

/// The longest wait that has no colour of its own.
const LONG_WAIT_MS: f64 = 1000.0;

/// Before the selected pool.
const SELECTED: &str = "> ";

pub(super) fn run(live: Live, arguments: &Arguments, open: Option<usize>) -> Result<(), Failure> {
    let folder = arguments.into.as_deref().unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(at(folder))?;
    let state = State::new(arguments.sort, open);
    let now = Moment::new(Vec::new());
    let mut app = App { live, state, now, interval: arguments.interval, folder };
    let mut terminal = ratatui::try_init()?;
    let ended = app.run(&mut terminal);
    let restored = ratatui::try_restore();
    ended?;
    Ok(restored?)
}

struct App {
    live: Live,
    state: State,
    /// The last look.
    now: Moment,
    interval: Duration,
    folder: PathBuf,
}

impl App {
    fn run(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
        self.look()?;
        let mut next = Instant::now() + self.interval;
        loop {
            terminal.draw(|frame| draw(frame, self))?;
            let left = next.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                self.look()?;
                next = Instant::now() + self.interval;
                continue;
            }
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
                && !self.grant(key)?
            {
                return Ok(());
            }
        }
    }

    fn look(&mut self) -> Result<(), Failure> {
        let now = Moment::new(self.live.pools()?);
        let rates = Rates::between(&self.now, &now);
        self.state.update(&now.pools, rates);
        self.now = now;
        self.open()
    }

    fn open(&mut self) -> Result<(), Failure> {
        self.state.detail = self.state.open.map(|number| self.live.pool(number)).transpose()?;
        Ok(())
    }

    /// Does what a key asks for. `false` to quit.
    fn grant(&mut self, key: event::KeyEvent) -> Result<bool, Failure> {
        let Self { live, state, now, folder, .. } = self;
        let told = match state.press(key) {
            Wish::Quit => return Ok(false),
            Wish::Nothing => return Ok(true),
            Wish::Look => return self.open().map(|()| true),
            Wish::Snapshot => snapshot(live, now, &state.rates, folder)
                .map(|path| format!("snapshot: {}", path.display())),
            Wish::Dump(pool) => {
                live.write("dump", pool, folder).map(|file| format!("flight recorder: {file}"))
            }
            Wish::Record(pool) => match state.recordings.remove(&pool) {
                Some(file) => live.stop(pool).map(|()| format!("recorded: {file}")),
                None => live.write("record", pool, folder).map(|file| {
                    let told = format!("recording pool {pool} until R or q: {file}");
                    state.recordings.insert(pool, file);
                    told
                }),
            },
        };
        state.told = match told {
            Ok(told) => told,
            // The process goes on, and so does this.
            Err(error) if error.is::<Refused>() => error.to_string(),
            Err(error) => return Err(error),
        };
        Ok(true)
    }
}

fn draw(frame: &mut Frame<'_>, app: &App) {
    let [title, body, told, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let greeting = &app.live.greeting;
    let text = format!(
        "cenote top: {}, process {}, {}, every {:?}",
        greeting.program, greeting.process, app.now.at, app.interval
    );
    frame.render_widget(Line::from(text).bold(), title);
    match &app.state.detail {
        Some(detail) => {
            let lines = text::lines(detail, &app.state.rates).into_iter().map(styled);
            let pool = Paragraph::new(Text::from_iter(lines)).wrap(Wrap { trim: false });
            frame.render_widget(pool.scroll((app.state.scroll, 0)), body);
        }
        None => draw_table(frame, body, &app.state),
    }
    frame.render_widget(Line::from(app.state.told.as_str()).italic(), told);
    let actions = "s snapshot  d dump  R record  q quit";
    let text = if app.state.open.is_some() {
        format!("Esc table  up/down scroll  {actions}")
    } else {
        format!("Enter open  left/right sort  r reverse  {actions}")
    };
    frame.render_widget(Line::from(text).reversed(), keys);
}

fn styled((kind, text): text::Line) -> Line<'static> {
    let styled = Line::from(text);
    match kind {
        Kind::Title => styled.bold(),
        Kind::Trouble => styled.fg(Color::Yellow),
        Kind::Plain => styled,
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let arrow = if state.is_reversed { "^" } else { "v" };
    let width = usize::from(area.width).saturating_sub(SELECTED.len());
    let grid = Grid::new(&state.pools, &state.rates, (state.column, arrow), width);
    let place = |column: Column, text: String| {
        let text = Text::from(text);
        Cell::from(if column.is_text() { text } else { text.right_aligned() })
    };
    let cells = |texts: Vec<String>| {
        let cells = grid.columns.iter().zip(texts).map(|(column, text)| place(*column, text));
        Row::new(cells.collect::<Vec<_>>())
    };
    let rows = state.pools.iter().zip(grid.rows).map(|(pool, row)| {
        let is_slow = pool.longest_wait.is_some_and(|wait| wait > LONG_WAIT_MS);
        let style =
            match (pool.status.as_str(), is_slow || state.rates.of(pool.pool).failures > 0.0) {
                ("ready", false) => Style::new(),
                ("ready", true) => Style::new().fg(Color::Yellow),
                _ => Style::new().fg(Color::Red),
            };
        cells(row).style(style)
    });
    let widths = grid.widths.iter().map(|width| u16::try_from(*width).unwrap_or(u16::MAX));
    let table = Table::new(rows, widths.map(Constraint::Length))
        .header(cells(grid.heads).underlined())
        .column_spacing(SPACING)
        .highlight_symbol(SELECTED)
        .row_highlight_style(Style::new().bold());
    let mut selection = TableState::new().with_selected(state.place());
    frame.render_stateful_widget(table, area, &mut selection);
}
