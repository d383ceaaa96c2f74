//! Where access tokens come from on a platform that `ENVIRONMENT` names:
//! [Built-in OIDC Environment Integrations](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#built-in-oidc-environment-integrations).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cenote_core::connect::AccessToken;
use cenote_core::error::BoxError;
use cenote_core::uri::{Credential, Secret};

use super::{TokenCallback, TokenRequest};

/// What takes the place of the application's callback; `None` if the credential has no `ENVIRONMENT`.
// OI-05
pub(super) fn callback(credential: &Credential) -> Option<Arc<TokenCallback>> {
    let property = |name: &str| credential.mechanism_properties.get(name).map(Secret::expose);
    let resource = property("TOKEN_RESOURCE").unwrap_or_default().to_owned();
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    Some(match property("ENVIRONMENT")? {
        "azure" => Arc::new(move |request| metadata::azure(metadata::AZURE, &resource, request)),
        "gcp" => Arc::new(move |request| metadata::gcp(metadata::GCP, &resource, request)),
        "k8s" => Arc::new(move |_| {
            let (name, file) = kubernetes_file(variable);
            read(name, &file)
        }),
        "test" => Arc::new(move |_| {
            let file = variable("OIDC_TOKEN_FILE");
            let file = file.ok_or("OIDC_TOKEN_FILE is not set in the environment")?;
            read("the file of OIDC_TOKEN_FILE", Path::new(&file))
        }),
        _ => return None,
    })
}

/// Whether the credential names a platform.
pub(super) fn is_named(credential: &Credential) -> bool {
    credential.mechanism_properties.contains_key("ENVIRONMENT")
}

/// The file of a service account's token, and what it is called.
fn kubernetes_file(variable: impl Fn(&str) -> Option<OsString>) -> (&'static str, PathBuf) {
    const DEFAULT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let azure = variable("AZURE_FEDERATED_TOKEN_FILE");
    let azure = azure.map(|file| ("the file of AZURE_FEDERATED_TOKEN_FILE", file.into()));
    let aws = || variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    let aws = || aws().map(|file| ("the file of AWS_WEB_IDENTITY_TOKEN_FILE", file.into()));
    azure.or_else(aws).unwrap_or_else(|| (DEFAULT, DEFAULT.into()))
}

/// The file as it is. The path is not shown: a variable may by mistake hold the token itself.
fn read(name: &str, file: &Path) -> Result<AccessToken, BoxError> {
    let text = fs::read_to_string(file);
    Ok(AccessToken::new(text.map_err(|error| format!("{name}: {error}"))?))
}

/// Services with the tokens of a virtual machine.
#[cfg(feature = "metadata-services")]
mod metadata {
    use serde_json::Value;
    use ureq::Agent;
    use ureq::http::Uri;

    use super::{AccessToken, BoxError, TokenRequest};

    pub(super) const AZURE: &str = "http://169.254.169.254";
    pub(super) const GCP: &str = "http://metadata";

    /// No token is longer, in bytes.
    const LONGEST: u64 = 64 * 1024;

    pub(super) fn azure(
        host: &str,
        resource: &str,
        request: &TokenRequest,
    ) -> Result<AccessToken, BoxError> {
        let get = agent(request).get(format!("{host}/metadata/identity/oauth2/token"));
        let mut get = get.query("api-version", "2018-02-01").query("resource", resource);
        if let Some(client) = &request.username {
            get = get.query("client_id", client);
        }
        let reply = text(get.header("Accept", "application/json").header("Metadata", "true"))?;
        // Neither the parser nor a part of the reply is quoted: there is a token in it.
        let reply: Value = serde_json::from_str(&reply)
            .map_err(|_| "the reply of the metadata service is not JSON")?;
        let token = reply.get("access_token").and_then(Value::as_str);
        let token = token.ok_or("the reply of the metadata service has no `access_token`")?;
        Ok(AccessToken::new(token))
    }

    pub(super) fn gcp(
        host: &str,
        resource: &str,
        request: &TokenRequest,
    ) -> Result<AccessToken, BoxError> {
        let path = "/computeMetadata/v1/instance/service-accounts/default/identity";
        let get = agent(request).get(format!("{host}{path}")).query("audience", resource);
        Ok(AccessToken::new(text(get.header("Metadata-Flavor", "Google"))?))
    }

    /// A token goes to no proxy and to no other host.
    fn agent(request: &TokenRequest) -> Agent {
        let config = Agent::config_builder().timeout_global(Some(request.timeout)).proxy(None);
        config.max_redirects(0).http_status_as_error(false).build().into()
    }

    fn text(get: ureq::RequestBuilder<ureq::typestate::WithoutBody>) -> Result<String, BoxError> {
        let host = get.uri_ref().and_then(Uri::host).unwrap_or_default().to_owned();
        let mut reply = get.call().map_err(|error| format!("{host}: {error}"))?;
        let body = reply.body_mut().with_config().limit(LONGEST).read_to_string();
        let (status, body) =
            (reply.status().as_u16(), body.map_err(|error| format!("{host}: {error}"))?);
        match status {
            200 => Ok(body),
            _ => Err(format!("{host} answered {status}").into()),
        }
    }
}

