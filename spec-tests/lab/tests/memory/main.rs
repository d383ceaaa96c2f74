//! Memory, by counting what the process allocates.
//!
//! Without the usual test harness, because its threads allocate as well.

mod replay;
mod simulate;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    replay::depends_on_the_pool_not_on_the_length();
    simulate::depends_on_what_there_is_at_one_time();
}
