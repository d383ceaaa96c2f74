use bson::raw::{RawDocumentBuf, cstr};
use thiserror::Error;

use super::{Environment, environment::Surroundings};

/// The client metadata that a server gets.
///
/// The driver's name and version are this crate's; a driver or library around it adds its own.
///
/// ```
/// use cenote_core::connect::{ClientMetadata, DriverInfo, Environment};
///
/// let mut client = ClientMetadata::new(Some("shop"), &Environment::default())?;
/// client.append(DriverInfo::new("orm", Some("2.0"), None)?);
/// let document = client.to_document();
/// let driver = document.get_document("driver")?;
/// assert_eq!(driver.get_str("name")?, "cenote|orm");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMetadata {
    application: Option<String>,
    appended: Vec<DriverInfo>,
    fields: Fields,
}

/// The name, version and platform of a driver or library that embeds this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// Empty is none.
    name: String,
    version: Option<String>,
    // HS-23
    platform: Option<String>,
}

/// Why something cannot be part of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The application name is too long.
    #[error("the name of the application has {length} bytes, of which {max} are allowed", max = ClientMetadata::MAX_APP_NAME)]
    AppNameTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A driver's name, version or platform contains the delimiter.
    #[error("the {field} of a driver contains `|`, which separates several")]
    Delimiter {
        /// `name`, `version` or `platform`.
        field: &'static str,
    },
}

/// Everything that can be shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    /// The name and the version of this driver, then of each that was appended.
    drivers: Vec<(String, String)>,
    platform: String,
    os_type: String,
    os_name: Option<String>,
    os_architecture: Option<String>,
    os_version: Option<String>,
    env: Surroundings,
}

const DELIMITER: &str = "|";

impl ClientMetadata {
    /// The most that a server takes: the length of the whole document, in bytes.
    // HS-27
    pub const MAX_LENGTH: usize = 512;
    /// The longest name of an application, in bytes.
    // HS-20
    pub const MAX_APP_NAME: usize = 128;

    /// The metadata of a client in this environment. An empty name is none.
    ///
    /// # Errors
    ///
    /// [`MetadataError::AppNameTooLong`].
    pub fn new(app_name: Option<&str>, environment: &Environment) -> Result<Self, MetadataError> {
        let application = app_name.filter(|name| !name.is_empty()).map(str::to_owned);
        match &application {
            Some(name) if name.len() > Self::MAX_APP_NAME => {
                Err(MetadataError::AppNameTooLong { length: name.len() })
            }
            Some(_) | None => {
                Ok(Self { application, appended: Vec::new(), fields: Fields::of(environment) })
            }
        }
    }

    /// Adds a driver or library, unless it is there already; returns whether it was added. Existing
    /// ones are never replaced. Names and versions are lists of one length, with an empty text where one is missing.
    // HS-29, HS-48
    pub fn append(&mut self, driver: DriverInfo) -> bool {
        let is_new = !self.appended.contains(&driver);
        if is_new {
            self.fields.append(&driver);
            self.appended.push(driver);
        }
        is_new
    }

    /// The document for hello, at most [`MAX_LENGTH`](Self::MAX_LENGTH) bytes: what does not fit is
    /// left out in the order that the specification gives. Should that not be enough, the end of the operating
    /// system's type goes, too.
    #[must_use]
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut fields = self.fields.clone();
        for shorten in Fields::SHORTER {
            let document = fields.to_document(self.application.as_deref());
            let excess = document.as_bytes().len().saturating_sub(Self::MAX_LENGTH);
            if excess == 0 {
                return document;
            }
            shorten(&mut fields, excess);
        }
        fields.to_document(self.application.as_deref())
    }
}

impl DriverInfo {
    /// A driver or library; an empty name, version or platform is none.
    ///
    /// # Errors
    ///
    /// When one of the texts contains `|`.
    pub fn new(
        name: &str,
        version: Option<&str>,
        platform: Option<&str>,
    ) -> Result<Self, MetadataError> {
        let part = |field, text: Option<&str>| match text {
            Some(text) if text.contains(DELIMITER) => Err(MetadataError::Delimiter { field }),
            Some("") | None => Ok(None),
            Some(text) => Ok(Some(text.to_owned())),
        };
        Ok(Self {
            name: part("name", Some(name))?.unwrap_or_default(),
            version: part("version", version)?,
            platform: part("platform", platform)?,
        })
    }
}

