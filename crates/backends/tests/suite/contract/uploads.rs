//! Uploads: unattached, attached to messages, avatars, and blobs that are no longer referenced.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, Change, MessageChange, RoomChange, UploadChange};
use parlor_model::{BlobDigest, Message, Time, Upload, UploadId, UploadPurpose};
use std::sync::Arc;

fn put(upload: &Upload) -> Change {
    Change::Upload(UploadChange::PutUpload(Arc::new(upload.clone())))
}

fn found(ports: &Ports, id: &str) -> Option<Upload> {
    ports.read(|s| s.upload(&UploadId::stored(id)))
}

fn released(ports: &Ports) -> Vec<u8> {
    ports.read(|s| s.released(usize::MAX)).iter().map(|digest| digest.0[0]).collect()
}

/// Stores three uploads of Ann: `on` is attached to a message, `waits` is unattached, `face` is an avatar.
fn three_uploads(ports: &mut Ports) {
    ports.change(vec![put_user("ann", 1), put_room("lobby")]);
    let on = upload("on", "ann", 1, 10, UploadPurpose::Unattached);
    ports.change(vec![
        put(&on),
        put(&upload("waits", "ann", 2, 10, UploadPurpose::Unattached)),
        put(&upload("face", "ann", 3, 10, UploadPurpose::Avatar)),
    ]);
    let seq = ports.next_seq();
    ports.post(Message { attachments: Vec::new(), ..message("m", "lobby", "ann", seq) });
    ports.change(vec![Change::Upload(UploadChange::Attach { upload: on.id, message: message_id("m") })]);
}

#[test]
fn an_upload_keeps_every_field() {
    each(|ports| {
        for (id, purpose) in [
            ("a", UploadPurpose::Unattached),
            ("b", UploadPurpose::Avatar),
            ("c", UploadPurpose::Message(message_id("m"))),
        ] {
            let new = upload(id, "ann", 7, 5, purpose);
            ports.change(vec![put(&new)]);
            assert_eq!(found(ports, id), Some(new));
        }
        assert_eq!(found(ports, "none"), None);
        let face = upload("b", "ann", 7, 5, UploadPurpose::Avatar);
        assert_eq!(ports.read(|s| s.avatars(&user_id("ann"))), [face]);
        assert_eq!(ports.read(|s| s.uploads_waiting(&user_id("ann"))), 1);
        assert_eq!(ports.read(|s| s.uploads_waiting(&user_id("bob"))), 0);
    });
}

#[test]
fn an_attached_upload_is_not_pending_and_is_deleted_with_its_message() {
    each(|ports| {
        three_uploads(ports);
        assert_eq!(found(ports, "on").unwrap().purpose, UploadPurpose::Message(message_id("m")));
        assert_eq!(ports.read(|s| s.uploads_waiting(&user_id("ann"))), 1);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m")))]);
        assert_eq!(found(ports, "on"), None);
        assert_eq!(released(ports), [1]);
        assert!(found(ports, "waits").is_some() && found(ports, "face").is_some());
    });
}

#[test]
fn uploads_of_a_rooms_messages_are_deleted_with_the_room() {
    each(|ports| {
        three_uploads(ports);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        assert_eq!(found(ports, "on"), None);
        assert_eq!(released(ports), [1]);
    });
}

#[test]
fn removing_a_user_deletes_their_uploads_that_are_not_on_a_message() {
    each(|ports| {
        three_uploads(ports);
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("ann")))]);
        assert!(found(ports, "on").is_some(), "the message and its upload stay");
        assert_eq!((found(ports, "waits"), found(ports, "face")), (None, None));
        assert_eq!(released(ports), [2, 3]);
    });
}

#[test]
fn only_expired_unattached_uploads_are_deleted() {
    each(|ports| {
        three_uploads(ports);
        let hour = 3_600_000_000;
        ports.store.run_maintenance(Time(10 + hour)).unwrap();
        assert!(found(ports, "waits").is_some(), "the window is an hour");
        ports.store.run_maintenance(Time(11 + hour)).unwrap();
        assert_eq!(found(ports, "waits"), None);
        assert!(found(ports, "on").is_some() && found(ports, "face").is_some());
        assert_eq!(released(ports), [2]);
    });
}

#[test]
fn a_blob_is_released_with_its_last_upload_and_listed_until_it_is_forgotten() {
    each(|ports| {
        let content = BlobDigest([9; 32]);
        for (id, owner) in [("a", "ann"), ("b", "bob")] {
            ports.change(vec![put(&upload(id, owner, 9, 1, UploadPurpose::Avatar))]);
        }
        assert!(ports.read(|s| s.refers_to(&content)));
        ports.change(vec![Change::Upload(UploadChange::RemoveUpload(UploadId::stored("a")))]);
        assert!(ports.read(|s| s.refers_to(&content)));
        assert_eq!(released(ports), [0; 0]);
        ports.change(vec![Change::Upload(UploadChange::RemoveUpload(UploadId::stored("b")))]);
        assert!(!ports.read(|s| s.refers_to(&content)));
        ports.restart();
        assert_eq!(ports.read(|s| s.released(1)), [content]);
        assert!(ports.read(|s| s.released(0)).is_empty());
        ports.change(vec![Change::Upload(UploadChange::ForgetReleased(vec![content]))]);
        assert_eq!(released(ports), [0; 0]);
    });
}
