//! The handshake: `hello`, and `isMaster` in both its spellings.

use std::time::Duration;

use bson::oid::ObjectId;
use bson::raw::{RawArrayBuf, cstr};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use cenote_core::wire::CompressorId;

use super::auth;
use super::commands::{Answer, Context};
use super::refusal::{Refusal, code};
use super::request::{self, mismatch, whole};
use super::session::Session;
use super::world::World;

/// A client that wants to hear of the next change of the topology, and at the latest after some
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) shape: Shape,
    /// `maxAwaitTimeMS`.
    pub(super) longest: Duration,
    /// Replies go on without requests.
    pub(super) exhaust: bool,
    /// The count of changes that the client knows of.
    pub(super) counter: i64,
}

/// Which reply a client understands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// It asked by the name `hello`.
    modern: bool,
    /// It asked by the old name, and wants to know whether it could have asked by the new one.
    hello_ok: bool,
}

pub(super) fn run(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    introduce(context)?;
    let Context { now, world, session, request } = context;
    let modern = request.name == "hello";
    let shape = Shape { modern, hello_ok: request.boolean("helloOk")? == Some(true) && !modern };
    if !session.said_hello {
        check_load_balancing(world, request.boolean("loadBalanced")? == Some(true))?;
    }
    session.said_hello = true;
    let asked = Asked::read(request)?;
    let wait = match asked {
        Some(asked) => {
            let exhaust = request.form.flags.exhaust_allowed;
            Some(asked.wait(shape, exhaust, world, session)?)
        }
        None => None,
    };
    if let Some((wait, true)) = wait {
        return Ok(Answer::Wait(wait));
    }
    let mut reply = describe(shape, world, session, *now);
    negotiate(context, &mut reply)?;
    Ok(match wait {
        Some((wait, _)) if wait.exhaust => Answer::Stream(reply, wait),
        Some(_) | None => Answer::Reply(reply),
    })
}

/// The wire version of MongoDB 4.4, the first that streams.
const STREAMING: i32 = 9;

/// What a hello says, without the handshake: all of one that was waited for.
pub(super) fn describe(
    shape: Shape,
    world: &World,
    session: &Session,
    now: Duration,
) -> RawDocumentBuf {
    let mut reply = RawDocumentBuf::new();
    if shape.hello_ok {
        reply.append(cstr!("helloOk"), true);
    }
    world.topology.describe(shape.modern, world.wall_clock(now), &mut reply);
    if *world.options.wire_versions.end() >= STREAMING {
        reply.append(cstr!("topologyVersion"), world.topology.version(session.service));
    }
    let limits = &world.options.limits;
    let number = |limit: u32| i32::try_from(limit).unwrap_or(i32::MAX);
    reply.append(cstr!("maxBsonObjectSize"), number(limits.document_size));
    reply.append(cstr!("maxMessageSizeBytes"), number(limits.message_size));
    reply.append(cstr!("maxWriteBatchSize"), number(limits.write_batch));
    reply.append(cstr!("localTime"), world.local_time(now));
    reply.append(cstr!("logicalSessionTimeoutMinutes"), 30);
    reply.append(cstr!("connectionId"), i32::try_from(session.id.0).unwrap_or(i32::MAX));
    reply.append(cstr!("minWireVersion"), *world.options.wire_versions.start());
    reply.append(cstr!("maxWireVersion"), *world.options.wire_versions.end());
    reply.append(cstr!("readOnly"), false);
    reply
}

/// The answers to what the client offers: compression, mechanisms, a first step of authentication,
/// and the service behind the load balancer.
fn negotiate(context: &mut Context<'_>, reply: &mut RawDocumentBuf) -> Result<(), Refusal> {
    // Without the field, nothing was said of compression.
    let offered = context.request.get("compression")?.filter(|it| *it != RawBsonRef::Null);
    if let Some(names) = offered {
        let names = request::strings(names, "hello.compression")?;
        let agreed = |name: &&str| {
            let id = CompressorId::from_name(name);
            id.is_some_and(|id| id.is_built() && context.world.options.compressors.contains(&id))
        };
        let agreed: RawArrayBuf = names.into_iter().filter(agreed).collect();
        reply.append(cstr!("compression"), agreed);
    }
    if let Some(user) = context.request.text("saslSupportedMechs")?
        && let Some(names) = context.world.users.mechanisms(user)
    {
        let names: RawArrayBuf = names.into_iter().collect();
        reply.append(cstr!("saslSupportedMechs"), names);
    }
    let knows = context.request.boolean("loadBalanced")? == Some(true);
    if knows && context.world.topology.is_load_balanced() {
        let service = context.session.service;
        reply.append(cstr!("serviceId"), context.world.topology.process_id(service));
    }
    let request = context.request;
    if let Some(command) = request.document("speculativeAuthenticate")?
        && let Some(answer) = auth::speculate(context, command)
    {
        reply.append(cstr!("speculativeAuthenticate"), answer);
    }
    Ok(())
}