impl Fields {
    /// What to do, one after the other, until the document fits; the number is how many bytes it
    /// is too long.
    // HS-28
    const SHORTER: [fn(&mut Self, usize); 7] = [
        |fields, _| fields.env.drop_details(),
        |fields, _| fields.env.drop_agent(),
        |fields, _| {
            fields.os_name = None;
            fields.os_architecture = None;
            fields.os_version = None;
        },
        |fields, _| fields.env = Surroundings::default(),
        |fields, excess| cut(&mut fields.platform, excess),
        |fields, excess| fields.shorten_drivers(excess),
        |fields, excess| cut(&mut fields.os_type, excess),
    ];

    fn of(environment: &Environment) -> Self {
        Self {
            drivers: vec![("cenote".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            platform: "Rust".to_owned(),
            os_type: environment.os_type.clone().unwrap_or_else(|| "unknown".to_owned()),
            os_name: environment.os_name.clone(),
            os_architecture: environment.architecture.clone(),
            os_version: environment.os_version.clone(),
            env: Surroundings::of(environment),
        }
    }

    fn append(&mut self, driver: &DriverInfo) {
        self.drivers.push((driver.name.clone(), driver.version.clone().unwrap_or_default()));
        if let Some(platform) = &driver.platform {
            self.platform.push_str(DELIMITER);
            self.platform.push_str(platform);
        }
    }

    /// Removes at least that many bytes from the drivers that were appended, or all of them. Names and versions stay in
    /// pairs, or servers would take the version of one driver for that of another.
    fn shorten_drivers(&mut self, mut excess: usize) {
        let all = self.drivers.len();
        self.drivers.retain(|(name, version)| !name.is_empty() || !version.is_empty());
        // Each has a delimiter in both lists.
        excess = excess.saturating_sub(2 * (all - self.drivers.len()));
        while let (1.., [_, .., (name, version)]) = (excess, &mut *self.drivers) {
            let text = if version.is_empty() { name } else { version };
            let length = text.len();
            cut(text, excess);
            excess = excess.saturating_sub(length - text.len());
            if length == 0 {
                self.drivers.pop();
                excess = excess.saturating_sub(2);
            }
        }
    }

    fn to_document(&self, application: Option<&str>) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        if let Some(name) = application {
            let mut application = RawDocumentBuf::new();
            application.append(cstr!("name"), name);
            document.append(cstr!("application"), application);
        }
        document.append(cstr!("driver"), self.driver());
        document.append(cstr!("os"), self.os());
        if !self.platform.is_empty() {
            document.append(cstr!("platform"), self.platform.as_str());
        }
        if let Some(env) = self.env.to_document() {
            document.append(cstr!("env"), env);
        }
        document
    }

    // HS-21
    fn driver(&self) -> RawDocumentBuf {
        let (names, versions): (Vec<_>, Vec<_>) =
            self.drivers.iter().map(|(name, version)| (name.as_str(), version.as_str())).unzip();
        let mut driver = RawDocumentBuf::new();
        driver.append(cstr!("name"), names.join(DELIMITER).as_str());
        driver.append(cstr!("version"), versions.join(DELIMITER).as_str());
        driver
    }

    // HS-22
    fn os(&self) -> RawDocumentBuf {
        let mut os = RawDocumentBuf::new();
        os.append(cstr!("type"), self.os_type.as_str());
        if let Some(name) = &self.os_name {
            os.append(cstr!("name"), name.as_str());
        }
        if let Some(architecture) = &self.os_architecture {
            os.append(cstr!("architecture"), architecture.as_str());
        }
        if let Some(version) = &self.os_version {
            os.append(cstr!("version"), version.as_str());
        }
        os
    }
}

/// Removes at least that many bytes from the end, or all.
pub(super) fn cut(text: &mut String, excess: usize) {
    let mut keep = text.len().saturating_sub(excess);
    while !text.is_char_boundary(keep) {
        keep -= 1;
    }
    text.truncate(keep);
}
