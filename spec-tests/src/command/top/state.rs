//! What the screen shows, and what keys change of it.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::live::{Detail, Pool};
use super::rates::Rates;
use super::table::{Column, sorted};

/// What a key asks the process or the disk for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Quit,
    /// What is shown has changed.
    Look,
    Snapshot,
    Dump(usize),
    Record(usize),
}

pub(super) struct State {
    /// In the order of the table.
    pub(super) pools: Vec<Pool>,
    pub(super) rates: Rates,
    pub(super) column: Column,
    pub(super) is_reversed: bool,
    /// The number of the pool that is selected in the table.
    pub(super) selected: usize,
    /// The number of the pool that is open.
    pub(super) open: Option<usize>,
    pub(super) detail: Option<Detail>,
    /// The first line that is shown of the open pool.
    pub(super) scroll: u16,
    /// What the last key did.
    pub(super) told: String,
    /// The files of recordings, by the number of their pool.
    pub(super) recordings: BTreeMap<usize, String>,
}

impl State {
    pub(super) fn new(column: Column, open: Option<usize>) -> Self {
        Self {
            pools: Vec::new(),
            rates: Rates::default(),
            column,
            is_reversed: false,
            selected: open.unwrap_or(1),
            open,
            detail: None,
            scroll: 0,
            told: String::new(),
            recordings: BTreeMap::new(),
        }
    }

    pub(super) fn update(&mut self, pools: &[Pool], rates: Rates) {
        self.rates = rates;
        self.pools = sorted(pools, &self.rates, self.column, self.is_reversed);
    }

    /// The place of the selected pool in the table.
    pub(super) fn place(&self) -> usize {
        self.pools.iter().position(|pool| pool.pool == self.selected).unwrap_or_default()
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Wish {
        let shown = self.open.unwrap_or(self.selected);
        let is = |letter| key.code == KeyCode::Char(letter);
        let is_interrupt = is('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is('q') || is_interrupt {
            Wish::Quit
        } else if is('s') {
            Wish::Snapshot
        } else if is('d') {
            Wish::Dump(shown)
        } else if is('R') {
            Wish::Record(shown)
        } else if self.open.is_some() {
            self.press_in_pool(key.code)
        } else {
            self.press_in_table(key.code)
        }
    }

    fn press_in_pool(&mut self, key: KeyCode) -> Wish {
        if key == KeyCode::Esc || key == KeyCode::Backspace {
            (self.open, self.detail) = (None, None);
            return Wish::Look;
        }
        let steps = [
            (KeyCode::Up, -1),
            (KeyCode::Down, 1),
            (KeyCode::PageUp, -PAGE),
            (KeyCode::PageDown, PAGE),
            (KeyCode::Home, i16::MIN),
        ];
        let step = steps.iter().find(|(code, _)| *code == key).map_or(0, |(_, step)| *step);
        self.scroll = self.scroll.saturating_add_signed(step);
        Wish::Nothing
    }

    fn press_in_table(&mut self, key: KeyCode) -> Wish {
        if key == KeyCode::Enter {
            (self.open, self.scroll) = (Some(self.selected), 0);
            return Wish::Look;
        }
        if key == KeyCode::Up {
            self.select(-1);
        } else if key == KeyCode::Down {
            self.select(1);
        } else if key == KeyCode::Left {
            self.sort_by(self.column.neighbour(-1), false);
        } else if key == KeyCode::Right {
            self.sort_by(self.column.neighbour(1), false);
        } else if key == KeyCode::Char('r') {
            self.sort_by(self.column, !self.is_reversed);
        }
        Wish::Nothing
    }

    fn select(&mut self, step: isize) {
        let place =
            self.place().saturating_add_signed(step).min(self.pools.len().saturating_sub(1));
        self.selected = self.pools.get(place).map_or(self.selected, |pool| pool.pool);
    }

    fn sort_by(&mut self, column: Column, is_reversed: bool) {
        (self.column, self.is_reversed) = (column, is_reversed);
        self.pools = sorted(&self.pools, &self.rates, column, is_reversed);
        self.told = format!("sorted by {}", column.title());
    }
}

/// Lines of a page.
const PAGE: i16 = 10;
