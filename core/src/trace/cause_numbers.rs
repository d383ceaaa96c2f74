//! The numbers of causes in a trace.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::cause::{Cause, CauseSummary, Disclosure};
use super::document::Document;
use super::encode;

/// Each cause is written once, and has a number from then on.
#[derive(Default)]
pub(super) struct CauseNumbers {
    numbers: BTreeMap<CauseKey, u64>,
    next: u64,
}

type CauseKey = (u64, Option<Arc<str>>);

impl CauseNumbers {
    /// The number of a cause. A new one is written first; numbers are limited, and reused after that.
    pub(super) fn number(&mut self, cause: &Cause, texts: Disclosure, buffer: &mut Vec<u8>) -> u64 {
        let key = (cause.summary.code(), cause.text.clone());
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.numbers.len() as u64 == CAUSES_MAX {
            *self = Self::default();
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(key, number);
        let text = cause.text.as_deref().and_then(|text| texts.apply(text));
        let mut document = Document::new(buffer);
        encode::cause(&mut document, number, cause, text.as_deref());
        document.end();
        number
    }
}

/// Numbers of causes.
pub(super) const CAUSES_MAX: u64 = 1024;

const _: () = assert!(CauseSummary::CODE_BITS <= 16);
