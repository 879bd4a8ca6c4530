//! From a stranger to somebody: what every door does once it knows whose connection it is.

use super::concurrency::ConcurrencyPermit;
use crate::App;
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_engine::facts::AuthContext;
use parlor_engine::fanout::Subscriber;
use parlor_model::{Caller, Refusal};
use std::sync::Arc;

/// Takes the connection in and greets it. `guest` counts it as a stranger's; who is turned away stays one.
pub async fn admit(
    app: &Arc<App>,
    guest: &mut Option<ConcurrencyPermit>,
    caller: &Caller,
    subscriber: Subscriber,
    greeting: Bytes,
) -> Result<(AuthContext, ConcurrencyPermit), Refusal> {
    let place = Arc::new(Mutex::new(guest.take()));
    let (shared, left) = (app.clone(), place.clone());
    // Once it is somebody's, it is no stranger's any more, before it can know.
    let count = move |standing: &AuthContext| {
        let counted = shared.connection_limiter.user(&standing.user.id, standing.user.max_connections)?;
        left.lock().take();
        Ok(counted)
    };
    let connected = app.hub.connect(caller, subscriber, greeting, count).await;
    *guest = place.lock().take();
    connected
}
