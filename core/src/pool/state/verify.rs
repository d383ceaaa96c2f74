//! Checks of what must hold.

/// Whether something that must hold does; if not, what it is.
pub(in crate::pool) type Verdict = Result<(), &'static str>;

pub(in crate::pool) const fn ensure(holds: bool, otherwise: &'static str) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise) }
}
