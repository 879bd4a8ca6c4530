//! Capabilities: which operations a key or token permits on which channels.

use super::channel::{self, Channel};
use super::codes::{self, ErrorInfo};
use crate::json::{self, JsonLimits};
use parlor_model::grant::{self, Grant, GrantEntry, Resource};
use std::collections::{BTreeMap, BTreeSet};

macro_rules! operations {
    ($($name:ident = $text:literal),+ $(,)?) => {
        /// Operation of a capability, in the order of their names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation { $($name),+ }

        impl Operation {
            pub const ALL: &[Self] = &[$(Self::$name),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|operation| operation.as_str() == text)
            }
        }
    };
}

operations! {
    AnnotationPublish = "annotation-publish",
    AnnotationSubscribe = "annotation-subscribe",
    ChannelMetadata = "channel-metadata",
    History = "history",
    MessageDeleteAny = "message-delete-any",
    MessageDeleteOwn = "message-delete-own",
    MessageUpdateAny = "message-update-any",
    MessageUpdateOwn = "message-update-own",
    ObjectPublish = "object-publish",
    ObjectSubscribe = "object-subscribe",
    Presence = "presence",
    PrivilegedHeaders = "privileged-headers",
    Publish = "publish",
    PushAdmin = "push-admin",
    PushSubscribe = "push-subscribe",
    Statistics = "stats",
    Subscribe = "subscribe",
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operations {
    All,
    Some(BTreeSet<Operation>),
}

impl Operations {
    fn contains(&self, operation: Operation) -> bool {
        match self {
            Self::All => true,
            Self::Some(operations) => operations.contains(&operation),
        }
    }

    fn intersection(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::All, operations) | (operations, Self::All) => Some(operations.clone()),
            (Self::Some(one), Self::Some(other)) => {
                let both: BTreeSet<_> = one.intersection(other).copied().collect();
                (!both.is_empty()).then_some(Self::Some(both))
            }
        }
    }

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Some(mut one), Self::Some(other)) => {
                one.extend(other);
                Self::Some(one)
            }
            _ => Self::All,
        }
    }
}

/// A capability: operations by resource. A resource is `*`, `namespace:*` or the name of a channel, optionally
/// after `[*]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability(BTreeMap<Box<str>, Operations>);

const MAX_BYTES: usize = 64 * 1024;

impl Capability {
    /// Every operation on every channel.
    pub fn all() -> Self {
        Self([("*".into(), Operations::All)].into())
    }

    /// Parses the JSON text of a capability.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let error = |message: &'static str| ErrorInfo::new(codes::BAD_REQUEST, message);
        let limits = JsonLimits { depth: 2, items: 1000 };
        if text.len() > MAX_BYTES || json::check(text, limits).is_err() {
            return Err(error("capability is not valid JSON"));
        }
        let given: BTreeMap<Box<str>, Vec<String>> = serde_json::from_str(text)
            .map_err(|_| error("capability must contain a list of operations per channel"))?;
        if given.is_empty() {
            return Err(error("capability is empty"));
        }
        let mut resources = BTreeMap::new();
        for (resource, operations) in given {
            if resource.is_empty() {
                return Err(error("capability names an empty channel"));
            }
            let operations = match &*operations {
                [] => return Err(error("capability has an empty list of operations")),
                [all] if all == "*" => Operations::All,
                list => {
                    let parsed: Option<_> = list.iter().map(|text| Operation::parse(text)).collect();
                    Operations::Some(parsed.ok_or_else(|| error("capability has an unknown operation"))?)
                }
            };
            resources.insert(resource, operations);
        }
        Ok(Self(resources))
    }

    /// Builds a capability from operations by resource. Resources without operations are left out.
    pub fn of<'a>(resources: impl IntoIterator<Item = (&'a str, &'a [Operation])>) -> Self {
        let resources = resources.into_iter().filter(|(_, operations)| !operations.is_empty());
        let entry = |(resource, operations): (&str, &[Operation])| {
            (resource.into(), Operations::Some(operations.iter().copied().collect()))
        };
        Self(resources.map(entry).collect())
    }

    /// Canonical JSON text: sorted resources, sorted operations. Token requests sign this text.
    pub fn canonical(&self) -> String {
        let entries: BTreeMap<&str, Vec<&str>> = self
            .0
            .iter()
            .map(|(resource, operations)| {
                let operations = match operations {
                    Operations::All => vec!["*"],
                    Operations::Some(operations) => operations.iter().map(|o| o.as_str()).collect(),
                };
                (&**resource, operations)
            })
            .collect();
        serde_json::to_string(&entries).expect("a capability consists of strings")
    }

    pub fn permits(&self, operation: Operation, channel: &str) -> bool {
        self.0
            .iter()
            .any(|(resource, operations)| covers(resource, channel) && operations.contains(operation))
    }

    /// Rooms, paths and operations that the capability permits.
    pub fn grant(&self) -> Grant {
        Grant::new(self.0.iter().flat_map(|(resource, operations)| {
            let operations = engine_operations(operations);
            places(resource).into_iter().map(move |resource| GrantEntry { resource, operations })
        }))
    }

    /// Returns whether a resource of the capability has exactly this name.
    pub fn names(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    /// Returns what both capabilities permit. An error if that is nothing.
    pub fn intersection(&self, other: &Self) -> Result<Self, ErrorInfo> {
        let mut common: BTreeMap<Box<str>, Operations> = BTreeMap::new();
        for (resource, operations) in &self.0 {
            for (other_resource, other_operations) in &other.0 {
                let narrower = if covers(resource, other_resource) {
                    other_resource
                } else if covers(other_resource, resource) {
                    resource
                } else {
                    continue;
                };
                let Some(both) = operations.intersection(other_operations) else { continue };
                let both = match common.remove(narrower) {
                    Some(known) => known.union(both),
                    None => both,
                };
                common.insert(narrower.clone(), both);
            }
        }
        if common.is_empty() {
            return Err(ErrorInfo::new(
                codes::NOT_PERMITTED,
                "The key does not permit the requested capability",
            ));
        }
        Ok(Self(common))
    }
}

