//! zlib, through a decoder that says how far it has come.

use super::super::{WireError, ZlibLevel};
use super::Payload;

#[cfg(feature = "zlib")]
const ID: super::CompressorId = super::CompressorId::Zlib;

#[cfg(feature = "zlib")]
pub(super) fn compress(input: &[u8], level: ZlibLevel, out: &mut Vec<u8>) -> Result<(), WireError> {
    use std::io::Write;

    let level = match u32::try_from(level.get()) {
        Ok(level) => flate2::Compression::new(level),
        Err(_) => flate2::Compression::default(),
    };
    let mut encoder = flate2::write::ZlibEncoder::new(out, level);
    encoder
        .write_all(input)
        .and_then(|()| encoder.try_finish())
        .map_err(|error| WireError::Compress { id: ID, reason: error.to_string() })
}

/// Memory grows with what comes out, and stops one byte after what was announced: that byte shows
/// that there is more.
#[cfg(feature = "zlib")]
pub(super) fn decompress(payload: Payload<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    use super::Amount;
    use flate2::{FlushDecompress, Status};

    let corrupt = |reason: &str| WireError::Corrupt { id: ID, reason: reason.to_owned() };
    let mut inflate = flate2::Decompress::new(true);
    let start = out.len();
    let most = start + payload.size + 1;
    loop {
        make_room(out, most);
        let (read, had) = (inflate.total_in(), out.len());
        let rest = &payload.input[usize::try_from(read).expect("within the input")..];
        let status = inflate
            .decompress_vec(rest, out, FlushDecompress::None)
            .map_err(|error| corrupt(&error.to_string()))?;
        if out.len() >= most {
            return Err(payload.mismatch(ID, Amount::More));
        }
        match status {
            Status::StreamEnd if inflate.total_in() == payload.input.len() as u64 => return Ok(()),
            Status::StreamEnd => return Err(corrupt("bytes follow its end")),
            Status::Ok | Status::BufError => {
                if inflate.total_in() == read && out.len() == had {
                    return Err(corrupt("it ends too early"));
                }
            }
        }
    }
}

/// Twice as much as is there, up to what there may be.
#[cfg(feature = "zlib")]
fn make_room(out: &mut Vec<u8>, most: usize) {
    const FIRST: usize = 4 * 1024;
    if out.len() == out.capacity() || out.capacity() < FIRST.min(most) {
        let aim = most.min(FIRST.max(2 * out.len()));
        out.reserve_exact(aim - out.len());
    }
}

#[cfg(not(feature = "zlib"))]
pub(super) fn compress(_: &[u8], _: ZlibLevel, _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Zlib })
}

#[cfg(not(feature = "zlib"))]
pub(super) fn decompress(_: Payload<'_>, _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Zlib })
}
