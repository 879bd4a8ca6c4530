//! The limits that the REST API reports to admins, with the key and the description of each setting.

use super::{GROUPS, Settings, Switch};
use parlor_wire::agentim::rest::{Limit, LimitKind, LimitUnit};
use std::time::Duration;

macro_rules! limits {
    ($settings:expr; $( $kind:ident { $( $key:ident $unit:ident, )* } )*) => {
        vec![$($( Limit {
            key: stringify!($key),
            kind: LimitKind::$kind,
            unit: LimitUnit::$unit,
            value: in_force($settings, LimitKind::$kind).then(|| $settings.$key.number()),
            about: about(stringify!($key)),
        }, )*)*]
    };
}

impl Settings {
    pub fn limits_for_admins(&self) -> Vec<Limit> {
        limits!(self;
            Budget {
                max_turns_per_day Count,
                max_tokens_per_day Count,
                max_chain_depth Count,
                max_agent_messages_per_minute Count,
            }
            Rate {
                login_rate_limit_max Count,
                refresh_rate_limit_max Count,
                api_rate_limit_max Count,
                password_rate_limit_max Count,
                search_rate_limit_max Count,
                upload_rate_limit_max Count,
                router_test_rate_limit_max Count,
                client_rate_limit_max Count,
                client_rate_limit_window Seconds,
                ably_rate_limit_max Count,
            }
            Connection {
                max_ws_connections_per_user Count,
                max_total_ws_connections Count,
                max_unauthenticated_per_address Count,
                max_connections_per_address Count,
            }
            Size {
                max_message_length Count,
                max_attachments Count,
                max_upload_size Bytes,
                max_avatar_size Bytes,
                max_reactions Count,
                max_ws_message_size Bytes,
                max_ably_message_size Bytes,
                max_ably_channels Count,
                max_presence_members Count,
                max_presence_members_per_channel Count,
                max_presence_members_per_connection Count,
                max_presence_member_size Bytes,
                max_presence_size Bytes,
                max_presence_history_size Bytes,
                max_gateway_message_size Bytes,
                max_json_depth Count,
                outbox_max_bytes Bytes,
                outbox_max_frames Count,
            }
        )
    }
}

/// Returns whether limits of this kind are in force: `limits = "off"` disables rate and connection limits.
fn in_force(settings: &Settings, kind: LimitKind) -> bool {
    settings.limits == Switch::On || !matches!(kind, LimitKind::Rate | LimitKind::Connection)
}

fn about(key: &str) -> String {
    let entry = GROUPS.iter().flat_map(|group| group.entries).find(|entry| entry.key == key);
    let lines = entry.map(|entry| entry.docs.iter().map(|line| line.trim())).into_iter().flatten();
    lines.collect::<Vec<_>>().join(" ")
}

trait Number {
    fn number(&self) -> u64;
}

impl Number for u32 {
    fn number(&self) -> u64 {
        (*self).into()
    }
}

impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }
}

impl Number for usize {
    fn number(&self) -> u64 {
        *self as u64
    }
}

impl Number for Duration {
    fn number(&self) -> u64 {
        self.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sources, load};
    use std::collections::BTreeMap;

    fn reported(limits: &str) -> Vec<Limit> {
        let flags = BTreeMap::from([("limits", limits.to_owned())]);
        load(&Sources { flags, ..Sources::default() }).unwrap().settings.limits_for_admins()
    }

    /// Fails if a new setting in these groups is missing in `limits_for_admins`.
    #[test]
    fn every_setting_in_the_groups_limits_and_sizes_is_reported_with_its_description() {
        let reported = reported("on");
        let groups = GROUPS.iter().filter(|group| ["Limits", "Sizes"].contains(&group.title));
        for entry in groups.flat_map(|group| group.entries).filter(|entry| entry.key != "limits") {
            let limit = reported.iter().find(|limit| limit.key == entry.key);
            let limit = limit.unwrap_or_else(|| panic!("{} is not reported", entry.key));
            assert_eq!(limit.unit == LimitUnit::Bytes, limit.about.contains("ytes"), "{limit:?}");
            assert_eq!(limit.unit == LimitUnit::Seconds, limit.about.contains("in seconds"), "{limit:?}");
        }
        let is_complete = |limit: &Limit| limit.about.ends_with('.') && limit.value.is_some();
        assert!(reported.iter().all(is_complete), "{reported:?}");
    }

    #[test]
    fn disabled_limits_are_reported_without_a_value_and_budgets_stay() {
        for Limit { key, kind, value, .. } in reported("off") {
            let is_disabled = matches!(kind, LimitKind::Rate | LimitKind::Connection);
            assert_eq!(value.is_none(), is_disabled, "{key}");
        }
    }
}
