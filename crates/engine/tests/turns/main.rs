//! Tests of automatic turns on a whole hub with a store in memory: the rules that end loops of agents, the end of batches,
//! mail that arrives without a message being posted, heartbeats, and requests that a caller must not make.

mod arrivals;
mod beats;
mod endings;
mod loops;
mod requests;
mod scene;
