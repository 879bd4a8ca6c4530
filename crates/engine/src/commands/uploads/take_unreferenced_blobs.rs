//! Takes digests of file contents that no upload refers to, so that the caller deletes the contents.

use crate::changes::UploadChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::TakeUnreferencedBlobs;
use parlor_model::{BlobDigest, Refusal};

impl Command for TakeUnreferencedBlobs {
    /// Up to `limit` digests that were not taken before.
    type Facts = Vec<BlobDigest>;
    type Receipt = Vec<BlobDigest>;

    /// Allowed for the hub itself.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Vec<BlobDigest>, PermitError> {
        caller.operator()?;
        Ok(view.store.released(self.limit)?)
    }

    fn decide(
        self,
        released: Vec<BlobDigest>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Vec<BlobDigest>, Refusal> {
        if !released.is_empty() {
            effects.change(UploadChange::ForgetReleased(released.clone()));
        }
        Ok(released)
    }
}
