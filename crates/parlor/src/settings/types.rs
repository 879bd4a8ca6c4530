//! Setting types: parsing, allowed range and Rust type of a setting's value.
//!
//! Owns: parsing and range checks of single values, and their error messages.
//! Never: refers to a setting by name, or reads a file or the environment.

use crate::secret::Secret;
use parlor_server::Network;
use std::{marker::PhantomData, net::SocketAddr, ops::RangeInclusive, path::PathBuf, time::Duration};
use toml::Value;
use url::Url;

/// Converts a TOML value to the Rust type of the setting.
///
/// The error message follows the key, as in "listen: must be …", and never contains a secret.
pub trait SettingType {
    type Output;

    fn read(&self, value: &Value) -> Result<Self::Output, String>;

    /// Converts the text of an environment variable or a flag to a TOML value.
    fn parse_text(&self, text: &str) -> Result<Value, String> {
        Ok(Value::from(text))
    }
}

/// Calls [`SettingType::parse_text`]. The type parameter `T` lets a table entry write `count(1..=9)` without
/// repeating the integer type.
pub fn text_for<T, F: SettingType<Output = T>>(form: &F, text: &str) -> Result<Value, String> {
    form.parse_text(text)
}

/// An address and port to listen on.
pub struct Address;

impl SettingType for Address {
    type Output = SocketAddr;

    fn read(&self, value: &Value) -> Result<SocketAddr, String> {
        let text = text_of(value)?;
        text.parse().map_err(|_| {
            format!("must be an address and a port, such as 127.0.0.1:7878 or [::1]:7878, not \"{text}\"")
        })
    }
}

/// The path of a directory, absolute or relative.
pub struct Directory;

impl SettingType for Directory {
    type Output = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, String> {
        match text_of(value)? {
            "" => Err("must name a directory, not be empty".into()),
            text => Ok(PathBuf::from(text)),
        }
    }
}

/// The absolute path of a folder.
pub struct WholePath;

impl SettingType for WholePath {
    type Output = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, String> {
        let text = text_of(value)?;
        let path = Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        path.ok_or_else(|| format!("must hold absolute paths such as /srv/code, not \"{text}\""))
    }
}

/// The path of a file.
pub struct FilePath;

impl SettingType for FilePath {
    type Output = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, String> {
        match text_of(value)? {
            "" => Err("must name a file, not be empty".into()),
            text => Ok(PathBuf::from(text)),
        }
    }
}

/// A username: 3 to 50 letters, digits, `_` and `-`.
pub struct Username;

impl SettingType for Username {
    type Output = String;

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = text_of(value)?;
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if (3..=50).contains(&text.len()) && text.chars().all(legal) {
            return Ok(text.into());
        }
        Err(format!("must be 3 to 50 letters, digits, _ or -, not \"{text}\""))
    }
}

/// An HTTP or HTTPS URL, with or without a path.
pub struct WebAddress;

impl SettingType for WebAddress {
    type Output = Url;

    fn read(&self, value: &Value) -> Result<Url, String> {
        let text = text_of(value)?;
        let url = Url::parse(text).ok().filter(is_plain_web_address);
        url.ok_or_else(|| format!("must be a URL such as https://chat.example.org, not \"{text}\""))
    }
}

/// A web origin: scheme, host and port without a path. Normalised to the value that browsers send.
pub struct Origin;

impl SettingType for Origin {
    type Output = String;

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = text_of(value)?;
        let url = Url::parse(text).ok().filter(is_plain_web_address).filter(|url| url.path() == "/");
        let url = url.ok_or_else(|| {
            format!("must hold origins such as https://chat.example.org, without a path, not \"{text}\"")
        })?;
        Ok(url.origin().ascii_serialization())
    }
}

/// A value of the `Host` header: a name or address, with or without a port.
pub struct Host;

impl SettingType for Host {
    type Output = String;

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = text_of(value)?;
        let refused = || {
            format!("must hold host names such as chat.example.org or chat.example.org:8443, not \"{text}\"")
        };
        // The URL parser validates the host. Text with a path, a query or a username is rejected before,
        // because it would parse as a valid URL.
        if text.is_empty() || text.contains(['/', '?', '#', '@', '\\']) || text.contains(char::is_whitespace)
        {
            return Err(refused());
        }
        Url::parse(&format!("http://{text}/")).map_err(|_| refused())?;
        Ok(text.to_ascii_lowercase())
    }
}

/// An IP address, or a network such as 10.0.0.0/8.
pub struct Networks;

impl SettingType for Networks {
    type Output = Network;

    fn read(&self, value: &Value) -> Result<Network, String> {
        let text = text_of(value)?;
        text.parse()
            .map_err(|()| format!("must hold addresses such as 127.0.0.1 or 10.0.0.0/8, not \"{text}\""))
    }
}

