//! The fail point `failCommand`, as servers have it.

use std::time::Duration;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::commands::Definition;
use super::entropy::Entropy;
use super::refusal::{Refusal, code};
use super::request::{self, mismatch, truth, whole};

/// `failCommand`: off, or configured.
#[derive(Debug, Default)]
pub(super) struct FailPoint {
    mode: Mode,
    effect: Effect,
    /// How often it has happened since the server started.
    entered: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mode {
    #[default]
    Off,
    AlwaysOn,
    Times(i64),
    Skip(i64),
    Probability(f64),
}

/// `data`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Effect {
    commands: Vec<String>,
    app_name: Option<String>,
    verdict: Verdict,
}

/// What becomes of a command. In this order: it waits, its connection is closed, it fails; or it
/// runs and its reply gets a write concern error.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) block: Option<Duration>,
    pub(super) close: bool,
    pub(super) error: Option<i32>,
    /// What the error says, which real servers do not let choose.
    pub(super) message: Option<String>,
    pub(super) labels: Option<Vec<String>>,
    pub(super) write_concern_error: Option<RawDocumentBuf>,
}

const FAIL_COMMAND: &str = "failCommand";

impl FailPoint {
    /// Does what a `configureFailPoint` says, and gives how often the fail point has happened.
    ///
    /// # Errors
    ///
    /// Another fail point, or a field that makes no sense; nothing changes.
    pub(super) fn configure(&mut self, command: &RawDocument) -> Result<i64, Refusal> {
        let name = request::get(command, "configureFailPoint")?.and_then(RawBsonRef::as_str);
        if name != Some(FAIL_COMMAND) {
            let name = name.unwrap_or_default();
            let message = format!("{name} not found; this server has {FAIL_COMMAND} alone");
            return Err(Refusal::new(code::FAIL_POINT_SET_FAILED, message));
        }
        let mode = match request::get(command, "mode")? {
            Some(mode) => Mode::read(mode)?,
            None => return Err(bad("configureFailPoint needs a 'mode'")),
        };
        let effect = match request::get(command, "data")? {
            None => Effect::default(),
            Some(RawBsonRef::Document(data)) => Effect::read(data)?,
            Some(_) => return Err(mismatch("configureFailPoint.data", "object")),
        };
        (self.mode, self.effect) = (mode, effect);
        Ok(self.entered)
    }

    /// What becomes of this command, if the fail point concerns it and it is its turn.
    pub(super) fn judge(
        &mut self,
        command: &Definition,
        app_name: Option<&str>,
        entropy: &mut Entropy,
    ) -> Option<Verdict> {
        if self.mode == Mode::Off || !self.effect.concerns(command, app_name) {
            return None;
        }
        if !self.mode.is_due(entropy) {
            return None;
        }
        self.entered += 1;
        Some(self.effect.verdict.clone())
    }
}

impl Mode {
    fn read(mode: RawBsonRef<'_>) -> Result<Self, Refusal> {
        if let Some(mode) = mode.as_document() {
            return Self::read_document(mode);
        }
        match mode.as_str() {
            Some("off") => Ok(Self::Off),
            Some("alwaysOn") => Ok(Self::AlwaysOn),
            Some(_) | None => {
                Err(bad("'mode' must be \"off\", \"alwaysOn\", or a document with times, skip or \
                 activationProbability"))
            }
        }
    }

    fn read_document(mode: &RawDocument) -> Result<Self, Refusal> {
        let count = |key| match request::get(mode, key) {
            Ok(Some(value)) => match whole(value) {
                Some(count) if count >= 0 => Ok(Some(count)),
                Some(_) | None => Err(bad(&format!("'{key}' must be a number from 0 on"))),
            },
            Ok(None) => Ok(None),
            Err(refusal) => Err(refusal),
        };
        if let Some(times) = count("times")? {
            return Ok(if times == 0 { Self::Off } else { Self::Times(times) });
        }
        if let Some(skip) = count("skip")? {
            return Ok(Self::Skip(skip));
        }
        let Some(value) = request::get(mode, "activationProbability")? else {
            return Err(bad("a 'mode' document needs times, skip or activationProbability"));
        };
        let probability = value.as_f64().or_else(|| whole(value).map(|whole| whole as f64));
        match probability {
            Some(probability) if (0.0..=1.0).contains(&probability) => {
                Ok(Self::Probability(probability))
            }
            Some(_) | None => Err(bad("'activationProbability' must be a number from 0 to 1")),
        }
    }

