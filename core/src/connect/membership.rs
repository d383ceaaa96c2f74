use core::fmt;
use std::collections::BTreeMap;

use bson::{RawArray, RawDocument};

use super::field::{self, Field, FieldError, Fields};
use crate::address::ServerAddress;
use crate::error::OneLine;

/// What a member of a replica set says of the set: the part of its reply to hello that discovery and server
/// selection need.
///
/// Addresses are in lower case, so that two spellings of a host are one. A text that is no address is left out: one
/// misspelt member must not cost the server that names it.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// `hosts`: the members that can become the primary.
    pub hosts: Vec<ServerAddress>,
    /// `passives`: members of priority 0.
    pub passives: Vec<ServerAddress>,
    /// `arbiters`.
    pub arbiters: Vec<ServerAddress>,
    /// `me`: the address of this member in the configuration of the set.
    pub me: Option<ServerAddress>,
    /// `primary`: which member this one takes for the primary.
    pub primary: Option<ServerAddress>,
    /// `tags`, which read preferences refer to.
    pub tags: BTreeMap<String, String>,
    /// `setVersion`: the version of the set's configuration.
    pub set_version: Option<i64>,
    /// `electionId` of a primary, which rises with every election. The bytes of an ObjectId.
    pub election_id: Option<[u8; 12]>,
}

const FIELDS: [&str; 8] =
    ["hosts", "passives", "arbiters", "me", "primary", "tags", "setVersion", "electionId"];

impl Membership {
    /// All members that the server names, of any kind.
    pub fn members(&self) -> impl Iterator<Item = &ServerAddress> {
        self.hosts.iter().chain(&self.passives).chain(&self.arbiters)
    }

    pub(super) fn read(reply: &RawDocument) -> Field<Self> {
        let reply = &Fields::of(reply, &FIELDS)?;
        Ok(Self {
            hosts: addresses(reply, "hosts")?,
            passives: addresses(reply, "passives")?,
            arbiters: addresses(reply, "arbiters")?,
            me: address(reply, "me")?,
            primary: address(reply, "primary")?,
            tags: tags(reply)?,
            set_version: field::whole_number(reply, "setVersion")?,
            election_id: field::object_id(reply, "electionId")?.map(|id| id.bytes()),
        })
    }
}

/// Members are counted, and tags are cut: both come from the server.
impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, passives, arbiters, me, primary, tags, set_version, election_id } = self;
        f.debug_struct("Membership")
            .field("hosts", &hosts.len())
            .field("passives", &passives.len())
            .field("arbiters", &arbiters.len())
            .field("me", me)
            .field("primary", primary)
            .field("tags", &OneLine::text(&format!("{tags:?}")))
            .field("set_version", set_version)
            .field("election_id", election_id)
            .finish()
    }
}

/// `lastWrite.lastWriteDate`, in milliseconds since 1970.
pub(super) fn last_write_ms(reply: &RawDocument) -> Field<Option<i64>> {
    let last_write = field::document(&Fields::of(reply, &["lastWrite"])?, "lastWrite")?;
    let Some(last_write) = last_write else { return Ok(None) };
    field::date_ms(&Fields::of(last_write, &["lastWriteDate"])?, "lastWriteDate")
}

fn address(reply: &Fields<'_>, name: &'static str) -> Field<Option<ServerAddress>> {
    Ok(field::text(reply, name)?.and_then(|text| text.parse().ok()))
}

fn addresses(reply: &Fields<'_>, name: &'static str) -> Field<Vec<ServerAddress>> {
    let Some(array) = field::array(reply, name)? else { return Ok(Vec::new()) };
    Ok(texts(array, name)?.into_iter().filter_map(|text| text.parse().ok()).collect())
}

fn texts<'a>(array: &'a RawArray, name: &'static str) -> Field<Vec<&'a str>> {
    let text = |value: bson::error::Result<bson::RawBsonRef<'a>>| {
        let value = value.map_err(|_| FieldError::Damaged)?;
        value.as_str().ok_or(FieldError::Type { name, expected: "made of texts" })
    };
    array.into_iter().map(text).collect()
}

fn tags(reply: &Fields<'_>) -> Field<BTreeMap<String, String>> {
    let Some(tags) = field::document(reply, "tags")? else { return Ok(BTreeMap::new()) };
    let tag = |element: bson::error::Result<(&bson::raw::CStr, bson::RawBsonRef<'_>)>| {
        let (name, value) = element.map_err(|_| FieldError::Damaged)?;
        let expected = "a document of strings";
        let value = value.as_str().ok_or(FieldError::Type { name: "tags", expected })?;
        Ok((name.as_str().to_owned(), value.to_owned()))
    };
    tags.into_iter().map(tag).collect()
}