/// A router behind a load balancer needs clients that know of it, and say so in the first hello
/// of a connection; clients that log in say hello again without it. Any other server has no field
/// for clients that do, and so they detect it.
fn check_load_balancing(world: &World, client_knows: bool) -> Result<(), Refusal> {
    if world.topology.is_load_balanced() && !client_knows {
        let message = "The server is being accessed through a load balancer, but this driver does \
                       not have load balancing enabled";
        return Err(Refusal::new(code::LOAD_BALANCER_MISMATCH, message));
    }
    Ok(())
}

/// The name that the client gives itself with this command, if all is well: so that fail points
/// and faults know it already.
pub(super) fn app_name_of(request: &request::Request) -> Option<String> {
    let client = request.document("client").ok().flatten()?;
    app_name(client).ok().flatten()
}

/// Stores the client metadata; a connection sends it once.
pub(super) fn introduce(context: &mut Context<'_>) -> Result<(), Refusal> {
    let request = context.request;
    let Some(client) = request.document("client")? else { return Ok(()) };
    if context.session.introduced {
        let message = "The client metadata document may only be sent in the first hello";
        return Err(Refusal::new(code::METADATA_CANNOT_BE_MUTATED, message));
    }
    let app_name = app_name(client)?;
    context.session.app_name = app_name;
    context.session.introduced = true;
    context.world.statistics.last_client = Some(client.to_owned());
    Ok(())
}

/// The application's name; the rest of the metadata is checked and left aside.
fn app_name(client: &RawDocument) -> Result<Option<String>, Refusal> {
    const MOST: usize = 512;
    const MOST_OF_NAME: usize = 128;
    let size = client.as_bytes().len();
    if size > MOST {
        let message =
            format!("The client metadata document must be at most {MOST} bytes, not {size}");
        return Err(Refusal::new(code::METADATA_TOO_LARGE, message));
    }
    for (part, field) in [("driver", "name"), ("driver", "version"), ("os", "type")] {
        let part_of_it = client.get_document(part).ok();
        if part_of_it.is_none_or(|part| part.get_str(field).is_err()) {
            let message =
                format!("Missing required field '{part}.{field}' in the client metadata document");
            return Err(Refusal::new(code::METADATA_MISSING_FIELD, message));
        }
    }
    let Ok(application) = client.get_document("application") else { return Ok(None) };
    let Ok(name) = application.get_str("name") else { return Ok(None) };
    if name.len() > MOST_OF_NAME {
        let message = format!("The 'application.name' field must be at most {MOST_OF_NAME} bytes");
        return Err(Refusal::new(code::METADATA_APP_NAME_TOO_LARGE, message));
    }
    Ok(Some(name.to_owned()))
}

/// What a client that waits knows, and how long it waits.
struct Asked {
    process: ObjectId,
    counter: i64,
    longest: Duration,
}

impl Asked {
    /// Both are there or none is.
    fn read(request: &request::Request) -> Result<Option<Self>, Refusal> {
        let version = request.document("topologyVersion")?;
        let longest = request.whole("maxAwaitTimeMS")?;
        let (version, longest) = match (version, longest) {
            (None, None) => return Ok(None),
            (Some(version), Some(longest)) => (version, longest),
            (Some(_), None) => return Err(incomplete("topologyVersion", "maxAwaitTimeMS")),
            (None, Some(_)) => return Err(incomplete("maxAwaitTimeMS", "topologyVersion")),
        };
        let process = request::get(version, "processId")?.and_then(RawBsonRef::as_object_id);
        let counter = request::get(version, "counter")?.and_then(whole);
        let process = process.ok_or_else(|| mismatch("topologyVersion.processId", "objectId"))?;
        let counter = counter.ok_or_else(|| mismatch("topologyVersion.counter", "long"))?;
        if counter < 0 {
            let message = "topologyVersion counter must be non-negative";
            return Err(Refusal::new(code::NEGATIVE_COUNTER, message));
        }
        let longest = u64::try_from(longest).map_err(|_| {
            Refusal::new(code::NEGATIVE_WAIT, "maxAwaitTimeMS must be a non-negative integer")
        })?;
        Ok(Some(Self { process, counter, longest: Duration::from_millis(longest) }))
    }

    /// How to wait, and whether already for the first reply: not when the client's knowledge is
    /// of another process or of before.
    fn wait(
        &self,
        shape: Shape,
        exhaust: bool,
        world: &World,
        session: &Session,
    ) -> Result<(Wait, bool), Refusal> {
        let counter = world.topology.counter();
        let same_process = self.process == world.topology.process_id(session.service);
        if same_process && self.counter > counter {
            let message = format!(
                "Received a topology version with counter: {} which is greater than the server \
                 topology version counter: {counter}",
                self.counter
            );
            return Err(Refusal::new(code::COUNTER_AHEAD, message));
        }
        let wait = Wait { shape, longest: self.longest, exhaust, counter };
        Ok((wait, same_process && self.counter == counter))
    }
}

fn incomplete(there: &str, missing: &str) -> Refusal {
    let message = format!("A request with a '{there}' must include '{missing}'");
    Refusal::new(code::VERSION_WITHOUT_WAIT, message)
}