/// Operations of the engine that correspond to those of a capability. Operations of features that the hub does not
/// have are left out.
fn engine_operations(operations: &Operations) -> grant::Operations {
    let known = |operation: grant::Operation| {
        operations.contains(match operation {
            grant::Operation::Subscribe => Operation::Subscribe,
            grant::Operation::Publish => Operation::Publish,
            grant::Operation::Presence => Operation::Presence,
            grant::Operation::History => Operation::History,
            grant::Operation::Metadata => Operation::ChannelMetadata,
            grant::Operation::Statistics => Operation::Statistics,
        })
    };
    grant::Operation::ALL.into_iter().filter(|operation| known(*operation)).collect()
}

/// Rooms and paths of the channels that a resource matches. Empty if it matches no valid channel name.
fn places(resource: &str) -> Vec<Resource> {
    let resource = resource.strip_prefix("[*]").unwrap_or(resource);
    match resource.strip_suffix('*') {
        Some("") => vec![Resource::Everything],
        Some(namespace) if namespace.ends_with(':') => {
            channel::prefixes(namespace).into_iter().map(|text| Resource::Below(text.into())).collect()
        }
        _ => {
            let path = |channel: Channel| channel.destination().path();
            Channel::parse(resource).ok().map(|found| Resource::Exactly(path(found))).into_iter().collect()
        }
    }
}

