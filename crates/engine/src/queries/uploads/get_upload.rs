//! Returns an uploaded file that the caller may read, without its content.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetUpload;
use parlor_model::{EntityKind, Refusal, Scope, Upload, UploadPurpose};
use std::sync::Arc;

impl Query for GetUpload {
    type Facts = Upload;
    type Answer = Arc<Upload>;

    /// An avatar is visible to every user, an attachment to users who can currently see its message, and an
    /// unattached upload only to its owner.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Upload, PermitError> {
        let reader = caller.signed_in(Scope::Read)?;
        let not_found = Refusal::NotFound(EntityKind::Upload);
        let Some(upload) = view.store.upload(&self.id)? else { return Err(not_found.into()) };
        match &upload.purpose {
            UploadPurpose::Avatar => Ok(upload),
            UploadPurpose::Unattached if upload.owner == reader.user.id => Ok(upload),
            UploadPurpose::Unattached => Err(not_found.into()),
            UploadPurpose::Message(message) => match view.seen_message(caller, message, Scope::Read) {
                Ok(_) => Ok(upload),
                Err(PermitError::Refused(_)) => Err(not_found.into()),
                Err(failed) => Err(failed),
            },
        }
    }

    fn answer(
        &self,
        upload: Upload,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Arc<Upload>, Fault> {
        Ok(Arc::new(upload))
    }
}
