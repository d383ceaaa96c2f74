//! How addresses of servers stand in a trace.

use std::collections::BTreeMap;

use crate::address::ServerAddress;
use crate::trace::Disclosure;
use crate::trace::fields::{Found, wrong};

/// Names for the addresses of one trace. Equal addresses have equal names, and the replay needs no more.
pub(super) struct Names {
    disclosure: Disclosure,
    /// Of addresses that are left out.
    numbers: BTreeMap<ServerAddress, usize>,
}

impl Names {
    pub(super) const fn new(disclosure: Disclosure) -> Self {
        Self { disclosure, numbers: BTreeMap::new() }
    }

    /// As it is, its hash, or its number in the order in which the trace names them.
    pub(super) fn name(&mut self, address: &ServerAddress) -> String {
        match self.disclosure.apply(&address.to_string()) {
            Some(text) => text,
            None => format!("#{}", self.number(address)),
        }
    }

    fn number(&mut self, address: &ServerAddress) -> usize {
        if let Some(&number) = self.numbers.get(address) {
            return number;
        }
        let number = self.numbers.len() + 1;
        if number > NAMES_MAX {
            return 0;
        }
        self.numbers.insert(address.clone(), number);
        number
    }
}

/// The address of a name. What stands for an address is held like the path of a socket, so that it is shown as it is.
pub(super) fn address(key: &str, name: &str) -> Found<ServerAddress> {
    let is_stand_in = name.strip_prefix('#').is_some_and(|rest| {
        rest.len() <= STAND_IN_MAX && rest.chars().all(|it| it.is_ascii_alphanumeric())
    });
    if is_stand_in {
        return Ok(ServerAddress::Unix { path: name.to_owned() });
    }
    name.parse().map_err(|_| wrong(key, "is no address of a server"))
}

/// Addresses that are left out and still told apart: more than any deployment has. All others have one number, and are
/// not.
const NAMES_MAX: usize = 1 << 16;
/// A hash has 16 digits, and a number fewer.
const STAND_IN_MAX: usize = 32;
