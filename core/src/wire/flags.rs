use super::WireError;

/// The flag bits of an OP_MSG.
// MS-06
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Bit 0: the message ends with a CRC-32C of all that comes before it.
    pub checksum_present: bool,
    /// Bit 1. On a request: no reply will come. On a reply: another one follows without a request.
    pub more_to_come: bool,
    /// Bit 16, on requests: replies may have `more_to_come`. Only getMore and hello may set it.
    pub exhaust_allowed: bool,
}

const CHECKSUM_PRESENT: u32 = 1 << 0;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST_ALLOWED: u32 = 1 << 16;
/// The half of the bits that a reader has to understand.
const REQUIRED: u32 = 0xFFFF;

impl Flags {
    /// No flag: what nearly every message has.
    pub const NONE: Self =
        Self { checksum_present: false, more_to_come: false, exhaust_allowed: false };

    /// A request without a reply: an unacknowledged write, which also says `w: 0`.
    pub const MORE_TO_COME: Self = Self { more_to_come: true, ..Self::NONE };

    /// A request that allows more replies than one.
    pub const EXHAUST_ALLOWED: Self = Self { exhaust_allowed: true, ..Self::NONE };

    /// Ends the message with a checksum.
    pub const CHECKSUM_PRESENT: Self = Self { checksum_present: true, ..Self::NONE };

    /// Reads the bits. Unknown ones among the upper sixteen are optional and get lost.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownFlags`] for unknown ones among the lower sixteen.
    // MS-07
    pub const fn from_bits(bits: u32) -> Result<Self, WireError> {
        let unknown = bits & REQUIRED & !(CHECKSUM_PRESENT | MORE_TO_COME);
        if unknown != 0 {
            return Err(WireError::UnknownFlags { bits: unknown });
        }
        Ok(Self {
            checksum_present: bits & CHECKSUM_PRESENT != 0,
            more_to_come: bits & MORE_TO_COME != 0,
            exhaust_allowed: bits & EXHAUST_ALLOWED != 0,
        })
    }

    /// The bits, unused ones zero.
    #[must_use]
    pub const fn bits(self) -> u32 {
        let Self { checksum_present, more_to_come, exhaust_allowed } = self;
        checksum_present as u32 * CHECKSUM_PRESENT
            + more_to_come as u32 * MORE_TO_COME
            + exhaust_allowed as u32 * EXHAUST_ALLOWED
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;
    use crate::wire::WireError;

    // MS-06
    #[test]
    fn every_combination_comes_back() {
        for bits in [0, 1, 2, 3, 1 << 16, (1 << 16) + 1, (1 << 16) + 2, (1 << 16) + 3] {
            assert_eq!(Flags::from_bits(bits).map(Flags::bits), Ok(bits));
        }
    }

    // MS-07
    #[test]
    fn unknown_bits_are_refused_below_16_and_ignored_above() {
        for bit in 2..16 {
            let bits = 1 << bit;
            assert_eq!(Flags::from_bits(bits | 1), Err(WireError::UnknownFlags { bits }));
        }
        for bit in 17..32 {
            assert_eq!(Flags::from_bits(1 << bit), Ok(Flags::NONE));
        }
    }
}
