//! The requirements that a file is about.

use serde::Deserialize;

/// The id of a requirement, such as `WQ-12`, as in Cenote's `docs/audit/requirements.md`. Only its form is
/// checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct RequirementId;

impl TryFrom<String> for RequirementId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        let is_family = |text: &str| {
            (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase())
        };
        let is_number = |text: &str| text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit());
        match id.split_once('-') {
            Some((family, number)) if is_family(family) && is_number(number) => Ok(Self),
            Some(_) | None => Err(format!("`{id}` is no id of a rule, such as `WQ-12`")),
        }
    }
}
