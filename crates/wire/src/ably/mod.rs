//! The Ably protocol: frames of the realtime connection, bodies of the REST API, tokens and Jaibber payloads.
//!
//! Pure functions: keys, times and random parts are arguments. JSON and msgpack are two encodings of the same
//! types, so that a frame is encoded once per encoding for all of its receivers.

pub mod auth;
pub mod capability;
pub mod channel;
pub mod codes;
pub mod data;
pub mod egress;
pub mod fields;
pub mod frames;
pub mod jaibber;
pub mod occupants;
pub mod presence;
pub mod rest;
pub mod serial;
