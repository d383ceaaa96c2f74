//! How an operation has to fail.

use crate::formats::unified::client::Failure;
use crate::formats::unified::format::ExpectError;

impl ExpectError {
    /// Compares with how it failed.
    ///
    /// # Errors
    ///
    /// What is different.
    pub(in crate::formats::unified) fn judge(&self, failure: &Failure) -> Result<(), String> {
        let labels = failure.labels();
        let has = |label: &&String| labels.contains(label);
        let is_otherwise =
            |expected: Option<bool>, seen: bool| expected.is_some_and(|expected| expected != seen);
        let complaint = if self.is_error == Some(false) {
            "isError: false is no expectation".to_owned()
        } else if is_otherwise(self.is_client_error, failure.is_client_error()) {
            format!("isClientError: {}", failure.is_client_error())
        } else if is_otherwise(self.is_timeout_error, failure.is_timeout()) {
            format!("isTimeoutError: {}", failure.is_timeout())
        } else if self.error_code.is_some_and(|code| failure.code().map(i64::from) != Some(code)) {
            format!("errorCode: {:?}", failure.code())
        } else if let Some(label) = self.error_labels_contain.iter().find(|label| !has(label)) {
            format!("no label {label}, but {labels:?}")
        } else if let Some(label) = self.error_labels_omit.iter().find(has) {
            format!("the label {label}")
        } else if !self.contains(&failure.to_string()) {
            format!("no {:?} in it", self.error_contains.as_deref().unwrap_or_default())
        } else {
            return Ok(());
        };
        Err(format!("expected another error than this one ({complaint}): {failure}"))
    }

    /// Errors are compared without regard to case.
    fn contains(&self, text: &str) -> bool {
        let part = self.error_contains.as_deref().unwrap_or_default();
        text.to_lowercase().contains(&part.to_lowercase())
    }
}
