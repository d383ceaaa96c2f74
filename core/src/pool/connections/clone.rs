//! Copying connections, where their payloads can be copied. By hand, because a derived `Clone`
//! would ask for it of the shell instead of its payloads.

use super::super::action::Shell;
use super::{Connection, Connections, Doing};

impl<S: Shell> Clone for Connections<S>
where
    S::Conn: Clone,
    S::Waiter: Clone,
{
    fn clone(&self) -> Self {
        let Self { slots, lists, last_number, expiries } = self;
        Self {
            slots: slots.clone(),
            lists: *lists,
            last_number: *last_number,
            expiries: expiries.clone(),
        }
    }
}

impl<S: Shell> Clone for Connection<S>
where
    S::Conn: Clone,
    S::Waiter: Clone,
{
    fn clone(&self) -> Self {
        let Self { number, generation, service, created, expires, doing, list, previous, next } =
            self;
        Self {
            number: *number,
            generation: *generation,
            service: *service,
            created: *created,
            expires: *expires,
            doing: doing.clone(),
            list: *list,
            previous: *previous,
            next: *next,
        }
    }
}

impl<S: Shell> Clone for Doing<S>
where
    S::Conn: Clone,
    S::Waiter: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Self::Pending { owner, handshaken } => {
                Self::Pending { owner: owner.clone(), handshaken: *handshaken }
            }
            Self::Available { conn, since } => {
                Self::Available { conn: conn.clone(), since: *since }
            }
            &Self::InUse { since, purpose, interrupted } => {
                Self::InUse { since, purpose, interrupted }
            }
        }
    }
}