/// A list of values of one setting type: a TOML array, or text separated by commas.
pub struct List<F>(pub F);

impl<F: SettingType> SettingType for List<F> {
    type Output = Vec<F::Output>;

    fn read(&self, value: &Value) -> Result<Vec<F::Output>, String> {
        let items = value.as_array().ok_or_else(|| format!("must be a list, not {}", kind_of(value)))?;
        items.iter().map(|item| self.0.read(item)).collect()
    }

    fn parse_text(&self, text: &str) -> Result<Value, String> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Ok(Value::from(items.map(|item| self.0.parse_text(item)).collect::<Result<Vec<_>, _>>()?))
    }
}

/// A secret with a minimum length.
pub struct SecretText {
    /// Minimum length, in characters.
    pub at_least: usize,
}

impl SettingType for SecretText {
    type Output = Secret;

    fn read(&self, value: &Value) -> Result<Secret, String> {
        let text = value.as_str().ok_or("must be a string in quotes")?;
        if text.chars().count() < self.at_least {
            return Err(match self.at_least {
                1 => "must not be empty".into(),
                minimum => format!("must have at least {minimum} characters"),
            });
        }
        Ok(Secret::new(text))
    }
}

/// A host with its port, normalised as in a URL.
pub struct HostAndPort;

impl SettingType for HostAndPort {
    type Output = String;

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = text_of(value)?;
        // The URL parser normalises the host, so that it can be compared with the host of a URL.
        let url = Url::parse(&format!("http://{text}")).ok();
        let url = url.filter(is_plain_web_address).filter(|url| url.path() == "/");
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        match (url.as_ref().and_then(Url::host_str), port) {
            (Some(host), Some(port)) => Ok(format!("{host}:{port}")),
            _ => Err(format!("must hold hosts with their ports, such as localhost:11434, not \"{text}\"")),
        }
    }
}

/// Text of one line that is not empty, such as the name of a model.
pub struct SingleLine;

impl SettingType for SingleLine {
    type Output = String;

    fn read(&self, value: &Value) -> Result<String, String> {
        match text_of(value)?.trim() {
            "" => Err("must not be empty".into()),
            text if text.chars().any(char::is_control) => Err("must be one line".into()),
            text => Ok(text.to_owned()),
        }
    }
}

/// A whole number in a range.
pub struct IntegerType<T> {
    range: RangeInclusive<u64>,
    unit: &'static str,
    output: PhantomData<fn() -> T>,
}

/// A number without a unit.
pub fn count<T>(range: RangeInclusive<u64>) -> IntegerType<T> {
    IntegerType { range, unit: "", output: PhantomData }
}

/// A size in bytes.
pub fn bytes(range: RangeInclusive<u64>) -> IntegerType<usize> {
    IntegerType { range, unit: " bytes", output: PhantomData }
}

impl<T: TryFrom<u64>> SettingType for IntegerType<T> {
    type Output = T;

    fn read(&self, value: &Value) -> Result<T, String> {
        let number = whole_in(value, &self.range, self.unit)?;
        T::try_from(number).map_err(|_| format!("is too large for this machine: {number}"))
    }

    fn parse_text(&self, text: &str) -> Result<Value, String> {
        number_from(text)
    }
}

/// A duration in whole seconds, hours or days.
pub struct DurationType {
    range: RangeInclusive<u64>,
    unit: &'static str,
    seconds_per_unit: u64,
}

pub fn seconds(range: RangeInclusive<u64>) -> DurationType {
    DurationType { range, unit: " seconds", seconds_per_unit: 1 }
}

pub fn hours(range: RangeInclusive<u64>) -> DurationType {
    DurationType { range, unit: " hours", seconds_per_unit: 3_600 }
}

pub fn days(range: RangeInclusive<u64>) -> DurationType {
    DurationType { range, unit: " days", seconds_per_unit: 86_400 }
}

impl SettingType for DurationType {
    type Output = Duration;

    fn read(&self, value: &Value) -> Result<Duration, String> {
        let units = whole_in(value, &self.range, self.unit)?;
        Ok(Duration::from_secs(units * self.seconds_per_unit))
    }

    fn parse_text(&self, text: &str) -> Result<Value, String> {
        number_from(text)
    }
}

/// One of the keywords of `T`.
pub struct Choice<T>(PhantomData<fn() -> T>);

/// An enum whose variants are written as keywords in the settings.
pub trait Keywords: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

pub fn choice<T: Keywords>() -> Choice<T> {
    Choice(PhantomData)
}

impl<T: Keywords> SettingType for Choice<T> {
    type Output = T;

