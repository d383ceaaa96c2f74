//! Time to write, frame and read a message, beside the least that any client has to do.
//!
//! The official driver keeps its wire path to itself, so that it cannot be called from here (a
//! whole ping of its is in `official.rs`). The floor beside each figure is what it, too, cannot do
//! without: the document as bytes, a header of 16 bytes before it, one copy into what the socket
//! takes, and the header read at the other end with the body's length and terminator. The floor
//! checks nothing else; Cenote checks everything.

use std::hint::black_box;

use bson::{RawDocument, RawDocumentBuf, doc, rawdoc};
use cenote_core::wire::{Flags, Framer, Ids, Message, MessageLimit, MessageWriter, decompress};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const LIMIT: MessageLimit = MessageLimit::DEFAULT;
/// Of documents, in one insert.
const BATCH: usize = 16_000_000;

fn ping(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ping");
    group.bench_function("floor, from a Document", |bencher| {
        let mut wire = Vec::new();
        bencher.iter(|| {
            wire.clear();
            let body = bson::serialize_to_vec(&doc! { "ping": 1, "$db": "admin" });
            floor(&mut wire, &[&body.expect("a document")])
        });
    });
    group.bench_function("floor, from raw bytes", |bencher| {
        let (body, mut wire) = (rawdoc! { "ping": 1, "$db": "admin" }, Vec::new());
        bencher.iter(|| {
            wire.clear();
            floor(&mut wire, &[body.as_bytes()])
        });
    });
    group.bench_function("cenote, from raw bytes", |bencher| {
        let (command, mut there) = (rawdoc! { "ping": 1 }, There::new());
        bencher.iter(|| there.and_back(&command, &[]));
    });
    group.finish();
}

fn insert(criterion: &mut Criterion) {
    let documents = batch();
    let mut group = criterion.benchmark_group("insert of 16 MB");
    group.throughput(Throughput::Bytes(BATCH as u64)).sample_size(20);
    group.bench_function("floor: two copies", |bencher| {
        let body = rawdoc! { "insert": "birds", "$db": "zoo" };
        let parts: Vec<&[u8]> = std::iter::once(body.as_bytes())
            .chain(documents.iter().map(|document| document.as_bytes()))
            .collect();
        let (mut wire, mut received) = (Vec::new(), Vec::new());
        bencher.iter(|| {
            wire.clear();
            received.clear();
            let length = floor(&mut wire, &parts);
            received.extend_from_slice(black_box(&wire));
            length
        });
    });
    group.bench_function("cenote", |bencher| {
        let (command, mut there) = (rawdoc! { "insert": "birds" }, There::new());
        bencher.iter(|| there.and_back(&command, &documents));
    });
    group.bench_function("cenote, with a checksum", |bencher| {
        let (command, mut there) = (rawdoc! { "insert": "birds" }, There::new());
        there.flags = Flags::CHECKSUM_PRESENT;
        bencher.iter(|| there.and_back(&command, &documents));
    });
    group.bench_function("cenote, a new connection", |bencher| {
        let command = rawdoc! { "insert": "birds" };
        let run = |mut there: There| there.and_back(&command, &documents);
        bencher.iter_batched(There::new, run, BatchSize::PerIteration);
    });
    group.finish();
}

/// A writer and a reader with buffers that are used again, as a connection has them.
struct There {
    wire: Vec<u8>,
    framer: Framer,
    scratch: Vec<u8>,
    flags: Flags,
}

impl There {
    fn new() -> Self {
        let framer = Framer::new(LIMIT);
        Self { wire: Vec::new(), framer, scratch: Vec::new(), flags: Flags::NONE }
    }

    /// Writes the command, takes it in as a socket would give it, and looks at all that came.
    fn and_back(&mut self, command: &RawDocument, documents: &[RawDocumentBuf]) -> usize {
        self.wire.clear();
        let ids = Ids::request(1);
        let mut writer = MessageWriter::command(&mut self.wire, ids, self.flags, command, "zoo")
            .expect("a command");
        if !documents.is_empty() {
            writer.sequence("documents", documents).expect("a name");
        }
        writer.finish(LIMIT).expect("within the limit");
        let mut rest = black_box(&self.wire[..]);
        while !rest.is_empty() {
            let spare = self.framer.spare();
            let count = spare.len().min(rest.len());
            spare[..count].copy_from_slice(&rest[..count]);
            self.framer.filled(count);
            rest = &rest[count..];
        }
        let frame = self.framer.next_frame().expect("no error").expect("a whole message");
        let frame = decompress(frame, LIMIT, &mut self.scratch).expect("not compressed");
        let message = Message::parse(frame).expect("as it was written");
        let came: usize = message.sequences().map(|sequence| sequence.documents().count()).sum();
        assert_eq!(came, documents.len());
        black_box(message.body().as_bytes().len())
    }
}

/// Header, flags and a kind; the parts; and at the other end, the header and the body's frame.
fn floor(wire: &mut Vec<u8>, parts: &[&[u8]]) -> usize {
    let length = 21 + parts.iter().map(|part| part.len()).sum::<usize>();
    for field in [length as i32, 1, 0, 2013, 0] {
        wire.extend(field.to_le_bytes());
    }
    wire.push(0);
    for part in parts {
        wire.extend_from_slice(part);
    }
    let wire = black_box(&wire[..]);
    let said = i32::from_le_bytes(*wire.first_chunk().expect("a header")) as usize;
    assert_eq!(said, wire.len());
    let body = RawDocument::from_bytes(&wire[21..][..parts[0].len()]).expect("a document");
    black_box(body.as_bytes().len())
}

/// Documents of about 1 KB with a dozen fields.
fn batch() -> Vec<RawDocumentBuf> {
    let one = rawdoc! {
        "_id": 1, "name": "Troglodytes troglodytes", "mass": 9.5, "rings": [1, 2, 3, 4],
        "seen": { "at": "a hedge", "by": "nobody", "sure": true },
        "note": "x".repeat(800), "a": 1, "b": 2_i64, "c": 3.0, "d": "four", "e": bson::RawBson::Null,
    };
    let count = BATCH / one.as_bytes().len();
    vec![one; count]
}

criterion_group!(benches, ping, insert);
criterion_main!(benches);
