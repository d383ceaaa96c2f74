//! Without the feature: nothing.

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::WaiterId;

use super::Outcome;

#[inline(always)]
pub(crate) const fn are_wanted() -> bool {
    false
}

#[derive(Debug, Default)]
pub(crate) struct CheckOutSpans {}

#[derive(Debug, Default)]
pub(crate) struct CheckOutSpan {}

#[derive(Debug, Default)]
pub(crate) struct EstablishSpan {}

#[derive(Debug)]
pub(crate) struct StageSpan {}

impl CheckOutSpans {
    pub(crate) fn insert(&self, _: WaiterId, _: CheckOutSpan, _: &'static str) {}

    pub(crate) fn end(&self, _: WaiterId, _: Outcome<'_>) {}

    pub(crate) fn cancel(&self, _: WaiterId) {}

    pub(crate) fn establish(
        &self,
        _: Option<WaiterId>,
        _: u64,
        _: &ServerAddress,
    ) -> EstablishSpan {
        EstablishSpan {}
    }
}

impl CheckOutSpan {
    pub(crate) fn begin(_: &ServerAddress) -> Self {
        Self {}
    }

    pub(crate) const fn is_some(&self) -> bool {
        false
    }

    pub(crate) fn end(self, _: Outcome<'_>) {}
}

impl EstablishSpan {
    pub(crate) const fn is_some(&self) -> bool {
        false
    }

    pub(crate) fn stage(&self, _: Stage) -> StageSpan {
        StageSpan {}
    }

    pub(crate) fn end(&self, _: Result<(), &ConnectionError>) {}

    pub(crate) fn abort(&self) {}
}

impl StageSpan {
    pub(crate) fn end(self, _: Option<&'static str>) {}
}
