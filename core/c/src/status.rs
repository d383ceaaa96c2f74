//! Results of calls.

use std::cell::RefCell;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pointer::Text;

/// The result of a call. After every status but `CENOTE_STATUS_OK` nothing has changed, unless it says so.
/// `cenote_last_error` has the reason as a text.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// A pointer is null or not aligned.
    BadPointer = 1,
    /// No such pool, client or cause: it is null, was freed, or is of another kind.
    BadHandle = 2,
    /// Another thread is in a call with this pool or client: take a lock around each call.
    Busy = 3,
    /// The field `size` of a structure is not the size that this library knows.
    BadSize = 4,
    /// A number is none of its enum, or out of range.
    BadValue = 5,
    /// A text is not UTF-8.
    NotUtf8 = 6,
    /// A text is not what it has to be: an address, or a connection string.
    BadText = 7,
    /// No pool or client can work with these options.
    BadOptions = 8,
    /// The machine refuses the input, which makes no sense in its state.
    Misuse = 9,
    /// The buffer is too short for the text. It holds the beginning, and the length is the whole one.
    Truncated = 10,
    /// There is nothing of that kind: no error in the last action, no such connection or server, no trace.
    Nothing = 11,
    /// There are as many handles as there can be.
    Full = 12,
    /// A bug of the library. The pool or client cannot be used any more; free it.
    Panicked = 13,
}

impl Status {
    /// For Rust: anything but `Ok` is an error.
    pub fn into_result(self) -> Result<(), Self> {
        if self == Self::Ok { Ok(()) } else { Err(self) }
    }
}

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

/// The value that has a number in an enum of C.
pub(crate) fn numbered<T: Copy>(values: &[T], number: u32, name: &str) -> Result<T, Failure> {
    let found = values.get(number as usize).copied();
    found.ok_or_else(|| Failure::new(Status::BadValue, format!("{name}: there is no {number}")))
}

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a call of C: no panic gets out, and the text of a failure is kept for this thread.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let bug = || Failure::new(Status::Panicked, "a bug of libcenote: a panic, see stderr");
    let Err(Failure { status, text }) = outcome.unwrap_or_else(|_| Err(bug())) else {
        return Status::Ok;
    };
    // While a thread ends, it keeps no texts.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = text);
    status
}

/// The reason of the last call on this thread that did not return `CENOTE_STATUS_OK`.
///
/// Like all texts: at most `capacity` bytes are written, the last of them 0, and `length` gets the
/// length of the whole text without it. `buffer` may be null if `capacity` is 0; `length` may be
/// null.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_last_error(
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    // SAFETY: the caller's promise.
    let target = unsafe { Text::new(buffer, capacity, length) };
    let text = LAST_ERROR.try_with(|last| last.borrow().clone()).unwrap_or_default();
    // Its own failures leave the text as it is.
    match target.write(&text) {
        Ok(()) => Status::Ok,
        Err(Failure { status, text: _ }) => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(call(|| panic!("on purpose")), Status::Panicked);
        assert_eq!(call(|| numbered(&[0; 7], 7, "kind").map(drop)), Status::BadValue);
        assert_eq!(LAST_ERROR.with(|last| last.borrow().clone()), "kind: there is no 7");
        assert_eq!(call(|| Ok(())), Status::Ok);
    }
}
