//! Frames of `/ws/gateway`: those of a gateway, those of the hub, and the answers that the hub relays.

pub mod answers;
pub mod gateway;
pub mod hub;

pub use answers::AnswerFrame;
pub use gateway::GatewayFrame;
pub use hub::HubFrame;
