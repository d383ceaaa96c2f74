//! A server, and clients of it whose sockets are lists of bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Document, RawDocument, RawDocumentBuf};
use cenote_core::wire::{
    Compressor, Flags, Frame, Framer, Header, Ids, Message, MessageLimit, MessageWriter,
    RequestIds, decompress,
};
use cenote_endpoint::{ConnectionId, Output, Peer, Server, Settings};

/// A server with its clients.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) now: Duration,
    pub(crate) listening: bool,
    sockets: BTreeMap<ConnectionId, Socket>,
    requests: RequestIds,
}

/// What a client has seen of its connection.
#[derive(Default)]
pub(crate) struct Socket {
    /// Bytes that were sent to it and not read yet.
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
    pub(crate) half_closed: bool,
    pub(crate) reading_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

/// A reply as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) header: Header,
    pub(crate) flags: Flags,
    pub(crate) body: Document,
    pub(crate) compressed: bool,
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let server = Server::new(settings).expect("good settings");
        let mut world = Self {
            server,
            now: Duration::ZERO,
            listening: true,
            sockets: BTreeMap::new(),
            requests: RequestIds::default(),
        };
        world.collect();
        world
    }

    pub(crate) fn seeded() -> Self {
        Self::new(Settings::seeded(1))
    }

    pub(crate) fn connect(&mut self) -> ConnectionId {
        self.connect_as(Peer::default())
    }

    pub(crate) fn connect_as(&mut self, peer: Peer) -> ConnectionId {
        let id = self.server.accepted(self.now, peer);
        self.sockets.insert(id, Socket::default());
        self.collect();
        id
    }

    /// A connection that has said hello in the name of an application.
    pub(crate) fn connect_app(&mut self, name: &str) -> ConnectionId {
        let id = self.connect();
        let client = bson::rawdoc! {
            "application": { "name": name },
            "driver": { "name": "test", "version": "1" },
            "os": { "type": "test" },
        };
        let reply = self.run(id, "admin", &bson::rawdoc! { "hello": 1, "client": client });
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{reply}");
        id
    }

    pub(crate) fn socket(&mut self, id: ConnectionId) -> &mut Socket {
        self.sockets.get_mut(&id).expect("a connection of this world")
    }

    /// Runs a command that is answered at once.
    pub(crate) fn run(
        &mut self,
        id: ConnectionId,
        database: &str,
        command: &RawDocument,
    ) -> Document {
        let request_id = self.send(id, database, command, Flags::NONE);
        let answer = self.answer(id).expect("an answer came");
        assert_eq!(answer.header.ids.response_to, request_id);
        answer.body
    }

    /// Runs a command that must go well.
    pub(crate) fn good(
        &mut self,
        id: ConnectionId,
        database: &str,
        command: &RawDocument,
    ) -> Document {
        let reply = self.run(id, database, command);
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command:?}: {reply}");
        reply
    }

    /// Runs a command that must fail, and gives the code.
    pub(crate) fn refused(
        &mut self,
        id: ConnectionId,
        database: &str,
        command: &RawDocument,
    ) -> i32 {
        let reply = self.run(id, database, command);
        assert_eq!(reply.get_f64("ok").ok(), Some(0.0), "{command:?}: {reply}");
        reply.get_i32("code").expect("a code")
    }

    pub(crate) fn send(
        &mut self,
        id: ConnectionId,
        database: &str,
        command: &RawDocument,
        flags: Flags,
    ) -> i32 {
        let (request_id, bytes) = self.message(database, command, flags, &[]);
        self.push(id, &bytes);
        request_id
    }

    pub(crate) fn send_compressed(
        &mut self,
        id: ConnectionId,
        database: &str,
        command: &RawDocument,
        compressor: Compressor,
    ) -> i32 {
        let (request_id, plain) = self.message(database, command, Flags::NONE, &[]);
        let frame = Frame::new(&plain, MessageLimit::DEFAULT).expect("a whole message");
        let mut bytes = Vec::new();
        compressor.compress(frame, MessageLimit::DEFAULT, &mut bytes).expect("compresses");
        self.push(id, &bytes);
        request_id
    }

    /// The bytes of a command, with documents beside its body.
    pub(crate) fn message(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
        sequence: &[(&str, &[RawDocumentBuf])],
    ) -> (i32, Vec<u8>) {
        let request_id = self.requests.next_id();
        let mut bytes = Vec::new();
        let ids = Ids::request(request_id);
        let mut writer =
            MessageWriter::command(&mut bytes, ids, flags, command, database).expect("a command");
        for (name, documents) in sequence {
            writer.sequence(name, *documents).expect("a name");
        }
        writer.finish(MessageLimit::DEFAULT).expect("it fits");
        (request_id, bytes)
    }

    pub(crate) fn push(&mut self, id: ConnectionId, bytes: &[u8]) {
        self.server.received(self.now, id, bytes);
        self.collect();
    }

    /// The next reply, if one is there whole.
    pub(crate) fn answer(&mut self, id: ConnectionId) -> Option<Answer> {
        let received = &mut self.socket(id).received;
        let mut framer = Framer::new(MessageLimit::DEFAULT);
        framer.push(received);
        let frame = framer.next_frame().expect("a message")?;
        let (header, mut scratch) = (frame.header(), Vec::new());
        let compressed = header.op_code == cenote_core::wire::OpCode::Compressed;
        let plain = decompress(frame, MessageLimit::DEFAULT, &mut scratch).expect("decompresses");
        let message = Message::parse(plain).expect("an OP_MSG");
        let body = Document::try_from(message.body()).expect("BSON");
        let answer = Answer { header, flags: message.flags(), body, compressed };
        received.drain(..header.message_length as usize);
        Some(answer)
    }

    /// Lets time pass, and timers with it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(deadline) = self.server.next_deadline().filter(|it| *it <= until) {
            self.now = deadline.max(self.now);
            self.server.timer(self.now);
            self.collect();
        }
        self.now = until;
    }

    pub(crate) fn pass_ms(&mut self, millis: u64) {
        self.pass(Duration::from_millis(millis));
    }

    /// Lets every output reach its socket.
    pub(crate) fn collect(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Send { id, bytes } => {
                    let socket = self.open(id);
                    assert!(!socket.half_closed, "nothing follows a half-close");
                    socket.received.extend(bytes);
                }
                Output::Close { id } | Output::Fin { id } => self.open(id).end = Some(End::Closed),
                Output::Reset { id } => self.open(id).end = Some(End::Reset),
                Output::HalfClose { id } => self.open(id).half_closed = true,
                Output::StopReading { id } => self.open(id).reading_stopped = true,
                Output::ResumeReading { id } => self.open(id).reading_stopped = false,
                Output::Listen(listening) => self.listening = listening,
            }
        }
    }

    /// A connection that has not ended: nothing may follow its end.
    fn open(&mut self, id: ConnectionId) -> &mut Socket {
        let socket = self.sockets.entry(id).or_default();
        assert_eq!(socket.end, None, "nothing follows the end");
        socket
    }
}
