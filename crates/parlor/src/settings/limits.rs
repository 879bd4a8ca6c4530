//! Effective rate limits and connection limits, with the setting `limits` applied.

use super::{Settings, Switch};

/// Exactly the limits that `limits = "off"` disables. `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsInForce {
    /// Per minute and address.
    pub logins: Option<u32>,
    /// Per minute and address.
    pub refreshes: Option<u32>,
    /// Per minute and user, or per minute and address for requests that are not signed in.
    pub requests: Option<u32>,
    /// Per minute and user.
    pub passwords: Option<u32>,
    /// Per minute and user.
    pub searches: Option<u32>,
    /// Per minute and user.
    pub uploads: Option<u32>,
    /// Per minute and user.
    pub router_tests: Option<u32>,
    /// Per `client_rate_limit_window` and WebSocket connection.
    pub frames: Option<u32>,
    /// Maximum frames of one Ably connection per `client_rate_limit_window`.
    pub ably_frames: Option<u32>,
    pub sockets_per_user: Option<usize>,
    pub sockets: Option<usize>,
    pub unauthenticated_per_address: Option<usize>,
    pub connections_per_address: Option<usize>,
}

impl Settings {
    pub fn limits_in_force(&self) -> LimitsInForce {
        let on = self.limits == Switch::On;
        LimitsInForce {
            logins: on.then_some(self.login_rate_limit_max),
            refreshes: on.then_some(self.refresh_rate_limit_max),
            requests: on.then_some(self.api_rate_limit_max),
            passwords: on.then_some(self.password_rate_limit_max),
            searches: on.then_some(self.search_rate_limit_max),
            uploads: on.then_some(self.upload_rate_limit_max),
            router_tests: on.then_some(self.router_test_rate_limit_max),
            frames: on.then_some(self.client_rate_limit_max),
            ably_frames: on.then_some(self.ably_rate_limit_max),
            sockets_per_user: on.then_some(self.max_ws_connections_per_user),
            sockets: on.then_some(self.max_total_ws_connections),
            unauthenticated_per_address: on.then_some(self.max_unauthenticated_per_address),
            connections_per_address: on.then_some(self.max_connections_per_address),
        }
    }
}
