//! Permissions of the family `uploads`, with the verdicts described in `families`.

use crate::requests::{PERSON, READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{AddUpload, TakeUnreferencedBlobs};
use parlor_model::query::{GetUpload, MayUpload};
use parlor_model::{BlobDigest, File, MediaType, UploadId};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::AddUpload(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   add_upload(false), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   add_upload(true), READY;
    }
    AnyCommand::TakeUnreferencedBlobs(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  take_blobs(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::GetUpload(_) => {
        "who   who   ?file yes   yes   yes   ?file ?file ?file no    yes   who  ", READ,    get_upload(), UPLOAD_ON_MESSAGE;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    get_upload(), UPLOAD_ON_MESSAGE_CLEARED_AWAY;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    get_upload(), UPLOAD_ON_MESSAGE_NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    get_upload(), OWN_WAITING_UPLOAD;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    get_upload(), ANOTHERS_WAITING_UPLOAD;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    get_upload(), AN_AVATAR;
        "who   who   ?file ?file ?file ?file ?file ?file ?file no    ?file who  ", READ,    get_upload(), READY;
    }
    AnyQuery::MayUpload(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   MayUpload, READY;
    }
}

fn add_upload(avatar: bool) -> AddUpload {
    let file = File { name: "cat.png".into(), media: MediaType::Png, size: 3 };
    AddUpload { file, digest: BlobDigest([3; 32]), avatar }
}

fn take_blobs() -> TakeUnreferencedBlobs {
    TakeUnreferencedBlobs { limit: 10 }
}

fn get_upload() -> GetUpload {
    GetUpload { id: UploadId::stored("upload") }
}
