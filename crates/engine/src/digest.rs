//! Digests of request bodies, to tell a retry with the same idempotency key from a different request.

use parlor_model::command::Publish;
use parlor_model::{MessageId, Post, Relay, RoomId, Route};
use sha2::{Digest, Sha256};

pub fn digest_of_post(post: &Post) -> [u8; 16] {
    let reply = post.reply_to.as_ref().map_or("", |id| id.as_str());
    // The digest includes the number of mentions: mentions and attachments are hashed as one list, and without
    // the number a mention could be mistaken for an attachment.
    let mentions = post.mentions.len().to_string();
    let mut parts = vec![post.room.as_str(), &post.text, reply, &mentions];
    parts.extend(post.mentions.iter().chain(&post.attachments).map(|part| &**part));
    if let Some(author) = &post.author {
        parts.splice(0..0, ["as", author.agent.as_str()]);
    }
    digest(&parts)
}

/// Has fewer parts than the digest of a post, so that a forward never equals a post.
pub fn digest_of_forward(message: &MessageId, room: &RoomId) -> [u8; 16] {
    digest(&[room.as_str(), message.as_str()])
}

pub fn digest_of_route(route: &Route) -> [u8; 16] {
    digest(&[&route.from, route.path.as_str(), &route.command, &route.payload.0])
}

pub fn digest_of_publish(publish: &Publish) -> [u8; 16] {
    let mut parts = vec!["publish", publish.path.as_str(), &publish.sender_name];
    for message in &publish.messages {
        parts.extend([&*message.name, &*message.payload.0, &*message.external_id]);
    }
    digest(&parts)
}

pub fn digest_of_relay(relay: &Relay) -> [u8; 16] {
    let recipient = relay.recipient.as_deref();
    // A missing recipient addresses the whole room and differs from every name.
    let addressed = if recipient.is_some() { "to" } else { "all" };
    let mut parts =
        vec!["relay", relay.room.as_str(), &relay.author, addressed, recipient.unwrap_or(""), &relay.text];
    parts.extend(relay.observers.iter().map(|observer| &**observer));
    digest(&parts)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prefixes each part with its length, so that different lists of parts never hash the same bytes.
pub fn digest(parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_that_differ_anywhere_have_different_digests() {
        let post = Post {
            id: None,
            origin: None,
            author: None,
            room: RoomId::stored("lobby"),
            text: "hello".into(),
            mentions: vec!["ann".into()],
            reply_to: None,
            attachments: vec!["upload".into()],
            client_message_id: Some("1".into()),
        };
        let others = [
            Post { room: RoomId::stored("other"), ..post.clone() },
            Post { text: "hello ".into(), ..post.clone() },
            Post { reply_to: Some(MessageId::stored("m")), ..post.clone() },
            Post { mentions: vec![], ..post.clone() },
            Post { mentions: vec!["ann".into(), "upload".into()], attachments: vec![], ..post.clone() },
            Post { mentions: vec![], attachments: vec!["ann".into(), "upload".into()], ..post.clone() },
        ];
        for other in others {
            assert_ne!(digest_of_post(&other), digest_of_post(&post), "{other:?}");
        }
        assert_eq!(digest_of_post(&post.clone()), digest_of_post(&post));
    }
}
