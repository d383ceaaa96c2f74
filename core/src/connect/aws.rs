//! MONGODB-AWS: a request to AWS STS that the client signs and the server sends, by
//! [Signature Version 4](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).

use core::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::raw::cstr;
use bson::{Binary, DateTime, RawDocument, RawDocumentBuf, spec::BinarySubtype};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use super::Nonce;
use super::field::{self, FieldError, Fields};
use super::mechanism::SaslConversation;
use super::sasl::Ended;
use crate::error::BoxError;
use crate::uri::Secret;

/// The keys of a user of AWS.
#[derive(Clone)]
pub(super) struct AwsKeys {
    pub(super) access_key: String,
    pub(super) secret_key: Secret,
    pub(super) session_token: Option<Secret>,
}

/// The client's side of one conversation: a nonce, and then the signed request.
// AU-55
pub(super) struct Aws {
    keys: AwsKeys,
    nonce: Nonce,
    /// Since 1970; `None` if the embedder has not said it.
    time: Option<Duration>,
    is_signed: bool,
}

/// Why a server's challenge cannot be signed. No message holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum AwsError {
    #[error("the server's message is malformed: {0}")]
    Malformed(FieldError),
    #[error("the server's message is not a document")]
    NoDocument,
    #[error("the server's nonce has {0} bytes instead of {SERVER_NONCE}")]
    NonceLength(usize),
    #[error("the server's nonce does not continue the client's")]
    Nonce,
    #[error("the host of AWS STS that the server names has {0} bytes, which must be 1 to 255")]
    HostLength(usize),
    #[error(
        "the host of AWS STS that the server names has an empty label, or characters that no host name has"
    )]
    Host,
    #[error("a nonce for MONGODB-AWS must have {CLIENT_NONCE} characters")]
    OwnNonce,
    #[error(
        "the machine does not know the time, which is a part of the signature: tell it with `Establish::at`"
    )]
    NoTime,
}

const CLIENT_NONCE: usize = 32;
const SERVER_NONCE: usize = 64;
const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";

impl Aws {
    pub(super) const fn new(keys: AwsKeys, nonce: Nonce, time: Option<Duration>) -> Self {
        Self { keys, nonce, time, is_signed: false }
    }

    // AW-04
    fn sign(&self, challenge: &[u8]) -> Result<Vec<u8>, AwsError> {
        let challenge = RawDocument::from_bytes(challenge).map_err(|_| AwsError::NoDocument)?;
        let (nonce, host) = read(challenge).map_err(AwsError::Malformed)?;
        if nonce.len() != SERVER_NONCE {
            return Err(AwsError::NonceLength(nonce.len()));
        }
        if !nonce.starts_with(self.nonce.as_str().as_bytes()) {
            return Err(AwsError::Nonce);
        }
        let region = region(host)?;
        let date = self.time.map(date).ok_or(AwsError::NoTime)?;
        let request = Request { keys: &self.keys, nonce, host, region, date: &date };
        let authorization = request.authorization();
        let token = self.keys.session_token.as_ref().map_or("", Secret::expose);
        let mut answer = with_room(authorization.len() + date.len() + token.len());
        answer.append(cstr!("a"), authorization);
        answer.append(cstr!("d"), date.as_str());
        if !token.is_empty() {
            answer.append(cstr!("t"), token);
        }
        Ok(answer.into_bytes())
    }
}

impl SaslConversation for Aws {
    // AW-03
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        let nonce = self.nonce.as_str();
        if nonce.len() != CLIENT_NONCE {
            return Err(AwsError::OwnNonce.into());
        }
        let nonce = Binary { subtype: BinarySubtype::Generic, bytes: nonce.as_bytes().to_vec() };
        let mut first = with_room(CLIENT_NONCE);
        first.append(cstr!("r"), nonce);
        // `n`: no channel binding.
        first.append(cstr!("p"), i32::from(b'n'));
        Ok(first.into_bytes())
    }

    fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, BoxError> {
        if std::mem::replace(&mut self.is_signed, true) {
            return Err(Ended.into());
        }
        Ok(self.sign(challenge)?)
    }
}

/// An empty document that does not have to grow, which would leave copies of secrets behind.
fn with_room(room: usize) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(room + 128);
    bytes.extend_from_slice(&[5, 0, 0, 0, 0]);
    RawDocumentBuf::from_bytes(bytes).expect("an empty document")
}

fn read(challenge: &RawDocument) -> Result<(&[u8], &str), FieldError> {
    let fields = Fields::of(challenge, &["s", "h"])?;
    let nonce = field::required("s", field::binary(&fields, "s")?)?;
    Ok((nonce, field::required("h", field::text(&fields, "h")?)?))
}

/// The region of a host of AWS STS:
/// [Region Calculation](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#region-calculation).
/// The host becomes a line of the request, so that it may have no other characters than a host name has.
// AW-05, AW-06
fn region(host: &str) -> Result<&str, AwsError> {
    const DEFAULT: &str = "us-east-1";
    if host.is_empty() || host.len() > 255 {
        return Err(AwsError::HostLength(host.len()));
    }
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if host.split('.').any(str::is_empty) || !host.bytes().all(is_good) {
        return Err(AwsError::Host);
    }
    match host {
        "sts.amazonaws.com" => Ok(DEFAULT),
        _ => Ok(host.split('.').nth(1).unwrap_or(DEFAULT)),
    }
}

/// As `20191107T002607Z`.
fn date(since_1970: Duration) -> String {
    let millis = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX).saturating_mul(1000);
    let text = DateTime::from_millis(millis).try_to_rfc3339_string().unwrap_or_default();
    text.chars().filter(|character| !matches!(character, '-' | ':')).collect()
}

