//! The limits that hold once `limits` has been taken into account.

use super::{LimitSwitch, Settings};

/// Every limit that `limits = "off"` lifts, and no other; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsInForce {
    /// A minute and address.
    pub logins: Option<u32>,
    /// A minute and address.
    pub refreshes: Option<u32>,
    /// A window (`client_rate_limit_window`) and socket.
    pub frames: Option<u32>,
    pub sockets_per_user: Option<usize>,
    pub sockets: Option<usize>,
    pub unauthenticated_per_address: Option<usize>,
}

impl Settings {
    pub fn limits_in_force(&self) -> LimitsInForce {
        let on = self.limits == LimitSwitch::On;
        LimitsInForce {
            logins: on.then_some(self.login_rate_limit_max),
            refreshes: on.then_some(self.refresh_rate_limit_max),
            frames: on.then_some(self.client_rate_limit_max),
            sockets_per_user: on.then_some(self.max_ws_connections_per_user),
            sockets: on.then_some(self.max_total_ws_connections),
            unauthenticated_per_address: on.then_some(self.max_unauthenticated_per_address),
        }
    }
}