    fn is_due(&mut self, entropy: &mut Entropy) -> bool {
        match *self {
            Self::Off => false,
            Self::AlwaysOn | Self::Skip(0) => true,
            Self::Times(left) => {
                *self = if left > 1 { Self::Times(left - 1) } else { Self::Off };
                true
            }
            Self::Skip(left) => {
                *self = Self::Skip(left - 1);
                false
            }
            Self::Probability(probability) => entropy.fraction() < probability,
        }
    }
}

impl Effect {
    /// `failInternalCommands` and `threadName` make no difference: no client is another server.
    fn read(data: &RawDocument) -> Result<Self, Refusal> {
        let get = |key| request::get(data, key);
        let flag = |key| get(key).map(|value| value.and_then(truth).unwrap_or_default());
        let error = match get("errorCode")? {
            None => None,
            Some(value) => {
                let code = whole(value).and_then(|code| i32::try_from(code).ok());
                Some(code.ok_or_else(|| mismatch("data.errorCode", "int"))?)
            }
        };
        let block =
            if flag("blockConnection")? { Some(block_time(get("blockTimeMS")?)?) } else { None };
        let write_concern_error = match get("writeConcernError")? {
            None => None,
            Some(RawBsonRef::Document(error)) => Some(error.to_owned()),
            Some(_) => return Err(mismatch("data.writeConcernError", "object")),
        };
        let text = |key, what| match get(key)? {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text.to_owned())),
            Some(_) => Err(mismatch(what, "string")),
        };
        Ok(Self {
            commands: match get("failCommands")? {
                None => Vec::new(),
                Some(names) => strings(names, "data.failCommands")?,
            },
            app_name: text("appName", "data.appName")?,
            verdict: Verdict {
                block,
                close: flag("closeConnection")?,
                error,
                message: text("errmsg", "data.errmsg")?,
                labels: match get("errorLabels")? {
                    Some(labels @ RawBsonRef::Array(_)) => {
                        Some(strings(labels, "data.errorLabels")?)
                    }
                    _ => None,
                },
                write_concern_error,
            },
        })
    }

    /// Never the command that would switch it off.
    fn concerns(&self, command: &Definition, app_name: Option<&str>) -> bool {
        let Verdict { block, close, error, message: _, labels: _, write_concern_error } =
            &self.verdict;
        let does_something =
            block.is_some() || *close || error.is_some() || write_concern_error.is_some();
        does_something
            && command.name != "configureFailPoint"
            && self.app_name.as_deref().is_none_or(|name| app_name == Some(name))
            && self.commands.iter().any(|name| command.is_called(name))
    }
}

fn block_time(value: Option<RawBsonRef<'_>>) -> Result<Duration, Refusal> {
    let millis = value.and_then(whole).ok_or_else(|| {
        Refusal::new(
            code::INVALID_OPTIONS,
            "must specify 'blockTimeMS' when 'blockConnection' is true",
        )
    })?;
    let millis = u64::try_from(millis)
        .map_err(|_| Refusal::new(code::INVALID_OPTIONS, "'blockTimeMS' must be non-negative"))?;
    Ok(Duration::from_millis(millis))
}

fn strings(value: RawBsonRef<'_>, what: &str) -> Result<Vec<String>, Refusal> {
    Ok(request::strings(value, what)?.into_iter().map(str::to_owned).collect())
}

fn bad(message: &str) -> Refusal {
    Refusal::new(code::BAD_VALUE, message)
}
