use bson::rawdoc;

use super::{LIMIT, frame, message, raw};
use crate::wire::{
    Amount, Compressor, CompressorId, Flags, Frame, MessageLimit, OpCode, WireError, ZlibLevel,
    decompress,
};

fn compressed(id: CompressorId, level: i32, message: &[u8]) -> Vec<u8> {
    let compressor = Compressor::new(id, ZlibLevel::new(level).unwrap()).unwrap();
    let mut bytes = vec![0xEE];
    let length = compressor.compress(frame(message), LIMIT, &mut bytes).unwrap();
    assert_eq!((bytes[0], length), (0xEE, bytes.len() - 1));
    bytes.split_off(1)
}

/// An OP_COMPRESSED by hand.
fn claim(op_code: i32, size: i32, id: u8, payload: &[u8]) -> Vec<u8> {
    let fields = [op_code.to_le_bytes(), size.to_le_bytes()].concat();
    raw(OpCode::Compressed, &[&fields, &[id], payload])
}

fn refuse(bytes: &[u8]) -> (WireError, usize) {
    let mut scratch = Vec::new();
    let error = decompress(frame(bytes), LIMIT, &mut scratch).unwrap_err();
    (error, scratch.capacity())
}

fn built() -> impl Iterator<Item = CompressorId> {
    CompressorId::ALL.into_iter().filter(|id| id.is_built())
}

/// The payload of a whole message of `length` zeros, and its size.
fn zeros(id: CompressorId, length: usize) -> Vec<u8> {
    compressed(id, 9, &raw(OpCode::Msg, &[&vec![0; length]])).split_off(25)
}

// CM-07, CM-08
#[test]
fn everything_comes_back_from_every_compressor_and_level() {
    let text = "all work and no play ".repeat(500);
    let small = message(Flags::CHECKSUM_PRESENT, &rawdoc! { "ping": 1 }, &[]);
    let large = message(Flags::NONE, &rawdoc! { "text": text }, &[]);
    let empty = raw(OpCode::Msg, &[]);
    let mut scratch = Vec::new();
    for id in built() {
        for level in -1..=9 {
            for original in [&small, &large, &empty] {
                let bytes = compressed(id, level, original);
                assert_eq!(frame(&bytes).header().op_code, OpCode::Compressed);
                assert_eq!(bytes[24], id.number());
                // Into memory that was there, and into none.
                for scratch in [&mut scratch, &mut Vec::new()] {
                    let back = decompress(frame(&bytes), LIMIT, scratch).unwrap();
                    assert_eq!(back, frame(original), "{id} {level}");
                }
            }
        }
    }
    assert_eq!(decompress(frame(&small), LIMIT, &mut scratch), Ok(frame(&small)));
}

// CM-13
#[test]
fn sizes_are_checked_before_anything_is_made_of_them() {
    for got in [i32::MIN, -1, 47_999_985, i32::MAX] {
        for id in 0..4 {
            let (error, memory) = refuse(&claim(2013, got, id, &[1, 2, 3]));
            assert_eq!(error, WireError::UncompressedSize { got, max: 47_999_984 });
            assert_eq!(memory, 0);
        }
    }
}

#[test]
fn unknown_compressors_opcodes_and_nesting_are_refused() {
    assert_eq!(refuse(&claim(2013, 1, 4, &[0])).0, WireError::UnknownCompressor { id: 4 });
    assert_eq!(refuse(&claim(2013, 1, 255, &[0])).0, WireError::UnknownCompressor { id: 255 });
    assert_eq!(refuse(&claim(2012, 1, 0, &[0])).0, WireError::NestedCompression);
    assert_eq!(refuse(&claim(2011, 1, 0, &[0])).0, WireError::UnknownOpCode { got: 2011 });
    let whole = claim(2013, 0, 0, &[]);
    for end in 16..25 {
        let cut = raw(OpCode::Compressed, &[&whole[16..end]]);
        assert!(matches!(refuse(&cut).0, WireError::Cut { .. }), "{end}");
    }
    let compressor = Compressor::new(CompressorId::Noop, ZlibLevel::DEFAULT).unwrap();
    let mut bytes = Vec::new();
    let error = compressor.compress(frame(&whole), LIMIT, &mut bytes).unwrap_err();
    assert_eq!((error, bytes), (WireError::NestedCompression, vec![]));
}

