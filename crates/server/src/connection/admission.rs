//! Admission of an authenticated connection: begins its session and moves it from the limit of its
//! address to the limit of its user.

use super::concurrency::ConcurrencyPermit;
use crate::App;
use parking_lot::Mutex;
use parlor_engine::feed::{NewSession, Session};
use parlor_engine::permission::AuthContext;
use parlor_model::{Caller, Refusal};
use std::sync::Arc;

/// Begins a session of the connection. Releases `unauthenticated`, the permit of the address; if the hub rejects the
/// connection, the permit is put back.
pub async fn admit(
    app: &Arc<App>,
    unauthenticated: &mut Option<ConcurrencyPermit>,
    caller: &Caller,
    new: NewSession,
) -> Result<(Session, AuthContext, ConcurrencyPermit), Refusal> {
    let permit = Arc::new(Mutex::new(unauthenticated.take()));
    let (shared_app, shared_permit) = (app.clone(), permit.clone());
    // The permit of the address is released before the client can receive the greeting.
    let count = move |auth_context: &AuthContext| {
        let user_permit =
            shared_app.connection_limiter.user(&auth_context.user.id, auth_context.user.max_connections)?;
        shared_permit.lock().take();
        Ok(user_permit)
    };
    let begun = app.hub.session(caller, new, count).await;
    *unauthenticated = permit.lock().take();
    begun
}
