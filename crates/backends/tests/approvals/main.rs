//! Whoever answers an agent, however many at once, whatever goes away meanwhile: one decision reaches its gateway, and
//! none of somebody who may not make it. And turns of which nobody can say whether they should be. On the real store,
//! through the whole hub.

mod missions;
mod races;
mod scene;
mod time;
mod triage;
