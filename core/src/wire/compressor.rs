use core::fmt;

use super::WireError;
use crate::uri;

/// A compressor, by its number in a message.
// CM-04
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum CompressorId {
    /// 0: the message as it is. For tests of the protocol; it is never negotiated.
    Noop = 0,
    /// 1.
    Snappy = 1,
    /// 2.
    Zlib = 2,
    /// 3.
    Zstd = 3,
}

/// How hard zlib tries: -1 is its own choice (6), 0 nothing, 1 fast, 9 best.
// CM-11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZlibLevel(i8);

/// The compression of a client: a compressor of this build, and a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressor {
    pub(super) id: CompressorId,
    pub(super) zlib_level: ZlibLevel,
}

impl CompressorId {
    /// Every compressor, by number.
    pub const ALL: [Self; 4] = [Self::Noop, Self::Snappy, Self::Zlib, Self::Zstd];

    /// Reads the number.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownCompressor`] from 4 on.
    pub const fn from_number(id: u8) -> Result<Self, WireError> {
        match id {
            0 => Ok(Self::Noop),
            1 => Ok(Self::Snappy),
            2 => Ok(Self::Zlib),
            3 => Ok(Self::Zstd),
            id => Err(WireError::UnknownCompressor { id }),
        }
    }

    /// The number in a message.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name in connection strings and in hello.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// The compressor of that name, in small letters; `None` for any other.
    // CM-03
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|id| id.name() == name)
    }

    /// Whether this build can do it: the features `snappy` and `zlib`, which are on by default, and `zstd`.
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::Noop => true,
            Self::Snappy => uri::Compressor::Snappy.is_built(),
            Self::Zlib => uri::Compressor::Zlib.is_built(),
            Self::Zstd => uri::Compressor::Zstd.is_built(),
        }
    }
}

impl fmt::Display for CompressorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ZlibLevel {
    /// -1: zlib's own choice.
    pub const DEFAULT: Self = Self(-1);

    /// The `zlibCompressionLevel`.
    ///
    /// # Errors
    ///
    /// [`WireError::ZlibLevel`] unless it is from -1 to 9.
    pub const fn new(level: i32) -> Result<Self, WireError> {
        match level {
            -1..=9 => Ok(Self(level as i8)),
            got => Err(WireError::ZlibLevel { got }),
        }
    }

    /// From -1 to 9.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }
}

impl Default for ZlibLevel {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Compressor {
    /// That compressor; the level matters to zlib alone. zstd takes its own default.
    ///
    /// # Errors
    ///
    /// [`WireError::CompressorNotBuilt`] without the compressor's feature.
    pub fn new(id: CompressorId, zlib_level: ZlibLevel) -> Result<Self, WireError> {
        if !id.is_built() {
            return Err(WireError::CompressorNotBuilt { id });
        }
        Ok(Self { id, zlib_level })
    }

    /// Which one it is.
    #[must_use]
    pub fn id(self) -> CompressorId {
        self.id
    }
}

/// Whether the message of that command may be compressed: not when it can hold a secret, and not
/// before both sides have agreed. The letters' case does not matter: `isMaster` has two spellings,
/// and no server runs the others in another one.
///
/// ```
/// use cenote_core::wire::may_compress;
///
/// assert!(may_compress("insert"));
/// assert!(!may_compress("isMaster"));
/// ```
// HS-06, CM-10
#[must_use]
pub fn may_compress(command_name: &str) -> bool {
    !UNCOMPRESSED.iter().any(|name| name.eq_ignore_ascii_case(command_name))
}

const UNCOMPRESSED: [&str; 11] = [
    "hello",
    "isMaster",
    "saslStart",
    "saslContinue",
    "getnonce",
    "authenticate",
    "createUser",
    "updateUser",
    "copydbSaslStart",
    "copydbgetnonce",
    "copydb",
];

#[cfg(test)]
mod tests {
    use super::{CompressorId, UNCOMPRESSED, ZlibLevel, may_compress};
    use crate::wire::WireError;

    // CM-04
    #[test]
    fn names_and_numbers_lead_back() {
        for (number, id) in CompressorId::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(id.number()), number);
            assert_eq!(CompressorId::from_number(id.number()), Ok(id));
            assert_eq!(CompressorId::from_name(id.name()), Some(id));
        }
        for id in 4..=255 {
            let unknown = WireError::UnknownCompressor { id };
            assert_eq!(CompressorId::from_number(id), Err(unknown));
        }
        assert_eq!(CompressorId::from_name("snoopy"), None);
    }

    // CM-11
    #[test]
    fn levels_are_minus_one_to_nine() {
        for level in -1..=9 {
            assert_eq!(ZlibLevel::new(level).map(ZlibLevel::get), Ok(level));
        }
        assert_eq!(ZlibLevel::DEFAULT.get(), -1);
        for got in [-2, 10, i32::MIN, i32::MAX] {
            assert_eq!(ZlibLevel::new(got), Err(WireError::ZlibLevel { got }));
        }
    }

    // HS-06, CM-10
    #[test]
    fn secrets_stay_uncompressed_in_any_case() {
        for name in UNCOMPRESSED {
            assert!(!may_compress(name) && !may_compress(&name.to_uppercase()), "{name}");
        }
        for name in ["ping", "find", "insert", "hello2", "saslStar", ""] {
            assert!(may_compress(name), "{name}");
        }
    }
}
