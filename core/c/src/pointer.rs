//! What C passes by pointer. The only place where such a pointer is followed.
//!
//! Every function here is `unsafe` for one reason: the caller has promised, as the header demands, that
//! a pointer which is neither null nor misaligned points to a value of its type that no other thread
//! uses during the call. Null, misaligned, of the wrong size and not UTF-8 are checked.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr;

use crate::status::{Failure, Status};

/// A structure that C fills or has filled.
///
/// # Safety
///
/// It is `repr(C)`, its first field is a `u32`, its size, and zero is a value of all fields. If [`read`] copies it, every
/// bit pattern is.
pub(crate) unsafe trait Sized32: Copy {
    /// Its name in C.
    const NAME: &'static str;
}

/// Declares a structure that C fills or has filled, under its name in C. All of its fields are integers, flags or
/// pointers, of which zero is a value. With `default`, they are zero at first.
macro_rules! sized_struct {
    ($name:ident, $c:literal) => {
        // It is `repr(C)` with its size first: at no other offset, and of no other type.
        const _: () = assert!(core::mem::offset_of!($name, size) == 0);
        const _: fn(&$name) -> &u32 = |it| &it.size;
        // SAFETY: as checked and said above.
        unsafe impl $crate::pointer::Sized32 for $name {
            const NAME: &'static str = $c;
        }
    };
    ($name:ident, $c:literal, default) => {
        $crate::pointer::sized_struct!($name, $c);
        /// Nothing but the size.
        impl Default for $name {
            fn default() -> Self {
                $crate::pointer::sized()
            }
        }
    };
}
pub(crate) use sized_struct;

/// A structure of which all fields but its size are zero.
pub(crate) fn sized<T: Sized32>() -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: zero is a value of all fields, and the first one is the size.
    unsafe {
        value.as_mut_ptr().cast::<u32>().write(size_of::<T>() as u32);
        value.assume_init()
    }
}

fn check<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    let problem = if pointer.is_null() {
        "is null"
    } else if !pointer.is_aligned() {
        "is not aligned"
    } else {
        return Ok(());
    };
    Err(Failure::new(Status::BadPointer, format!("the pointer to {name} {problem}")))
}

/// Checks the size in a structure's first field, before anything behind it is touched.
///
/// # Safety
///
/// See the module; only the first four bytes have to be there.
unsafe fn check_size<T: Sized32>(pointer: *const T) -> Result<(), Failure> {
    check(pointer, T::NAME)?;
    // SAFETY: the pointer is neither null nor misaligned, and the structure begins with its size.
    let size = unsafe { pointer.cast::<u32>().read() };
    if size as usize == size_of::<T>() {
        return Ok(());
    }
    let (name, own) = (T::NAME, size_of::<T>());
    let text = format!("{name}.size is {size}, but the structure of this library has {own} bytes");
    Err(Failure::new(Status::BadSize, text))
}

/// Reads a structure.
///
/// # Safety
///
/// See the module.
pub(crate) unsafe fn read<T: Sized32>(pointer: *const T) -> Result<T, Failure> {
    // SAFETY: the caller's promise, for `check_size`; with its size confirmed the structure is whole, and
    // every bit pattern of it is a value.
    unsafe {
        check_size(pointer)?;
        Ok(pointer.read())
    }
}

/// Where a structure is written to, once its size is confirmed.
pub(crate) struct Out<T>(*mut T);

impl<T: Sized32> Out<T> {
    /// # Safety
    ///
    /// See the module; the structure stays valid until it is written.
    pub(crate) unsafe fn new(pointer: *mut T) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        unsafe { check_size(pointer)? };
        Ok(Self(pointer))
    }
}

impl<T> Out<T> {
    /// For a number or a handle, which has no size.
    ///
    /// # Safety
    ///
    /// See the module; the place stays valid until it is written.
    pub(crate) unsafe fn plain(pointer: *mut T, name: &str) -> Result<Self, Failure> {
        check(pointer, name)?;
        Ok(Self(pointer))
    }

    pub(crate) fn write(self, value: T) {
        // SAFETY: `new` and `plain` have checked the pointer, and their caller promised the place.
        unsafe { self.0.write(value) };
    }
}

/// Reads a text that ends with a zero byte.
///
/// # Safety
///
/// See the module; the text has its zero byte, and does not change until the result is dropped.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let found = unsafe { optional_text(pointer, name)? };
    found.ok_or_else(|| Failure::new(Status::BadPointer, format!("the pointer to {name} is null")))
}

