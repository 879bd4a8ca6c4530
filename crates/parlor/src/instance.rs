//! An opened data directory with its hub. The only module that selects the concrete backends.

use crate::backup;
use crate::models::ModelClients;
use crate::settings::{Settings, Switch, Synchronous};
use crate::triage::ModelTriage;
use anyhow::{Context, bail};
use parlor_backends::disk_blobs::DiskBlobs;
use parlor_backends::sqlite::{self, Options};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds, SystemClock};
use parlor_engine::ports::{BlobStore, Clock, IdGenerator};
use parlor_engine::{Hub, Limits};
use parlor_server::{PasswordCost, Passwords, SigningKeys};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Clock, ID generator and costs of the environment. Tests replace them.
pub struct Platform {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGenerator>,
    pub password_cost: PasswordCost,
    /// Timeout for the peer of a WebSocket to complete the closing handshake.
    pub close_timeout: Duration,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            password_cost: PasswordCost::default(),
            close_timeout: Duration::from_secs(2),
        }
    }
}

pub struct Instance {
    pub hub: Hub,
    pub passwords: Passwords,
    pub blobs: Arc<dyn BlobStore>,
    pub models: Arc<ModelClients>,
    pub signing_keys: Arc<SigningKeys>,
    /// Lock of the data directory, held while the store is open. The hub requires to be the only writer.
    _lock: File,
}

/// Opens the data directory and starts the engine on it.
pub fn open(settings: &Settings, platform: Platform) -> anyhow::Result<Instance> {
    let data = &settings.data;
    make_directory(data)?;
    let lock = lock(data)?;
    // Remove the staging directory of an interrupted restore.
    let _ = fs::remove_dir_all(data.join(backup::STAGING_DIRECTORY));
    let options = Options {
        synchronous: match settings.synchronous {
            Synchronous::Full => sqlite::Synchronous::Full,
            Synchronous::Normal => sqlite::Synchronous::Normal,
            Synchronous::Off => sqlite::Synchronous::Off,
        },
        log_window: settings.log_window_days,
        idempotency_window: settings.dedupe_window_hours,
        upload_window: settings.upload_wait,
        message_retention: settings.message_retention_days,
        audit_window: settings.audit_retention_days,
        ..Options::default()
    };
    let (store, reader) = sqlite::open(data, options)?;
    let uploads = data.join("uploads");
    let blobs = DiskBlobs::open(&uploads);
    let blobs = blobs.with_context(|| format!("cannot open {}", uploads.display()))?;
    let limits = Limits {
        message_characters: settings.max_message_length,
        attachments: settings.max_attachments,
        reactions: settings.max_reactions,
        welcome: settings.welcome == Switch::On,
        open_registration: settings.open_registration == Switch::On,
        chain_depth: settings.max_chain_depth,
        members_add_agents: settings.members_add_agents == Switch::On,
        agent_messages: settings.max_agent_messages_per_minute,
        room_turns: settings.max_turns_per_day,
        room_tokens: settings.max_tokens_per_day,
        occupants: settings.max_presence_members,
        place_occupants: settings.max_presence_members_per_channel,
        connection_occupants: settings.max_presence_members_per_connection,
        occupant_bytes: settings.max_presence_member_size,
        all_occupant_bytes: settings.max_presence_size,
        occupant_history_bytes: settings.max_presence_history_size,
        gateway_grace: settings.gateway_grace,
        turn_retry_delays: [1, 6, 24, 120].map(|factor| settings.turn_retry_delay * factor).into(),
        project_roots: project_roots(&settings.project_roots),
        // Longer than the timeout of the model request, so that the request fails first and logs the reason.
        triage_timeout: settings.triage_timeout + Duration::from_secs(2),
        ..Limits::default()
    };
    let models = ModelClients::new(settings)?;
    let hub = Hub::open(HubDependencies {
        store,
        reader,
        bus: Arc::new(LocalBus::new(limits.max_queued_batches)),
        clock: platform.clock,
        ids: platform.ids,
        triage: Arc::new(ModelTriage::new(models.clone())),
        limits,
    })?;
    let passwords = Passwords::new(settings.password_hashing_jobs, platform.password_cost);
    let signing_keys = Arc::new(SigningKeys::new(&token_secret(settings)?));
    Ok(Instance { hub, passwords, blobs: Arc::new(blobs), models, signing_keys, _lock: lock })
}

/// Resolves symbolic links in the configured project roots. A missing folder is logged and skipped, so that
/// the hub still starts.
fn project_roots(settings: &[PathBuf]) -> Vec<Box<str>> {
    let real = |path: &PathBuf| {
        let real = fs::canonicalize(path).ok().filter(|real| real.is_dir());
        let real = real.and_then(|real| real.to_str().map(Into::into));
        if real.is_none() {
            tracing::warn!(path = %path.display(), "project_roots: the folder does not exist");
        }
        real
    };
    settings.iter().filter_map(real).collect()
}

/// Returns the secret that signs access tokens: the setting, or a secret that is generated once and stored
/// next to the database.
pub fn token_secret(settings: &Settings) -> anyhow::Result<Vec<u8>> {
    if let Some(secret) = &settings.token_secret {
        return Ok(secret.expose().as_bytes().to_vec());
    }
    let file = settings.data.join("token.key");
    let generate = || -> anyhow::Result<Vec<u8>> {
        let mut secret = vec![0; 32];
        getrandom::fill(&mut secret).context("the system provides no random numbers")?;
        let new = settings.data.join("token.key.new");
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        out.write_all(&secret)?;
        out.sync_all()?;
        fs::rename(&new, &file)?;
        // Sync the directory too: without it, a power loss can lose the new file, which signs every user out.
        File::open(&settings.data)?.sync_all()?;
        Ok(secret)
    };
    match fs::read(&file) {
        Ok(secret) if secret.len() >= 32 => Ok(secret),
        Ok(_) => bail!("{} is damaged; remove it (all users must sign in again)", file.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            generate().with_context(|| format!("cannot write {}", file.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

pub fn make_directory(data: &Path) -> anyhow::Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(data);
    created.with_context(|| format!("cannot create the data directory {}", data.display()))
}

/// Locks the data directory. Every process that writes to it holds this lock while it does.
pub fn lock(data: &Path) -> anyhow::Result<File> {
    let file = data.join("parlor.lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&file);
    let lock = lock.with_context(|| format!("cannot open {}", file.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another Parlor is using {}; stop it, or choose another directory with --data",
                data.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", file.display()))
        }
    }
}
