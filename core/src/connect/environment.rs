use std::collections::BTreeMap;

use bson::raw::{RawDocumentBuf, cstr};

use super::metadata::cut;

/// Where the client runs. The embedder finds it out: the core reads no environment.
///
/// ```
/// use std::env::{self, consts};
///
/// use cenote_core::connect::Environment;
///
/// let variable = |name: &str| env::var(name).ok();
/// let environment = Environment {
///     has_dockerenv: std::path::Path::new("/.dockerenv").exists(),
///     ..Environment::of(consts::OS, consts::ARCH, variable)
/// };
/// # drop(environment);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The operating system as `uname -s` calls it; `None` becomes `unknown`.
    pub os_type: Option<String>,
    /// The full name of the operating system.
    pub os_name: Option<String>,
    /// The machine's architecture.
    pub architecture: Option<String>,
    /// The operating system's version.
    pub os_version: Option<String>,
    /// Those of [`VARIABLES`](Self::VARIABLES) that are set. An empty value counts as none.
    pub variables: BTreeMap<String, String>,
    /// Whether there is a file `/.dockerenv`.
    pub has_dockerenv: bool,
}

impl Environment {
    /// The environment variables that tell where the client runs.
    pub const VARIABLES: [&str; 26] = [
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_RUNTIME_API",
        "FUNCTIONS_WORKER_RUNTIME",
        "K_SERVICE",
        "FUNCTION_NAME",
        "VERCEL",
        "AWS_REGION",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "FUNCTION_MEMORY_MB",
        "FUNCTION_TIMEOUT_SEC",
        "FUNCTION_REGION",
        "VERCEL_REGION",
        "KUBERNETES_SERVICE_HOST",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CURSOR_AGENT",
        "CODEX_SANDBOX",
        "CLINE_ACTIVE",
        "GEMINI_CLI",
        "AUGMENT_AGENT",
        "OPENCODE",
        "OPENCODE_CLIENT",
        "TRAE_AI_SHELL_ID",
        "GOOSE_TERMINAL",
        "GOOSE_AGENT",
        ANY_AGENT,
    ];

    /// With the [operating system](std::env::consts::OS) and the [architecture](std::env::consts::ARCH) as Rust calls
    /// them, and the variables that are set.
    #[must_use]
    pub fn of(os: &str, architecture: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let os_type = match os {
            "linux" => "Linux",
            "macos" => "Darwin",
            "windows" => "Windows",
            other => other,
        };
        let set = |name: &&str| Some(((*name).to_owned(), variable(name)?));
        Self {
            os_type: Some(os_type.to_owned()),
            architecture: Some(architecture.to_owned()),
            variables: Self::VARIABLES.iter().filter_map(set).collect(),
            ..Self::default()
        }
    }

    /// Whether this process is a function on a platform that freezes it between two calls, so that
    /// a streamed reply would not be read.
    // SM-02
    #[must_use]
    pub fn is_faas(&self) -> bool {
        service(self).is_some()
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }
}

/// The `env` of the client's metadata.
// HS-26
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Surroundings {
    function: Option<Function>,
    agent: Option<String>,
    docker: bool,
    kubernetes: bool,
}

/// A function platform, and its data about this function.
// HS-25
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    name: &'static str,
    region: Option<String>,
    memory_mb: Option<i32>,
    timeout_sec: Option<i32>,
}

impl Surroundings {
    pub(super) fn of(environment: &Environment) -> Self {
        Self {
            function: Function::of(environment),
            agent: agent(environment),
            docker: environment.has_dockerenv,
            kubernetes: environment.is_set("KUBERNETES_SERVICE_HOST"),
        }
    }

    /// Leaves the names of the service and of the agent.
    pub(super) fn drop_details(&mut self) {
        *self = Self {
            function: self.function.take().map(Function::without_details),
            agent: self.agent.take(),
            ..Self::default()
        };
    }

    pub(super) fn drop_agent(&mut self) {
        self.agent = None;
    }

    /// `None` when there is nothing to say.
    pub(super) fn to_document(&self) -> Option<RawDocumentBuf> {
        let mut document = RawDocumentBuf::new();
        if let Some(function) = &self.function {
            function.append_to(&mut document);
        }
        let mut container = RawDocumentBuf::new();
        if self.docker {
            container.append(cstr!("runtime"), "docker");
        }
        if self.kubernetes {
            container.append(cstr!("orchestrator"), "kubernetes");
        }
        if !container.is_empty() {
            document.append(cstr!("container"), container);
        }
        if let Some(agent) = &self.agent {
            document.append(cstr!("agent"), agent.as_str());
        }
        (!document.is_empty()).then_some(document)
    }
}

