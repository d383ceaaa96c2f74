//! Other values of options: `maxPoolSize=20,40; maxConnecting=2,8`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::PoolOptions;

/// An option that can have another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `maxPoolSize`.
    MaxPoolSize,
    /// `minPoolSize`.
    MinPoolSize,
    /// `maxConnecting`.
    MaxConnecting,
    /// `waitQueueTimeoutMS`.
    WaitQueueTimeout,
    /// `maxIdleTimeMS`.
    MaxIdleTime,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 5] = [
        Self::MaxPoolSize,
        Self::MinPoolSize,
        Self::MaxConnecting,
        Self::WaitQueueTimeout,
        Self::MaxIdleTime,
    ];

    /// As in a connection string.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxPoolSize => "maxPoolSize",
            Self::MinPoolSize => "minPoolSize",
            Self::MaxConnecting => "maxConnecting",
            Self::WaitQueueTimeout => "waitQueueTimeoutMS",
            Self::MaxIdleTime => "maxIdleTimeMS",
        }
    }

    fn set(self, options: &mut PoolOptions, value: u32) {
        let millis = Duration::from_millis(value.into());
        match self {
            Self::MaxPoolSize => options.max_pool_size = Some(value),
            Self::MinPoolSize => options.min_pool_size = Some(value),
            Self::MaxConnecting => options.max_connecting = Some(value),
            Self::WaitQueueTimeout => options.wait_queue_timeout = Some(millis),
            Self::MaxIdleTime => options.max_idle_time = Some(millis),
        }
    }

    /// The value in effect, as in a connection string.
    pub fn of(self, options: &PoolOptions) -> u64 {
        let millis = |time: Option<Duration>| {
            time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        let number = |number: Option<u32>, default: u32| u64::from(number.unwrap_or(default));
        match self {
            Self::MaxPoolSize => number(options.max_pool_size, PoolOptions::DEFAULT_MAX_POOL_SIZE),
            Self::MinPoolSize => number(options.min_pool_size, 0),
            Self::MaxConnecting => {
                number(options.max_connecting, PoolOptions::DEFAULT_MAX_CONNECTING)
            }
            Self::WaitQueueTimeout => millis(options.wait_queue_timeout),
            Self::MaxIdleTime => millis(options.max_idle_time),
        }
    }
}

/// Other values of some options; the others are those of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change(Vec<(Setting, u32)>);

impl Change {
    /// With another value of one more option.
    #[must_use]
    pub fn with(mut self, setting: Setting, value: u32) -> Self {
        self.0.retain(|&(other, _)| other != setting);
        self.0.push((setting, value));
        self
    }

    /// The options with these values.
    pub fn apply(&self, options: &PoolOptions) -> PoolOptions {
        let mut options = options.clone();
        for &(setting, value) in &self.0 {
            setting.set(&mut options, value);
        }
        options
    }

    /// The value of a setting; `None` if it is not changed.
    pub fn value(&self, setting: Setting) -> Option<u32> {
        self.0.iter().find(|(other, _)| *other == setting).map(|&(_, value)| value)
    }

    /// The settings and their values.
    pub fn values(&self) -> &[(Setting, u32)] {
        &self.0
    }
}

/// `maxPoolSize=20 maxConnecting=8`; without changes `as recorded`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("as recorded");
        }
        let values = self.0.iter().map(|(setting, value)| format!("{}={value}", setting.name()));
        f.write_str(&values.collect::<Vec<_>>().join(" "))
    }
}

/// Some values of some options: every combination is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid(Vec<(Setting, Vec<u32>)>);

const EXAMPLE: &str = "maxPoolSize=20,40; maxConnecting=2,8";

/// The largest number of combinations.
const COMBINATIONS: usize = 64;

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings: Vec<(Setting, Vec<u32>)> = Vec::new();
        let text = text.trim();
        for part in text.strip_suffix(';').unwrap_or(text).split(';') {
            let (setting, values) = parse(part.trim())?;
            if settings.iter().any(|&(other, _)| other == setting) {
                let name = setting.name();
                return Err(format!("{name} is there twice: separate its values with commas"));
            }
            settings.push((setting, values));
        }
        let combinations: usize = settings.iter().map(|(_, values)| values.len()).product();
        if combinations > COMBINATIONS {
            return Err(format!(
                "{combinations} combinations are too many: at most {COMBINATIONS}"
            ));
        }
        Ok(Self(settings))
    }
}