/// Reads a text that ends with a zero byte, if there is one.
///
/// # Safety
///
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the pointer is not null, and the caller promised the zero byte.
    let text = unsafe { CStr::from_ptr(pointer) };
    let bad = |error| Failure::new(Status::NotUtf8, format!("{name} is not UTF-8: {error}"));
    text.to_str().map(Some).map_err(bad)
}

/// Reads the bytes of an ObjectId, if there is one.
///
/// # Safety
///
/// See the module.
pub(crate) unsafe fn optional_bytes(pointer: *const u8) -> Option<[u8; 12]> {
    // SAFETY: the caller's promise, for twelve bytes, which are always aligned.
    (!pointer.is_null()).then(|| unsafe { pointer.cast::<[u8; 12]>().read() })
}

/// Reads bytes.
///
/// # Safety
///
/// See the module; there are `length` bytes, which do not change until the result is dropped.
#[cfg(feature = "client")]
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { array(pointer, length, "the bytes") }
}

/// Reads an array of numbers.
///
/// # Safety
///
/// See the module; there are `count` numbers, which do not change until the result is dropped.
#[cfg(feature = "client")]
pub(crate) unsafe fn numbers<'a>(pointer: *const u64, count: usize) -> Result<&'a [u64], Failure> {
    // SAFETY: the caller's promise.
    unsafe { array(pointer, count, "the numbers") }
}

/// An empty one may be at null. One that is longer than all memory is a wrong length.
#[cfg(feature = "client")]
unsafe fn array<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    if count.checked_mul(size_of::<T>()).is_none_or(|size| size > isize::MAX as usize) {
        return Err(Failure::new(Status::BadValue, format!("{count} is no length of {name}")));
    }
    // SAFETY: neither null nor misaligned, not longer than a slice can be, and the caller promised so many.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Where bytes are written to, and their number.
pub(crate) struct Text {
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
}

impl Text {
    /// # Safety
    ///
    /// See the module; there are `capacity` bytes at `buffer`, and both places stay valid until they are
    /// written.
    pub(crate) const unsafe fn new(
        buffer: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> Self {
        Self { buffer: buffer.cast(), capacity, length }
    }

    /// A text with its zero byte; its beginning if there is not enough room.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        self.check()?;
        let room = self.capacity.saturating_sub(1).min(text.len());
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        if self.capacity > 0 {
            // SAFETY: `end` and a zero byte are at most `capacity` bytes, which `new` was promised.
            unsafe {
                ptr::copy_nonoverlapping(text.as_ptr(), self.buffer, end);
                self.buffer.add(end).write(0);
            }
        }
        self.write_length(text.len());
        if end == text.len() && self.capacity > 0 {
            return Ok(());
        }
        let (capacity, needed) = (self.capacity, text.len() + 1);
        let what = format!("the text needs {needed} bytes, but the buffer has {capacity}");
        Err(Failure::new(Status::Truncated, what))
    }

    /// The first bytes, as many as there is room for; removes them.
    pub(crate) fn take(self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        self.check()?;
        let count = bytes.len().min(self.capacity);
        if count > 0 {
            // SAFETY: `count` is at most `capacity`, which `new` was promised.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, count) };
            bytes.drain(..count);
        }
        self.write_length(count);
        Ok(())
    }

    /// All of the bytes; none if there is not enough room.
    pub(crate) fn copy(self, bytes: &[u8]) -> Result<(), Failure> {
        self.check()?;
        self.write_length(bytes.len());
        if bytes.len() > self.capacity {
            let (capacity, needed) = (self.capacity, bytes.len());
            let what = format!("there are {needed} bytes, but the buffer has {capacity}");
            return Err(Failure::new(Status::Truncated, what));
        }
        if !bytes.is_empty() {
            // SAFETY: there are at most `capacity`, which `new` was promised.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer, bytes.len()) };
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        if self.capacity > 0 {
            check(self.buffer, "the buffer")?;
        }
        if self.length.is_null() { Ok(()) } else { check(self.length, "the length") }
    }

    fn write_length(&self, length: usize) {
        if !self.length.is_null() {
            // SAFETY: `check` has been passed, and `new` was promised the place.
            unsafe { self.length.write(length) };
        }
    }
}