/// What is signed.
struct Request<'a> {
    keys: &'a AwsKeys,
    nonce: &'a [u8],
    host: &'a str,
    region: &'a str,
    date: &'a str,
}

impl Request<'_> {
    /// The `Authorization` header.
    // AW-07
    fn authorization(&self) -> String {
        let (headers, names) = self.headers();
        let request = Zeroizing::new(
            ["POST\n/\n\n", &headers, "\n", &names, "\n", &hash(BODY.as_bytes())].concat(),
        );
        let scope = format!("{}/{}/sts/aws4_request", self.day(), self.region);
        let date = self.date;
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hash(request.as_bytes()));
        let signature = hexadecimal(&*hmac(&*self.signing_key(), &to_sign));
        let access_key = &self.keys.access_key;
        format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }

    /// The headers in the order of their names, one a line, and the names.
    // AW-08
    fn headers(&self) -> (Zeroizing<String>, String) {
        let nonce = STANDARD.encode(self.nonce);
        let token = self.keys.session_token.as_ref().map(Secret::expose);
        let headers = [
            ("content-length", Some("43")),
            ("content-type", Some("application/x-www-form-urlencoded")),
            ("host", Some(self.host)),
            ("x-amz-date", Some(self.date)),
            ("x-amz-security-token", token.filter(|token| !token.is_empty())),
            ("x-mongodb-gs2-cb-flag", Some("n")),
            ("x-mongodb-server-nonce", Some(&nonce)),
        ];
        let there = || headers.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let lines: Vec<_> = there().flat_map(|(name, value)| [name, ":", value, "\n"]).collect();
        let names: Vec<_> = there().map(|(name, _)| name).collect();
        (Zeroizing::new(lines.concat()), names.join(";"))
    }

    // AW-07
    fn signing_key(&self) -> Zeroizing<[u8; 32]> {
        let secret = Zeroizing::new(["AWS4", self.keys.secret_key.expose()].concat());
        let mut key = hmac(secret.as_bytes(), self.day());
        for part in [self.region, "sts", "aws4_request"] {
            key = hmac(&*key, part);
        }
        key
    }

    fn day(&self) -> &str {
        self.date.get(..8).unwrap_or_default()
    }
}

fn hmac(key: &[u8], message: &str) -> Zeroizing<[u8; 32]> {
    let hmac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length");
    Zeroizing::new(hmac.chain_update(message).finalize().into_bytes().into())
}

fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{AwsError, AwsKeys, Request, date, hexadecimal, region};
    use crate::uri::Secret;

    fn keys(token: Option<&str>) -> AwsKeys {
        AwsKeys {
            access_key: "AKIAI44QH8DHBEXAMPLE".to_owned(),
            secret_key: Secret::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: token.map(|token| Secret::from(token.to_owned())),
        }
    }

    /// Computed by another implementation.
    // AW-07
    #[test]
    fn signatures() {
        let nonce: Vec<u8> =
            b"AgICAgICAgICAgICAgICAgICAgICAgIC".iter().copied().chain(0..32).collect();
        for (token, host, expected) in [
            (
                None,
                "sts.us-west-2.amazonaws.com",
                "4e98a7d28cb039619a0a1d3c081e3506ff842d01ea1a22ba20a2b8cdc86636c3",
            ),
            (
                Some("AQoDYXdzEJr"),
                "sts.amazonaws.com",
                "394303c3bb606762e06d40db56aa2c71728af4127a0ab14fd24c1ec6ae3d5b21",
            ),
        ] {
            let keys = keys(token);
            let region = region(host).unwrap();
            let date = "20191107T002607Z";
            let request = Request { keys: &keys, nonce: &nonce, host, region, date };
            let authorization = request.authorization();
            let start = format!(
                "AWS4-HMAC-SHA256 Credential=AKIAI44QH8DHBEXAMPLE/20191107/{region}/sts/aws4_request, \
                 SignedHeaders=content-length;content-type;host;x-amz-date;"
            );
            assert!(authorization.starts_with(&start), "{authorization}");
            assert!(authorization.ends_with(&format!(", Signature={expected}")), "{authorization}");
            assert_eq!(authorization.contains("x-amz-security-token"), token.is_some());
        }
    }

    // AW-06
    #[test]
    fn regions_of_hosts() {
        let longest = "x".repeat(255);
        for (host, expected) in [
            ("sts.amazonaws.com", Ok("us-east-1")),
            ("sts.us-west-2.amazonaws.com", Ok("us-west-2")),
            ("sts.us-west-2.amazonaws.com.ch", Ok("us-west-2")),
            ("example.com", Ok("com")),
            ("localhost", Ok("us-east-1")),
            (&longest, Ok("us-east-1")),
            ("sts..com", Err(AwsError::Host)),
            (".amazonaws.com", Err(AwsError::Host)),
            ("sts.amazonaws.", Err(AwsError::Host)),
            ("sts.a\nx-amz-date:b.com", Err(AwsError::Host)),
            ("sts.ä.com", Err(AwsError::Host)),
            ("", Err(AwsError::HostLength(0))),
            (&"x".repeat(256), Err(AwsError::HostLength(256))),
        ] {
            assert_eq!(region(host), expected, "{host:?}");
        }
    }

    #[test]
    fn dates() {
        assert_eq!(date(Duration::from_millis(1_573_086_367_999)), "20191107T002607Z");
        assert_eq!(date(Duration::ZERO), "19700101T000000Z");
        // Far in the future there is a text of some kind, and no panic.
        let _ = date(Duration::MAX);
        assert_eq!(hexadecimal(&[0, 15, 255]), "000fff");
    }
}
