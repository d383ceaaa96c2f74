//! zstd, in one step: decompressed as a stream it would want a window of its own, of a size that
//! the other side chooses.

use super::super::WireError;
use super::Payload;

#[cfg(feature = "zstd")]
const ID: super::CompressorId = super::CompressorId::Zstd;

#[cfg(feature = "zstd")]
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    out.reserve(zstd::zstd_safe::compress_bound(input.len()));
    zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL)
        .and_then(|mut compressor| compressor.compress_to_buffer(input, &mut after(out)))
        .map_err(|error| WireError::Compress { id: ID, reason: error.to_string() })?;
    Ok(())
}

/// Memory is reserved, but touched only as bytes come out.
#[cfg(feature = "zstd")]
pub(super) fn decompress(payload: Payload<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    check_frame_size(payload)?;
    out.reserve_exact(payload.size);
    zstd::bulk::Decompressor::new()
        .and_then(|mut one| one.decompress_to_buffer(payload.input, &mut after(out)))
        .map_err(|error| WireError::Corrupt { id: ID, reason: error.to_string() })?;
    Ok(())
}

/// A frame may say what it holds: then nothing needs to be reserved for one that holds too much.
/// It need not, and others may follow it, so that only too much is wrong.
#[cfg(feature = "zstd")]
fn check_frame_size(payload: Payload<'_>) -> Result<(), WireError> {
    use super::Amount;
    match zstd::zstd_safe::get_frame_content_size(payload.input) {
        Ok(Some(got)) if got > payload.size as u64 => Err(payload.mismatch(ID, Amount::Bytes(got))),
        Ok(_) => Ok(()),
        Err(error) => Err(WireError::Corrupt { id: ID, reason: error.to_string() }),
    }
}

/// Writes after what is there.
#[cfg(feature = "zstd")]
fn after(out: &mut Vec<u8>) -> std::io::Cursor<&mut Vec<u8>> {
    let position = out.len() as u64;
    let mut end = std::io::Cursor::new(out);
    end.set_position(position);
    end
}

#[cfg(not(feature = "zstd"))]
pub(super) fn compress(_: &[u8], _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Zstd })
}

#[cfg(not(feature = "zstd"))]
pub(super) fn decompress(_: Payload<'_>, _: &mut Vec<u8>) -> Result<(), WireError> {
    Err(WireError::CompressorNotBuilt { id: super::CompressorId::Zstd })
}
