//! Facts for uploading, attaching and reading files.

use super::Facts;
use crate::Fault;
use crate::ports::Lookup;

impl Facts {
    /// Loads the uploads attached to a forwarded message.
    pub(super) fn about_copies(&mut self, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        for attachment in self.message.iter().flat_map(|message| &message.attachments) {
            self.uploads.extend(store.upload(&attachment.id)?);
        }
        Ok(())
    }
}
