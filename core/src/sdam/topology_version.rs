/// A server's own count of the changes of its state.
///
/// There is deliberately no order on it: two processes cannot be compared, and one that is
/// missing counts as news. The two questions that SDAM asks are methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopologyVersion {
    /// The server process; another one after every restart. The bytes of an ObjectId.
    pub process_id: [u8; 12],
    /// Rises with every change within one process.
    pub counter: i64,
}

impl TopologyVersion {
    /// Reads the `topologyVersion` of a reply; `None` when a field is missing or ill-typed.
    #[cfg(feature = "protocol")]
    #[must_use]
    pub fn from_document(document: &bson::RawDocument) -> Option<Self> {
        let field = |key| document.get(key).ok().flatten();
        let process_id = field("processId").and_then(bson::RawBsonRef::as_object_id)?.bytes();
        let counter = field("counter").and_then(crate::number::as_i64)?;
        Some(Self { process_id, counter })
    }

    /// Whether a server described with this version already knew what an error with `error` tells.
    /// Equal is known: a change of state would have raised the counter.
    // SD-21
    #[must_use]
    pub fn makes_error_stale(&self, error: Option<&Self>) -> bool {
        self.is_same_process(error).is_some_and(|error| self.counter >= error.counter)
    }

    /// Whether a server described with this version is ahead of a new description with `new`.
    /// Equal is not: a check may bring other news than a change of state.
    #[must_use]
    pub fn makes_description_stale(&self, new: Option<&Self>) -> bool {
        self.is_same_process(new).is_some_and(|new| self.counter > new.counter)
    }

    fn is_same_process<'a>(&self, other: Option<&'a Self>) -> Option<&'a Self> {
        other.filter(|other| other.process_id == self.process_id)
    }
}

#[cfg(test)]
mod tests {
    use super::TopologyVersion;

    fn version(process: u8, counter: i64) -> TopologyVersion {
        TopologyVersion { process_id: [process; 12], counter }
    }

    #[test]
    fn an_error_is_news_only_when_its_counter_is_higher() {
        let current = version(1, 5);
        assert!(current.makes_error_stale(Some(&version(1, 4))));
        assert!(current.makes_error_stale(Some(&version(1, 5))));
        assert!(!current.makes_error_stale(Some(&version(1, 6))));
    }

    #[test]
    fn a_description_is_news_from_the_same_counter_on() {
        let current = version(1, 5);
        assert!(current.makes_description_stale(Some(&version(1, 4))));
        assert!(!current.makes_description_stale(Some(&version(1, 5))));
        assert!(!current.makes_description_stale(Some(&version(1, 6))));
    }

    #[test]
    fn what_cannot_be_compared_is_news() {
        for other in [None, Some(version(2, 0))] {
            assert!(!version(1, 5).makes_error_stale(other.as_ref()));
            assert!(!version(1, 5).makes_description_stale(other.as_ref()));
        }
    }

    #[cfg(feature = "protocol")]
    #[test]
    fn half_a_version_is_none() {
        use bson::oid::ObjectId;
        use bson::{RawDocumentBuf, rawdoc};

        let process_id = ObjectId::from_bytes([1; 12]);
        let read = |document: RawDocumentBuf| TopologyVersion::from_document(&document);
        assert_eq!(
            read(rawdoc! { "processId": process_id, "counter": 3_i64 }),
            Some(version(1, 3))
        );
        assert_eq!(read(rawdoc! { "processId": process_id, "counter": 3 }), Some(version(1, 3)));
        assert_eq!(read(rawdoc! { "processId": process_id, "counter": "3" }), None);
        assert_eq!(read(rawdoc! { "processId": process_id }), None);
        assert_eq!(read(rawdoc! { "processId": "01", "counter": 3 }), None);
    }
}
