//! What is recorded, where it is written, and what becomes of the pool if it cannot be: on both
//! shells, which have one recorder and a builder each.

mod cases;
mod dumps;
mod panics;
mod shared_buffer;
mod subject;

/// Each case on each shell.
macro_rules! on_both {
    ($($group:ident: $($case:ident)*;)*) => {
        mod tokio {
            $($(
                #[test]
                fn $case() {
                    super::$group::$case::<super::subject::OnTokio>();
                }
            )*)*
        }

        mod mio {
            $($(
                #[test]
                fn $case() {
                    super::$group::$case::<super::subject::OnMio>();
                }
            )*)*
        }
    };
}

on_both! {
    cases:
        everything_is_recorded_from_the_first_input_on
        a_recording_is_written_as_it_goes_on
        the_trace_is_whole_when_the_pool_is_gone
        many_chunks_keep_their_order
        a_writer_that_fails_ends_the_recording_and_not_the_pool
        what_cannot_be_written_is_told_when_the_pool_is_built
        texts_and_address_are_told_as_it_was_asked_for
        nobody_waits_for_a_slow_writer_and_what_is_missing_is_told;
    dumps:
        a_dump_tells_how_the_pool_came_to_be_as_it_is
        the_first_timeout_is_dumped_with_what_led_to_it
        a_signal_that_cannot_be_heard_is_told_when_the_pool_is_built;
}

// One signal is for the whole process, and so for both.
#[cfg(unix)]
#[test]
fn each_signal_is_a_dump() {
    dumps::each_signal_is_a_dump::<subject::OnTokio>();
    dumps::each_signal_is_a_dump::<subject::OnMio>();
}
