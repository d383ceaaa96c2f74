//! MONGODB-AWS. The server names a host of AWS STS, and the client signs a request to it. A real server sends the request;
//! this one computes the signature from the key, which it knows, as AWS does.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::raw::{RawDocumentBuf, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawDocument};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::credential::same;
use super::{Login, fail};
use crate::commands::Context;
use crate::refusal::{Refusal, code};
use crate::user::{AwsKey, EXTERNAL};

/// What the client has to sign.
#[derive(Debug)]
pub(super) struct Challenge {
    nonce: Vec<u8>,
    host: String,
}

/// How far the client's clock may be off.
const SKEW: Duration = Duration::from_secs(300);

impl Challenge {
    /// The client's message is a nonce and a flag: no channel binding.
    pub(super) fn begin(
        context: &mut Context<'_>,
        login: &Login<'_>,
        message: &[u8],
    ) -> Result<Self, Refusal> {
        let own = RawDocument::from_bytes(message).ok().and_then(|it| {
            let nonce = it.get_binary("r").ok()?.bytes;
            let no_binding = it.get_i32("p").ok()? == i32::from(b'n');
            (nonce.len() == 32 && no_binding && login.database == EXTERNAL).then_some(nonce)
        });
        let Some(own) = own else {
            let text =
                "MONGODB-AWS begins with 32 bytes in 'r' and the flag 'n' in 'p', in $external";
            return Err(Refusal::new(code::BAD_VALUE, text));
        };
        let added: [u8; 32] = context.world.entropy.bytes();
        let host = context.world.users.sts_host().to_owned();
        Ok(Self { nonce: [own, &added[..]].concat(), host })
    }

    pub(super) fn message(&self) -> Vec<u8> {
        let nonce = Binary { subtype: BinarySubtype::Generic, bytes: self.nonce.clone() };
        let mut message = RawDocumentBuf::new();
        message.append(cstr!("s"), nonce);
        message.append(cstr!("h"), self.host.as_str());
        message.into_bytes()
    }

    /// The access key whose owner has signed.
    pub(super) fn finish(
        &self,
        context: &mut Context<'_>,
        message: &[u8],
    ) -> Result<String, Refusal> {
        self.verified(context, message).ok_or_else(|| fail(context))
    }

    fn verified(&self, context: &Context<'_>, message: &[u8]) -> Option<String> {
        let message = RawDocument::from_bytes(message).ok()?;
        let (given, date) = (message.get_str("a").ok()?, message.get_str("d").ok()?);
        let access_key = given.split_once("Credential=")?.1.split_once('/')?.0;
        let key = context.world.users.aws_key(access_key)?;
        if message.get_str("t").ok() != key.session_token.as_deref() {
            return None;
        }
        let now = context.world.wall_clock(context.now);
        let expected = self.authorization(key, date);
        (now.abs_diff(time(date)?) <= SKEW && same(given.as_bytes(), expected.as_bytes()))
            .then(|| access_key.to_owned())
    }

    /// Step by step as AWS describes Signature Version 4.
    fn authorization(&self, key: &AwsKey, date: &str) -> String {
        let host = &self.host;
        let token = key.session_token.as_ref();
        let token_line =
            token.map_or_else(String::new, |it| format!("x-amz-security-token:{it}\n"));
        let token_name = if token.is_some() { "x-amz-security-token;" } else { "" };
        let names = format!(
            "content-length;content-type;host;x-amz-date;{token_name}x-mongodb-gs2-cb-flag;x-mongodb-server-nonce"
        );
        let nonce = STANDARD.encode(&self.nonce);
        let body = digest("Action=GetCallerIdentity&Version=2011-06-15");
        let request = format!(
            "POST\n/\n\ncontent-length:43\ncontent-type:application/x-www-form-urlencoded\nhost:{host}\n\
             x-amz-date:{date}\n{token_line}x-mongodb-gs2-cb-flag:n\nx-mongodb-server-nonce:{nonce}\n\n{names}\n{body}"
        );
        let labels: Vec<_> = host.split('.').collect();
        let region = match labels[..] {
            ["sts", "amazonaws", "com"] | [_] => "us-east-1",
            [_, region, ..] => region,
            [] => "",
        };
        let day = date.chars().take(8).collect::<String>();
        let scope = format!("{day}/{region}/sts/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", digest(&request));
        let secret = format!("AWS4{}", key.secret_key).into_bytes();
        let parts = [&*day, region, "sts", "aws4_request", &text];
        let signature = parts.into_iter().fold(secret, |key, part| keyed(&key, part));
        let access_key = &key.access_key;
        format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={}",
            hexadecimal(&signature)
        )
    }
}

/// Since 1970, of `20191107T002607Z`.
fn time(date: &str) -> Option<Duration> {
    let part = |from: usize, to: usize| date.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(9, 11)?, part(11, 13)?, part(13, 15)?);
    let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    let millis = DateTime::parse_rfc3339_str(text).ok()?.timestamp_millis();
    u64::try_from(millis).ok().map(Duration::from_millis)
}

fn keyed(key: &[u8], message: &str) -> Vec<u8> {
    let hmac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length");
    hmac.chain_update(message).finalize().into_bytes().to_vec()
}

fn digest(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
