//! Protocol adapters as pure codecs: they translate the frames of each wire protocol to and from the model.
//!
//! Contains no I/O and no clock, and protocols do not depend on each other; `page` combines two of them. Each protocol has the files
//! `frames` (types of the frames), `ingress` (decodes inbound frames), `egress` (encodes outbound frames) and
//! `codes` (error codes and messages for refusals), as far as it needs them.

pub mod ably;
pub mod agentim;
pub mod broker;
pub mod canonical;
pub mod chatmd;
pub mod events;
pub mod files;
pub mod frames;
pub mod json;
pub mod page;
pub mod relayed;
pub mod time;
pub mod tools;
pub mod turn_input;
#[cfg(test)]
mod typescript;
pub mod words;
