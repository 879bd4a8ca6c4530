//! Facts for uploading, attaching and reading files.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::ports::Lookup;
use parlor_model::command::NewUpload;
use parlor_model::{Caller, UploadId, UploadPurpose};

impl Facts {
    pub(super) fn about_upload(
        &mut self,
        caller: &Caller,
        new: &NewUpload,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let Some(user) = caller.user() else { return Ok(()) };
        if new.avatar {
            self.avatars = store.avatars(user)?;
        } else {
            self.uploads_waiting = store.uploads_waiting(user)?;
        }
        Ok(())
    }

    /// Loads an upload and, for an attachment, the room of its message: its members may read the file.
    pub(super) fn about_reading_upload(
        &mut self,
        caller: &Caller,
        id: &UploadId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.uploads.extend(store.upload(id)?);
        if let Some(UploadPurpose::Message(message)) = self.uploads.first().map(|upload| &upload.purpose) {
            self.message = store.message(message)?;
        }
        let room = self.message.as_ref().and_then(|message| message.destination.room().cloned());
        match room {
            Some(room) => self.in_room(caller, &room, store, lookup_cache),
            None => Ok(()),
        }
    }
}