#[cfg(not(feature = "metadata-services"))]
mod metadata {
    use super::{AccessToken, BoxError, TokenRequest};

    pub(super) const AZURE: &str = "azure";
    pub(super) const GCP: &str = "gcp";

    pub(super) fn azure(name: &str, _: &str, _: &TokenRequest) -> Result<AccessToken, BoxError> {
        Err(format!("ENVIRONMENT:{name} needs the feature `metadata-services`").into())
    }

    pub(super) use azure as gcp;
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::kubernetes_file;

    // OI-05
    #[test]
    fn files_of_kubernetes() {
        let of = |set: &[&str]| {
            let found = |name: &str| set.contains(&name).then(|| OsString::from(name));
            kubernetes_file(found)
        };
        let [azure, aws] = ["AZURE_FEDERATED_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];
        let named = |name| (&*format!("the file of {name}").leak(), PathBuf::from(name));
        assert_eq!(of(&[azure, aws]), named(azure));
        assert_eq!(of(&[aws]), named(aws));
        let default = "/var/run/secrets/kubernetes.io/serviceaccount/token";
        assert_eq!(of(&[]), (default, PathBuf::from(default)));
    }

    #[cfg(feature = "metadata-services")]
    mod services {
        use std::io::{Read as _, Write as _};
        use std::net::TcpListener;
        use std::thread;
        use std::time::Duration;

        use super::super::{TokenRequest, metadata};

        /// A service that answers once: its address, and the request that it gets.
        fn service(reply: &'static str) -> (String, thread::JoinHandle<String>) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let thread = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                stream.write_all(reply.as_bytes()).unwrap();
                String::from_utf8(request).unwrap().to_lowercase()
            });
            (address, thread)
        }

        fn request(username: Option<&str>) -> TokenRequest {
            TokenRequest {
                username: username.map(str::to_owned),
                timeout: Duration::from_secs(20),
                version: TokenRequest::VERSION,
            }
        }

        const RESOURCE: &str = "api://a b,c:d/e";

        // OI-05
        #[test]
        fn tokens_of_azure() {
            for user in [None, Some("robot")] {
                let (host, service) = service(
                    "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"access_token\":\"hunter2\",\"x\":[1,2,3,4]}",
                );
                let token = metadata::azure(&host, RESOURCE, &request(user)).unwrap();
                assert_eq!(token, super::super::AccessToken::new("hunter2"));
                let asked = service.join().unwrap();
                let client = user.map_or(String::new(), |user| format!("&client_id={user}"));
                let line = format!(
                    "get /metadata/identity/oauth2/token?api-version=2018-02-01&resource=api%3a%2f%2fa%20b%2cc%3ad%2fe{client} \
                     http/1.1\r\n"
                );
                assert!(asked.starts_with(&line), "{asked}");
                assert!(asked.contains("\r\nmetadata: true\r\n"), "{asked}");
                assert!(asked.contains("\r\naccept: application/json\r\n"), "{asked}");
            }
        }

        // OI-05
        #[test]
        fn tokens_of_google() {
            let (host, service) = service("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhunter2");
            let token = metadata::gcp(&host, RESOURCE, &request(None)).unwrap();
            assert_eq!(token, super::super::AccessToken::new("hunter2"));
            let asked = service.join().unwrap();
            let line = "get /computemetadata/v1/instance/service-accounts/default/identity?audience=api%3a%2f%2f";
            assert!(asked.starts_with(line), "{asked}");
            assert!(asked.contains("\r\nmetadata-flavor: google\r\n"), "{asked}");
        }

        /// The body is not shown; a redirection is not followed, and no reply is read without end.
        #[test]
        fn replies_that_are_no_tokens() {
            let long: &str =
                Box::leak(format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(70_000)).into());
            for (reply, expected) in [
                (
                    "HTTP/1.1 400 Bad Request\r\nContent-Length: 10\r\n\r\nno hunter2",
                    " answered 400",
                ),
                ("HTTP/1.1 302 Found\r\nLocation: http://a/\r\nContent-Length: 0\r\n\r\n", "302"),
                ("ICY\r\n\r\n", "127.0.0.1: "),
                (long, "127.0.0.1: "),
            ] {
                let (host, _service) = service(reply);
                let error = metadata::gcp(&host, RESOURCE, &request(None)).unwrap_err().to_string();
                assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
            }
            for (reply, expected) in [
                ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "has no `access_token`"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhunter2", "is not JSON"),
            ] {
                let (host, _service) = service(reply);
                let outcome = metadata::azure(&host, RESOURCE, &request(None));
                assert!(outcome.unwrap_err().to_string().ends_with(expected), "{expected}");
            }
        }
    }
}
