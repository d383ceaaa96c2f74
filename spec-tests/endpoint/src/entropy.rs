//! The one source of everything random.

use bson::oid::ObjectId;
use sha2::{Digest as _, Sha256};

/// A stream of bytes that is unpredictable without the seed: SHA-256 of the seed and a counter.
///
/// Of 64 bits it hides no more than 64 bits: enough for a server that tests talk to.
#[derive(Clone)]
pub(super) struct Entropy {
    seed: u64,
    blocks: u64,
}

impl Entropy {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, blocks: 0 }
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            chunk.copy_from_slice(&self.block()[..chunk.len()]);
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// From 0 to 1, without 1.
    pub(super) fn fraction(&mut self) -> f64 {
        const BITS: u32 = 53;
        (self.number() >> (64 - BITS)) as f64 / (1_u64 << BITS) as f64
    }

    pub(super) fn object_id(&mut self) -> ObjectId {
        ObjectId::from_bytes(self.bytes())
    }

    fn block(&mut self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        hash.update(self.blocks.to_le_bytes());
        self.blocks += 1;
        hash.finalize().into()
    }
}

/// `Debug` does not show the seed: it would reveal all passwords.
impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entropy").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}