    fn read(&self, value: &Value) -> Result<T, String> {
        let text = text_of(value)?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<String> = T::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            format!("must be {}, not \"{text}\"", words.join(" or "))
        })
    }
}

fn text_of(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("must be a string in quotes, not {}", kind_of(value)))
}

fn whole_in(value: &Value, range: &RangeInclusive<u64>, unit: &str) -> Result<u64, String> {
    let given =
        value.as_integer().ok_or_else(|| format!("must be a whole number, not {}", kind_of(value)))?;
    u64::try_from(given)
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("must be between {} and {}{unit}, not {given}", range.start(), range.end()))
}

fn number_from(text: &str) -> Result<Value, String> {
    let number: i64 = text.trim().parse().map_err(|_| format!("must be a whole number, not \"{text}\""))?;
    Ok(Value::from(number))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a number",
        Value::Float(_) => "a number with a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

fn is_plain_web_address(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    #[test]
    fn an_address_needs_a_port() {
        check(&Address, "127.0.0.1:0", Ok("127.0.0.1:0".parse().unwrap()));
        check(&Address, "[::1]:80", Ok("[::1]:80".parse().unwrap()));
        refuse(&Address, "127.0.0.1", "an address and a port");
        refuse(&Address, "localhost:80", "an address and a port");
    }

    #[test]
    fn an_origin_is_normalised_to_the_value_that_browsers_send() {
        check(&Origin, "https://Chat.Example.org:443/", Ok("https://chat.example.org".into()));
        check(&Origin, "http://127.0.0.1:5173", Ok("http://127.0.0.1:5173".into()));
        refuse(&Origin, "https://chat.example.org/app", "without a path");
        refuse(&Origin, "https://ada:pw@chat.example.org", "without a path");
        refuse(&Origin, "*", "without a path");
        refuse(&Origin, "null", "without a path");
    }

    #[test]
    fn a_host_has_no_scheme_and_no_path() {
        check(&Host, "Chat.example.org:8443", Ok("chat.example.org:8443".into()));
        check(&Host, "[::1]", Ok("[::1]".into()));
        refuse(&Host, "https://chat.example.org", "host names");
        refuse(&Host, "chat.example.org/x", "host names");
        refuse(&Host, "", "host names");
    }

    #[test]
    fn a_list_given_as_text_is_split_at_commas() {
        let form = List(Host);
        let value = form.parse_text(" a.example , b.example,").unwrap();
        assert_eq!(form.read(&value), Ok(vec!["a.example".into(), "b.example".into()]));
        assert!(form.read(&Value::from("a.example")).unwrap_err().contains("must be a list, not a string"));
    }

    #[test]
    fn a_number_outside_its_range_is_rejected_with_the_range() {
        let form = seconds(1..=60);
        assert_eq!(form.read(&Value::from(60)), Ok(Duration::from_secs(60)));
        for outside in [0, 61, -1] {
            let reason = form.read(&Value::from(outside)).unwrap_err();
            assert_eq!(reason, format!("must be between 1 and 60 seconds, not {outside}"));
        }
        assert!(form.read(&Value::from("60")).unwrap_err().contains("whole number, not a string"));
        assert!(form.parse_text("1.5").unwrap_err().contains("whole number"));
    }

    #[test]
    fn hours_and_days_become_durations() {
        assert_eq!(hours(24..=48).read(&Value::from(48)), Ok(Duration::from_secs(48 * 3600)));
        assert_eq!(days(1..=7).read(&Value::from(7)), Ok(Duration::from_secs(7 * 86400)));
    }

    #[test]
    fn the_error_for_an_invalid_secret_does_not_contain_the_secret() {
        let form = SecretText { at_least: 32 };
        let reason = form.read(&Value::from("too-short-canary")).unwrap_err();
        assert_eq!(reason, "must have at least 32 characters");
        assert_eq!(form.read(&Value::from(4711)).unwrap_err(), "must be a string in quotes");
    }

    #[test]
    fn a_username_has_3_to_50_letters_digits_underscores_and_hyphens() {
        check(&Username, "ada_l-1", Ok("ada_l-1".into()));
        refuse(&Username, "ad", "3 to 50");
        refuse(&Username, "ada lovelace", "3 to 50");
    }

    #[track_caller]
    fn check<F: SettingType<Output: PartialEq + Debug>>(
        form: &F,
        text: &str,
        expected: Result<F::Output, String>,
    ) {
        assert_eq!(form.read(&Value::from(text)), expected);
    }

    #[track_caller]
    fn refuse<F: SettingType<Output: Debug>>(form: &F, text: &str, part: &str) {
        let reason = form.read(&Value::from(text)).unwrap_err();
        assert!(reason.contains(part), "{reason}");
    }
}
