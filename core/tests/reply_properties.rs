//! What a refusal says is read from its reply. That no reply makes the reader panic, the fuzz targets say.

#![cfg(feature = "protocol")]

use bson::oid::ObjectId;
use bson::{Bson, RawDocumentBuf, doc};
use cenote_core::error::CommandError;
use cenote_core::sdam::TopologyVersion;
use proptest::prelude::*;

proptest! {
    /// What was put in comes out, whichever numeric type carried it.
    #[test]
    fn a_well_formed_refusal_is_read_whole(
        code in any::<i32>(), message in ".{0,40}", labels in prop::collection::vec("[A-Z]{1,3}", 0..4),
        counter in any::<i64>(), as_type in 0..3,
    ) {
        let number = match as_type {
            0 => Bson::Int32(code),
            1 => Bson::Int64(i64::from(code)),
            _ => Bson::Double(f64::from(code)),
        };
        let process_id = [7; 12];
        let reply = doc! {
            "ok": 0, "code": number, "errmsg": &message, "errorLabels": &labels,
            "topologyVersion": { "processId": ObjectId::from_bytes(process_id), "counter": counter },
        };
        let error = CommandError::from_reply(&RawDocumentBuf::try_from(&reply).expect("no NUL")).expect("ok is 0");
        prop_assert_eq!(error.code, Some(code));
        prop_assert_eq!(&error.message, &message);
        prop_assert!(labels.iter().all(|label| error.has_label(label)));
        prop_assert_eq!(error.topology_version, Some(TopologyVersion { process_id, counter }));
        prop_assert_eq!(error.to_string().lines().count(), 1);
    }
}