/// Returns whether a resource matches a channel name, or all channels that another resource matches.
fn covers(resource: &str, name: &str) -> bool {
    let resource = resource.strip_prefix("[*]").unwrap_or(resource);
    let name = name.strip_prefix("[*]").unwrap_or(name);
    match resource.strip_suffix('*') {
        Some("") => true,
        Some(namespace) if namespace.ends_with(':') => {
            name.starts_with(namespace) && name.len() > namespace.len()
        }
        _ => resource == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Capability {
        Capability::parse(text).unwrap()
    }

    #[test]
    fn resources_match_channels() {
        for (resource, name, expected) in [
            ("*", "a:b", true),
            ("[*]*", "a", true),
            ("a:*", "a:b", true),
            ("a:*", "a:b:c", true),
            ("a:*", "a", false),
            ("a:*", "a:", false),
            ("a:*", "ab:c", false),
            ("a*", "ab", false),
            ("a", "a", true),
            ("[*]a", "a", true),
            ("a", "b", false),
        ] {
            assert_eq!(covers(resource, name), expected, "{resource} {name}");
        }
    }

    #[test]
    fn the_canonical_form_is_sorted() {
        let given = r#"{"b":["subscribe","publish"],"a:*":["*"]}"#;
        assert_eq!(parse(given).canonical(), r#"{"a:*":["*"],"b":["publish","subscribe"]}"#);
        assert!(parse(given).permits(Operation::History, "a:x"));
        assert!(!parse(given).permits(Operation::History, "b"));
    }

    #[test]
    fn malformed_capabilities_are_rejected() {
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"a":[]}"#,
            r#"{"a":["*","publish"]}"#,
            r#"{"a":["x"]}"#,
            r#"{"a":"*"}"#,
            r#"{"a":["*"],"a":["*"]}"#,
            r#"{"":["*"]}"#,
            r#"{"a":[["*"]]}"#,
        ] {
            assert_eq!(Capability::parse(bad).unwrap_err().code, 40000, "{bad}");
        }
    }

    #[track_caller]
    fn check(key: &str, requested: &str, expected: Option<&str>) {
        let common = parse(key).intersection(&parse(requested)).ok();
        assert_eq!(common.map(|common| common.canonical()).as_deref(), expected);
    }

    #[test]
    fn the_intersection_contains_what_both_permit() {
        check(r#"{"*":["*"]}"#, r#"{"a":["publish"]}"#, Some(r#"{"a":["publish"]}"#));
        check(r#"{"a":["publish"],"b":["*"]}"#, r#"{"*":["*"]}"#, Some(r#"{"a":["publish"],"b":["*"]}"#));
        check(
            r#"{"a:*":["publish","subscribe"]}"#,
            r#"{"a:b":["subscribe","history"]}"#,
            Some(r#"{"a:b":["subscribe"]}"#),
        );
        check(r#"{"a:*":["publish"]}"#, r#"{"a:*":["subscribe"]}"#, None);
        check(r#"{"a":["*"]}"#, r#"{"b":["*"]}"#, None);
        check(
            r#"{"a:*":["publish"],"*":["history"]}"#,
            r#"{"a:b":["*"]}"#,
            Some(r#"{"a:b":["history","publish"]}"#),
        );
    }

    #[test]
    fn a_grant_permits_what_the_capability_permits() {
        for (capability, channel, expected) in [
            (r#"{"*":["*"]}"#, "jaibber:project:p", true),
            (r#"{"*":["publish"]}"#, "a", true),
            (r#"{"*":["subscribe"]}"#, "a", false),
            (r#"{"jaibber:*":["*"]}"#, "jaibber:project:p", true),
            (r#"{"jaibber:*":["*"]}"#, "jaibber:presence", true),
            (r#"{"jaibber:*":["*"]}"#, "jaibber", false),
            (r#"{"jaibber:*":["*"]}"#, "other", false),
            (r#"{"jaibber:project:*":["*"]}"#, "jaibber:project:p", true),
            (r#"{"jaibber:project:*":["*"]}"#, "jaibber:presence", false),
            (r#"{"jaibber:project:p":["*"]}"#, "jaibber:project:p", true),
            (r#"{"jaibber:project:p":["*"]}"#, "jaibber:project:q", false),
            (r#"{"jaibber:project:p:*":["*"]}"#, "jaibber:project:p", false),
            (r#"{"j:*":["*"]}"#, "jaibber:project:p", false),
            (r#"{"[*]a/b:*":["*"]}"#, "a/b:c", true),
            (r#"{"a:*":["*"]}"#, "a:", false),
            (r#"{"a*":["*"]}"#, "a*", true),
            (r#"{"a*":["*"]}"#, "ab", false),
            (r#"{":bad":["*"]}"#, "bad", false),
        ] {
            let path = Channel::parse(channel).unwrap().destination().path();
            let grant = parse(capability).grant();
            assert_eq!(grant.permits(grant::Operation::Publish, &path), expected, "{capability} {channel}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]
        #[test]
        fn an_intersection_permits_nothing_that_one_side_forbids(
            one in "(\\{\"(a|a:\\*|\\*|a:b)\":\\[\"(publish|\\*|history)\"\\]\\})",
            two in "(\\{\"(a|a:\\*|\\*|a:b)\":\\[\"(publish|\\*|history)\"\\]\\})",
        ) {
            let (one, two) = (parse(&one), parse(&two));
            let both = one.intersection(&two);
            for name in ["a", "a:b", "a:b:c", "z"] {
                for operation in Operation::ALL {
                    let expected = one.permits(*operation, name) && two.permits(*operation, name);
                    let actual = both.as_ref().is_ok_and(|both| both.permits(*operation, name));
                    prop_assert_eq!(actual, expected);
                }
            }
        }
    }
}
