use std::env::{self, VarError};

use cenote_core::connect::EstablishOptions;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::{Credential, Mechanism};

use super::AwsCredentialProvider;
use crate::runtime::contain;

/// Whether connections authenticate with keys of AWS.
pub(crate) fn uses_keys(options: &EstablishOptions) -> bool {
    let is_aws = |it: &Credential| it.mechanism == Some(Mechanism::MongodbAws);
    options.sasl_mechanism.is_none() && options.credential.as_ref().is_some_and(is_aws)
}

/// # Errors
///
/// There are keys in the connection string, or a provider that is of no use.
// AW-01, AW-09
pub(crate) fn check(options: &EstablishOptions, has_provider: bool) -> Result<(), ConnectionError> {
    match (&options.credential, uses_keys(options)) {
        (Some(credential), true) if has_keys(credential) => Err(wrong(
            "keys of AWS must not stand in the connection string or in a credential: set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY in the environment, or give an `aws_credential_provider`",
        )),
        (Some(credential), true) if credential.source != "$external" => {
            Err(wrong("MONGODB-AWS has users in $external only"))
        }
        (_, false) if has_provider => Err(wrong(
            "a provider of keys of AWS is for MONGODB-AWS: add authMechanism=MONGODB-AWS to the connection string",
        )),
        (_, true | false) => Ok(()),
    }
}

fn has_keys(credential: &Credential) -> bool {
    credential.username.is_some()
        || credential.password.is_some()
        || !credential.mechanism_properties.is_empty()
}

/// The keys for one authentication: of the provider, if there is one, and else of the environment as it is now. Blocks as
/// long as the provider does.
// AW-01, AW-02
pub(crate) fn keys(
    provider: Option<&AwsCredentialProvider>,
) -> Result<Credential, ConnectionError> {
    let Some(provider) = provider else { return of_environment(env::var) };
    let credential = match contain(provider) {
        Some(Ok(credential)) => credential,
        Some(Err(error)) => {
            return Err(
                wrong(&format!("the provider of keys of AWS failed: {error}")).with_source(error)
            );
        }
        None => return Err(wrong("the provider of keys of AWS panicked")),
    };
    match credential.mechanism {
        Some(Mechanism::MongodbAws) => Ok(credential),
        Some(_) | None => Err(wrong(
            "the provider of keys of AWS returned another credential: use `Credential::of_aws_keys`",
        )),
    }
}

/// Variables that are empty count as absent.
fn of_environment(
    variable: impl Fn(&'static str) -> Result<String, VarError>,
) -> Result<Credential, ConnectionError> {
    let of_name = |name| match variable(name) {
        Ok(value) if !value.is_empty() => Ok(Some(value)),
        Ok(_) | Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(wrong(&format!("{name} in the environment is not UTF-8")))
        }
    };
    let missing = |names: &str| {
        wrong(&format!(
            "MONGODB-AWS lacks {names} in the environment: set it, or give an `aws_credential_provider` for keys of \
             containers, instances and web identity"
        ))
    };
    let [access, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    match (of_name(access)?, of_name(secret)?) {
        (Some(access), Some(secret)) => {
            let token = of_name("AWS_SESSION_TOKEN")?;
            Ok(Credential::of_aws_keys(&access, secret.into(), token.map(Into::into)))
        }
        (Some(_), None) => Err(missing(secret)),
        (None, Some(_)) => Err(missing(access)),
        (None, None) => Err(missing(&format!("{access} and {secret}"))),
    }
}

fn wrong(reason: &str) -> ConnectionError {
    ConnectionError::configuration(Stage::Authentication, reason)
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::{AwsCredentialProvider, keys, of_environment};

    // AW-01
    #[test]
    fn keys_of_the_environment() {
        let [access, secret, token] =
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
        let of = |set: &[&str]| {
            let found = |name: &'static str| match set.contains(&name) {
                true => Ok(format!("hunter2 {name}")),
                false if name == token => Ok(String::new()),
                false => Err(VarError::NotPresent),
            };
            of_environment(found).map_err(|error| error.reason().to_owned())
        };
        let good = of(&[access, secret, token]).unwrap();
        assert_eq!(good.username.as_deref(), Some("hunter2 AWS_ACCESS_KEY_ID"));
        assert_eq!(good.password.unwrap().expose(), "hunter2 AWS_SECRET_ACCESS_KEY");
        assert_eq!(good.mechanism_properties[token].expose(), "hunter2 AWS_SESSION_TOKEN");
        assert!(of(&[access, secret]).unwrap().mechanism_properties.is_empty());
        for (set, lacks) in [
            (&[][..], "lacks AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in"),
            (&[secret, token], "lacks AWS_ACCESS_KEY_ID in"),
            (&[access, token], "lacks AWS_SECRET_ACCESS_KEY in"),
        ] {
            let error = of(set).unwrap_err();
            assert!(error.contains(lacks) && !error.contains("hunter2"), "{error}");
        }
    }

    // AW-02
    #[test]
    fn a_provider_that_fails() {
        let failed = |provider: &AwsCredentialProvider| {
            keys(Some(provider)).unwrap_err().reason().to_owned()
        };
        assert!(failed(&|| Err("no role".into())).ends_with("failed: no role"));
        assert!(failed(&|| panic!("on purpose")).ends_with("panicked"));
        let other = cenote_core::uri::Credential::of_user("a", "b", "admin");
        assert!(failed(&move || Ok(other.clone())).contains("use `Credential::of_aws_keys`"));
    }
}
