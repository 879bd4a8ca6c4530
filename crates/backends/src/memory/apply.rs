//! What each planned change does to the tables.

use super::tables::Tables;
use parlor_engine::plan::Change;
use parlor_model::{
    DeliveryState, Member, MemberId, MessageId, RefreshToken, RoomId, SecretHash, SignIn, SignInId, UserId,
};
use std::sync::Arc;

impl Tables {
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::OfferSetup(offer) => self.setup = *offer,
            Change::PutUser(user) => self.users.put(user.id.clone(), user.as_ref().clone()),
            Change::RemoveUser(user) => self.remove_user(user),
            Change::PutSignIn(sign_in, token) => self.put_sign_in(sign_in, *token),
            Change::SpendRefreshToken(token) => {
                if let Some(token) = self.refresh_tokens.get_mut(token) {
                    token.spent = true;
                }
            }
            Change::EndSignIn(sign_in) => self.end_sign_in(sign_in),
            Change::EndSignInsOf(user) => self.end_sign_ins_of(user),
            Change::PutKey(key, secret) => {
                self.keys.put(key.id.clone(), key.as_ref().clone());
                self.key_secrets.insert(*secret, key.id.clone());
            }
            Change::RemoveKey(key) => {
                self.keys.remove(key);
                self.key_secrets.retain(|_, other| other != key);
            }
            Change::PutRoom(room) => self.rooms.put(room.id.clone(), room.as_ref().clone()),
            Change::RemoveRoom(room) => self.remove_room(room),
            Change::PutMember(member) => {
                let nameless = Member { name: "".into(), handle: "".into(), ..member.as_ref().clone() };
                self.members.put((member.room.clone(), member.member.clone()), nameless);
            }
            Change::RemoveMember(room, member) => self.members.remove(&(room.clone(), member.clone())),
            Change::PutMessage(message) => self.messages.put(message.id.clone(), message.clone()),
            Change::Revise { message, previous } => {
                self.messages.put(message.id.clone(), message.clone());
                self.revisions.entry(message.id.clone()).or_default().push(previous.clone());
            }
            Change::Erase(message) => self.erase(message),
            Change::MarkRead { room, user, through, at } => {
                let key = (room.clone(), MemberId::User(user.clone()));
                if let Some(member) = self.members.get_mut(&key) {
                    member.read_through = member.read_through.max(*through);
                    member.read_at = Some(*at);
                }
            }
            Change::PutAgent(agent) => self.agents.put(agent.id.clone(), agent.as_ref().clone()),
            Change::PutSubscription(new) => {
                let key = (new.agent.clone(), new.session.clone(), new.pattern.clone());
                self.subscriptions.put(key, new.clone());
            }
            Change::PutDelivery { delivery, seq: _ } => {
                self.deliveries.put((delivery.message.clone(), delivery.mailbox.clone()), delivery.clone());
            }
            Change::MarkDelivered { mailbox, messages } => {
                for message in messages {
                    if let Some(delivery) = self.deliveries.get_mut(&(message.clone(), mailbox.clone())) {
                        delivery.state = DeliveryState::Delivered;
                    }
                }
            }
            // The message itself is kept by `PutMessage`; no port reads dead letters.
            Change::DeadLetter { .. } => {}
            Change::Remember { key, first, at } => {
                self.first_uses.insert(key.clone(), (first.clone(), *at));
            }
        }
    }

    fn put_sign_in(&mut self, sign_in: &Arc<SignIn>, token: SecretHash) {
        self.sign_ins.put(sign_in.id.clone(), sign_in.as_ref().clone());
        self.refresh_tokens.insert(token, RefreshToken { sign_in: sign_in.id.clone(), spent: false });
    }

    pub fn end_sign_in(&mut self, sign_in: &SignInId) {
        self.sign_ins.remove(sign_in);
        self.refresh_tokens.retain(|_, token| token.sign_in != *sign_in);
    }

    fn end_sign_ins_of(&mut self, user: &UserId) {
        let theirs: Vec<SignInId> =
            self.sign_ins.rows().filter(|sign_in| sign_in.user == *user).map(|s| s.id.clone()).collect();
        for sign_in in theirs {
            self.end_sign_in(&sign_in);
        }
    }

    fn remove_user(&mut self, user: &UserId) {
        self.users.remove(user);
        self.end_sign_ins_of(user);
        let keys: Vec<_> =
            self.keys.rows().filter(|key| key.owner == *user).map(|key| key.id.clone()).collect();
        for key in keys {
            self.keys.remove(&key);
            self.key_secrets.retain(|_, other| *other != key);
        }
        let agents: Vec<_> =
            self.agents.rows().filter(|agent| agent.owner == *user).map(|agent| agent.id.clone()).collect();
        for agent in agents {
            self.agents.remove(&agent);
            self.subscriptions.retain(|(owner, _, _)| *owner != agent);
            self.deliveries.retain(|(_, mailbox)| mailbox.agent != agent);
            self.members.retain(|(_, member)| member.agent() != Some(&agent));
        }
        self.members.retain(|(_, member)| member.user() != Some(user));
    }

    fn remove_room(&mut self, room: &RoomId) {
        let messages: Vec<MessageId> = self.messages_in(room).map(|message| message.id.clone()).collect();
        for message in messages {
            self.erase(&message);
        }
        self.members.retain(|(other, _)| other != room);
        self.rooms.remove(room);
    }

    /// Its key stays, so that a late retry is still known as one.
    fn erase(&mut self, message: &MessageId) {
        self.messages.remove(message);
        self.revisions.remove(message);
        self.deliveries.retain(|(other, _)| other != message);
    }
}
