//! Snappy, in its raw format: its input begins with the length of its output.

use super::super::WireError;
use super::Payload;

#[cfg(feature = "snappy")]
const ID: super::CompressorId = super::CompressorId::Snappy;

#[cfg(feature = "snappy")]
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    out.resize(start + snap::raw::max_compress_len(input.len()), 0);
    let written = snap::raw::Encoder::new()
        .compress(input, &mut out[start..])
        .map_err(|error| WireError::Compress { id: ID, reason: error.to_string() })?;
    out.truncate(start + written);
    Ok(())
}

#[cfg(feature = "snappy")]
pub(super) fn decompress(payload: Payload<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    use super::Amount;
    /// A copy of 64 bytes takes three, so nothing grows more than by this.
    const BEST_RATIO: usize = 22;

    let corrupt = |error: snap::Error| WireError::Corrupt { id: ID, reason: error.to_string() };
    payload.check(ID, snap::raw::decompress_len(payload.input).map_err(corrupt)?)?;
    if payload.size / BEST_RATIO > payload.input.len() {
        return Err(payload.mismatch(ID, Amount::Impossible));
    }
    let start = out.len();
    out.reserve_exact(payload.size);
    out.resize(start + payload.size, 0);
    let written = snap::raw::Decoder::new().decompress(payload.input, &mut out[start..]);
    out.truncate(start + written.map_err(corrupt)?);
    Ok(())
}

#[cfg(not(feature = "snappy"))]
pub(super) fn compress(_: &[u8], _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Snappy })
}

#[cfg(not(feature = "snappy"))]
pub(super) fn decompress(_: Payload<'_>, _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Snappy })
}
