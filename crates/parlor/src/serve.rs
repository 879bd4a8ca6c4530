//! Puts the hub together and runs it until it is told to stop.

use crate::settings::Settings;

/// Opens the store, starts the engine and the listeners, reports, and serves until a signal.
pub async fn serve(settings: Settings) -> anyhow::Result<()> {
    anyhow::bail!("the hub is not composed yet; it would listen on {}", settings.listen)
}
