//! The flight recorder, and when a timer can stay as it is.

use cenote_c::checked;
use cenote_c::input::{cenote_check_in, cenote_check_out, cenote_established};
use cenote_c::options::Options;
use cenote_c::pool::{NEVER, Pool, cenote_pool_free};
use cenote_c::status::Status;
use cenote_c::trace::cenote_flight_start;

/// A pool with one connection, which is in use.
fn busy_pool() -> *mut Pool {
    let options = Options { max_pool_size: 1, wait_queue_timeout: 1_000, ..Options::default() };
    let pool = checked::pool_new_ready("db:1", &options, 0).expect("a pool");
    assert_eq!(cenote_check_out(pool, 1, 1, 1, NEVER, 0), Status::Ok);
    assert_eq!(cenote_established(pool, 2, 1, 1), Status::Ok);
    pool
}

#[test]
fn a_flight_recorder_keeps_the_latest_inputs() {
    let pool = busy_pool();
    assert_eq!(checked::flight_read(pool, 100), Err((Status::Nothing, 0)));
    assert_eq!(cenote_flight_start(pool, 1 << 31), Status::BadValue);
    assert_eq!(cenote_flight_start(pool, 1 << 12), Status::Ok);
    for use_of in 0..10_000 {
        assert_eq!(cenote_check_in(pool, 10 + 2 * use_of, 1, 1), Status::Ok);
        assert_eq!(cenote_check_out(pool, 11 + 2 * use_of, 2 + use_of, 1, NEVER, 0), Status::Ok);
    }
    let Err((Status::Truncated, length)) = checked::flight_read(pool, 100) else {
        panic!("more than 100 bytes, which are counted")
    };
    assert!(length < 100_000, "{length} bytes of 20,000 inputs");
    let trace = checked::flight_read(pool, length).expect("the trace");
    assert_eq!(trace.len(), length);
    assert!(trace.windows(6).any(|bytes| bytes == b"format"), "the beginning");
    let last = i32::to_le_bytes(10 + 2 * 9_999);
    assert!(trace.windows(4).any(|bytes| bytes == last), "the time of the last check-in");
    assert!(trace.windows(4).any(|bytes| bytes == b"\x10end"), "the end");
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn a_timer_is_kept_unless_a_request_waits() {
    let pool = busy_pool();
    assert_eq!(cenote_check_in(pool, 3, 1, 1), Status::Ok);
    assert_eq!(checked::keeps_deadline(pool, NEVER), Ok(true));
    assert_eq!(cenote_check_out(pool, 4, 2, 1, NEVER, 0), Status::Ok);
    assert_eq!(checked::keeps_deadline(pool, NEVER), Ok(true));
    assert_eq!(cenote_check_out(pool, 5, 3, 1, NEVER, 0), Status::Ok);
    assert_eq!(checked::keeps_deadline(pool, NEVER), Ok(false));
    assert_eq!(checked::next_deadline(pool), Ok((1_005, 1)));
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}