fn parse(part: &str) -> Result<(Setting, Vec<u32>), String> {
    if part.is_empty() {
        return Err(format!("an option is missing: write `{EXAMPLE}`"));
    }
    let (name, values) = part.split_once('=').unwrap_or((part, ""));
    let name = name.trim();
    let setting =
        Setting::ALL.into_iter().find(|setting| setting.name().eq_ignore_ascii_case(name));
    let setting = setting.ok_or_else(|| {
        format!(
            "`{name}` cannot be changed; these can: {}",
            Setting::ALL.map(Setting::name).join(", ")
        )
    })?;
    let name = setting.name();
    if values.trim().is_empty() {
        return Err(format!("`{name}` has no values: write `{EXAMPLE}`"));
    }
    let mut parsed = Vec::new();
    for value in values.split(',').map(str::trim) {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = value.parse().ok().filter(|_| is_number).ok_or_else(|| {
            let most = u32::MAX;
            format!("`{value}` is no value of {name}: a whole number from 0 to {most} is expected")
        })?;
        if parsed.contains(&number) {
            return Err(format!("{name}={number} is there twice"));
        }
        parsed.push(number);
    }
    Ok((setting, parsed))
}

impl Grid {
    /// Every combination, the first option changing slowest.
    ///
    /// # Errors
    ///
    /// If a combination is invalid, on top of these options.
    pub fn changes(&self, options: &PoolOptions) -> Result<Vec<Change>, String> {
        let mut changes = vec![Change::default()];
        for (setting, values) in &self.0 {
            let pairs = changes.iter().flat_map(|it| values.iter().map(move |&value| (it, value)));
            changes = pairs.map(|(it, value)| it.clone().with(*setting, value)).collect();
        }
        for change in &changes {
            change.apply(options).validate().map_err(|error| format!("{change}: {error}"))?;
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(text: &str) -> Result<Grid, String> {
        text.parse()
    }

    #[test]
    fn every_combination_is_tried() {
        let grid = grid("maxPoolSize=20,40; maxconnecting = 2 , 8;").expect("a grid");
        let changes = grid.changes(&PoolOptions::default()).expect("valid options");
        let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "maxPoolSize=20 maxConnecting=2",
                "maxPoolSize=20 maxConnecting=8",
                "maxPoolSize=40 maxConnecting=2",
                "maxPoolSize=40 maxConnecting=8",
            ]
        );
        let options = changes[3].apply(&PoolOptions::default().with_min_pool_size(7));
        assert_eq!((options.max_pool_size, options.min_pool_size), (Some(40), Some(7)));
        for setting in Setting::ALL {
            let changed = Change::default().with(setting, 77).apply(&options);
            assert_eq!(setting.of(&changed), 77);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let many: Vec<_> = (1..=65).map(|value: u32| value.to_string()).collect();
        for (text, said) in [
            ("", "an option is missing: write `maxPoolSize=20,40; maxConnecting=2,8`"),
            ("maxPoolSize=1;;", "an option is missing"),
            ("; maxPoolSize=1", "an option is missing"),
            ("maxPoolSize", "`maxPoolSize` has no values"),
            ("maxPoolSize= ", "`maxPoolSize` has no values"),
            ("maxPoolSize=4; maxPoolSize=5", "maxPoolSize is there twice: separate"),
            ("maxPoolSize=4,4", "maxPoolSize=4 is there twice"),
            (
                "maxPoolSize=-4",
                "`-4` is no value of maxPoolSize: a whole number from 0 to 4294967295",
            ),
            ("maxPoolSize=+4", "`+4` is no value"),
            ("maxPoolSize=4,", "`` is no value of maxPoolSize"),
            ("maxPoolSize=4294967296", "`4294967296` is no value"),
            ("waitQueueTimeoutMS=1.5", "`1.5` is no value of waitQueueTimeoutMS"),
            (
                &format!("maxPoolSize={}", many.join(",")),
                "65 combinations are too many: at most 64",
            ),
        ] {
            let error = grid(text).expect_err("no grid");
            assert!(error.starts_with(said), "{text}: {error}");
        }
        let invalid = grid("minPoolSize=9; maxPoolSize=10,8").expect("a grid");
        let error = invalid.changes(&PoolOptions::default()).expect_err("an invalid combination");
        assert!(error.starts_with("minPoolSize=9 maxPoolSize=8: minPoolSize is 9 but"), "{error}");
    }
}