/// A message says less than it holds: found out after what it says, not after all of it.
// CM-13
#[test]
fn bombs_fail_early_and_small() {
    const CLAIMED: usize = 1000;
    for id in built() {
        let payload = zeros(id, 10_000_000);
        let (error, memory) = refuse(&claim(2013, CLAIMED as i32, id.number(), &payload));
        let WireError::UncompressedMismatch { id: found, expected, got } = error else {
            panic!("{id}: {error}");
        };
        assert_eq!((found, expected), (id, CLAIMED));
        let exact = id != CompressorId::Zlib;
        assert_eq!(got, if exact { Amount::Bytes(10_000_000) } else { Amount::More });
        assert!(memory <= CLAIMED + 64, "{id} took {memory}");
    }
}

/// A message says more than it holds. zstd alone reserves what is said, and does not touch it.
#[test]
fn boasts_fail_too() {
    for id in built() {
        let payload = zeros(id, 1000);
        let (error, memory) = refuse(&claim(2013, 40_000_000, id.number(), &payload));
        let expected = 40_000_000;
        let got = Amount::Bytes(1000);
        assert_eq!(error, WireError::UncompressedMismatch { id, expected, got });
        assert!(id == CompressorId::Zstd || memory < 10_000, "{id} took {memory}");
    }
}

#[test]
#[cfg(feature = "snappy")]
fn snappy_cannot_say_what_its_bytes_cannot_hold() {
    // A length of 40,000,000, as snappy writes it, and nothing else.
    let (error, memory) = refuse(&claim(2013, 40_000_000, 1, &[0x80, 0xB4, 0x89, 0x13]));
    let id = CompressorId::Snappy;
    let expected = 40_000_000;
    assert_eq!(error, WireError::UncompressedMismatch { id, expected, got: Amount::Impossible });
    assert!(memory < 100);
    // 1,100,000, of which 4 bytes could hold no more than 88.
    let (error, memory) = refuse(&claim(2013, 1_100_000, 1, &[0xE0, 0x91, 0x43, 0x00]));
    let expected = 1_100_000;
    assert_eq!(error, WireError::UncompressedMismatch { id, expected, got: Amount::Impossible });
    assert!(memory < 100);
}

#[test]
fn damage_is_an_error_of_that_compressor() {
    let original = message(Flags::NONE, &rawdoc! { "text": "abc".repeat(100) }, &[]);
    let size = (original.len() - 16) as i32;
    for id in built().filter(|id| *id != CompressorId::Noop) {
        let payload = compressed(id, -1, &original).split_off(25);
        for end in 0..payload.len() {
            let (error, _) = refuse(&claim(2013, size, id.number(), &payload[..end]));
            assert!(
                matches!(error, WireError::Corrupt { .. } | WireError::UncompressedMismatch { .. }),
                "{id} cut to {end}: {error}"
            );
        }
        let longer = [&payload[..], &[9, 9, 9, 9, 9]].concat();
        let (error, _) = refuse(&claim(2013, size, id.number(), &longer));
        assert!(matches!(error, WireError::Corrupt { .. }), "{id}: {error}");
    }
}

// MS-03
#[test]
fn what_does_not_fit_is_not_sent() {
    let original = message(Flags::NONE, &rawdoc! { "a": 1 }, &[]);
    let limit = MessageLimit::new(original.len() as i64).unwrap();
    let compressor = Compressor::new(CompressorId::Noop, ZlibLevel::DEFAULT).unwrap();
    let mut bytes = vec![7];
    let frame = Frame::new(&original, limit).unwrap();
    let error = compressor.compress(frame, limit, &mut bytes).unwrap_err();
    let (got, max) = (original.len() + 9, limit.bytes());
    assert_eq!((error, bytes), (WireError::MessageTooLarge { got, max }, vec![7]));
}

/// What does not get smaller may be as large as any message, and no larger.
#[test]
fn what_was_compressed_keeps_the_limit() {
    let noise = (0_u32..20_000).map(|n| (n.wrapping_mul(0x9E37_79B9) >> 24) as u8);
    let message = raw(OpCode::Msg, &[&noise.collect::<Vec<_>>()]);
    let compressor = Compressor::new(CompressorId::Noop, ZlibLevel::DEFAULT).unwrap();
    let got = compressor.compress(frame(&message), LIMIT, &mut Vec::new()).unwrap();
    let limit = |bytes: usize| MessageLimit::new(bytes as i64).unwrap();
    let compress = |limit| compressor.compress(frame(&message), limit, &mut Vec::new());
    assert_eq!(compress(limit(got)), Ok(got));
    let max = limit(got - 1);
    let refused = WireError::MessageTooLarge { got, max: max.bytes() };
    assert_eq!(compress(max), Err(refused));
}