impl Function {
    fn of(environment: &Environment) -> Option<Self> {
        let text = |name| environment.variable(name).map(str::to_owned);
        let number = |name| environment.variable(name)?.parse().ok();
        let name = service(environment)?;
        let mut function = Self { name, region: None, memory_mb: None, timeout_sec: None };
        match name {
            LAMBDA => {
                function.region = text("AWS_REGION");
                function.memory_mb = number("AWS_LAMBDA_FUNCTION_MEMORY_SIZE");
            }
            GOOGLE => {
                function.region = text("FUNCTION_REGION");
                function.memory_mb = number("FUNCTION_MEMORY_MB");
                function.timeout_sec = number("FUNCTION_TIMEOUT_SEC");
            }
            VERCEL => function.region = text("VERCEL_REGION"),
            _ => {}
        }
        Some(function)
    }

    fn without_details(self) -> Self {
        Self { name: self.name, region: None, memory_mb: None, timeout_sec: None }
    }

    fn append_to(&self, document: &mut RawDocumentBuf) {
        document.append(cstr!("name"), self.name);
        if let Some(timeout) = self.timeout_sec {
            document.append(cstr!("timeout_sec"), timeout);
        }
        if let Some(memory) = self.memory_mb {
            document.append(cstr!("memory_mb"), memory);
        }
        if let Some(region) = &self.region {
            document.append(cstr!("region"), region.as_str());
        }
    }
}

const LAMBDA: &str = "aws.lambda";
const AZURE: &str = "azure.func";
const GOOGLE: &str = "gcp.func";
const VERCEL: &str = "vercel";

/// Vercel runs on Lambda, so that both are there; any other two contradict each other.
// HS-24, HS-48
fn service(environment: &Environment) -> Option<&'static str> {
    let is_set = |name| environment.is_set(name);
    let lambda = is_set("AWS_LAMBDA_RUNTIME_API")
        || environment
            .variable("AWS_EXECUTION_ENV")
            .is_some_and(|value| value.starts_with("AWS_Lambda_"));
    let azure = is_set("FUNCTIONS_WORKER_RUNTIME");
    let google = is_set("K_SERVICE") || is_set("FUNCTION_NAME");
    match (is_set("VERCEL"), lambda, azure, google) {
        (true, _, false, false) => Some(VERCEL),
        (false, true, false, false) => Some(LAMBDA),
        (false, false, true, false) => Some(AZURE),
        (false, false, false, true) => Some(GOOGLE),
        _ => None,
    }
}

/// The coding agents that the specification knows, by the variables that they set. The first one counts.
const AGENTS: [(&str, &str); 12] = [
    ("CLAUDECODE", "claude_code"),
    ("CLAUDE_CODE_ENTRYPOINT", "claude_code"),
    ("CURSOR_AGENT", "cursor"),
    ("CODEX_SANDBOX", "codex_cli"),
    ("CLINE_ACTIVE", "cline"),
    ("GEMINI_CLI", "gemini_cli"),
    ("AUGMENT_AGENT", "auggie_cli"),
    ("OPENCODE", "opencode_client"),
    ("OPENCODE_CLIENT", "opencode_client"),
    ("TRAE_AI_SHELL_ID", "trae_ai"),
    ("GOOSE_TERMINAL", "goose"),
    ("GOOSE_AGENT", "goose"),
];

/// Any other agent names itself here.
const ANY_AGENT: &str = "AI_AGENT";

/// The longest name that an agent gives itself, in bytes.
const AGENT_MAX: usize = 64;

/// The coding agent that runs this process, as the
/// [handshake](https://github.com/mongodb/specifications/blob/master/source/mongodb-handshake/handshake.md) names it.
fn agent(environment: &Environment) -> Option<String> {
    let value = |name| environment.variable(name).map(str::trim).filter(|value| !value.is_empty());
    if let Some((_, agent)) = AGENTS.iter().find(|(name, _)| value(name).is_some()) {
        return Some((*agent).to_owned());
    }
    let mut agent = value(ANY_AGENT)?.to_lowercase();
    if agent == "1" || agent == "true" {
        return Some("ai_agent".to_owned());
    }
    let excess = agent.len().saturating_sub(AGENT_MAX);
    cut(&mut agent, excess);
    Some(agent)
}
