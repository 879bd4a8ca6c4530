//! The members of the room under the names that they have in the file.
//!
//! A user is called by the user name, an agent by its name, both as aliases.

use super::continuations::EVERYONE;
use parlor_model::mention::{self, Mentionable};
use parlor_model::{AgentId, MemberId};
use parlor_wire::broker::client::{MemberKind, RoomMember};
use parlor_wire::chatmd::{grammar, names};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Members {
    /// Alias of each member, by id.
    aliases: HashMap<Box<str>, String>,
    /// Id of the first member with each id, name or handle, in lower case.
    ids: HashMap<String, Box<str>>,
    /// Agents of the workplace that are not members.
    file_agents: Vec<Mentionable>,
}

impl Members {
    pub fn new(members: &[RoomMember]) -> Self {
        let mut ids = HashMap::new();
        for member in members {
            for name in [Some(&member.id), Some(&member.name), member.handle.as_ref()].into_iter().flatten() {
                ids.entry(name.to_lowercase()).or_insert_with(|| member.id.clone());
            }
        }
        let aliases = members.iter().map(|member| (member.id.clone(), names::encode(called(member))));
        Self { aliases: aliases.collect(), ids, file_agents: Vec::new() }
    }

    /// Sets the names of agents that are known by the file only. A text can mention them like members.
    pub fn set_file_agents(&mut self, aliases: &[String]) {
        let agents = aliases.iter().filter(|alias| grammar::is_name(alias) && !is_everyone(alias));
        let agents = agents.map(|alias| Mentionable {
            member: MemberId::Agent(AgentId::stored(alias.as_str())),
            name: names::decode(alias).into(),
            handle: alias.as_str().into(),
        });
        self.file_agents =
            agents.filter(|agent| !self.ids.contains_key(&agent.name.to_lowercase())).collect();
    }

    /// Returns the aliases of everyone that a text addresses, in the order of the text: the members that the
    /// hub found, and agents of the workplace.
    pub fn mentioned(&self, text: &str, mentions: &[RoomMember]) -> Vec<String> {
        let lower = text.to_lowercase();
        let place = |name: &str| lower.find(&format!("@{}", name.to_lowercase())).unwrap_or(0);
        let members = mentions.iter().map(|member| {
            let handle = self.aliases.get(&member.id).map(|alias| names::decode(alias));
            let at = place(&member.name).max(handle.map_or(0, |handle| place(&handle)));
            (at, self.alias(&member.id, &member.name))
        });
        let agents = mention::resolve(text, &[], &self.file_agents).into_iter().map(|agent| {
            let alias = agent.member.as_str().to_owned();
            (place(&agent.name).max(place(&alias)), alias)
        });
        let mut all: Vec<(usize, String)> = members.chain(agents).collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, alias)| alias).collect()
    }

    pub fn aliases(&self) -> impl Iterator<Item = String> {
        self.aliases.values().cloned()
    }

    /// Returns the alias of the member with this id, or that of `name` if it is not a member now.
    pub fn alias(&self, id: &str, name: &str) -> String {
        self.aliases.get(id).cloned().unwrap_or_else(|| names::encode(name))
    }

    /// Returns the alias of the member with this id, name or handle, or that of the name itself.
    pub fn alias_of(&self, name: &str) -> String {
        let id = self.ids.get(&name.to_lowercase());
        id.and_then(|id| self.aliases.get(id)).cloned().unwrap_or_else(|| names::encode(name))
    }

    /// Returns the key of a name in the file. All names of a member have the same key, because the hub accepts
    /// each of them: an agent cannot leave its chain by writing its name differently.
    pub fn key(&self, alias: &str) -> String {
        if is_everyone(alias) {
            return EVERYONE.into();
        }
        let name = names::decode(alias).to_lowercase();
        match self.ids.get(&name) {
            Some(id) => format!("id:{id}"),
            None => format!("name:{name}"),
        }
    }
}

/// Returns whether a recipient or an observer stands for everyone.
pub fn is_everyone(alias: &str) -> bool {
    alias.eq_ignore_ascii_case(EVERYONE)
}

fn called(member: &RoomMember) -> &str {
    match (member.kind, &member.handle) {
        (MemberKind::User, Some(handle)) => handle,
        _ => &member.name,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn member(id: &str, kind: MemberKind, name: &str, handle: &str) -> RoomMember {
        RoomMember { id: id.into(), kind, name: name.into(), handle: Some(handle.into()) }
    }

    #[test]
    fn users_are_called_by_their_user_name_and_agents_by_their_name() {
        let members = Members::new(&[
            member("u1", MemberKind::User, "Ada Lovelace", "ada"),
            member("a1", MemberKind::Agent, "Code Reviewer/2", "a1"),
        ]);
        assert_eq!(members.alias("u1", "ignored"), "ada");
        assert_eq!(members.alias("a1", "ignored"), "Code_u20_Reviewer__2");
        assert_eq!(members.alias("gone", "Zoë"), "Zo_ueb_");
    }

    #[test]
    fn every_name_of_a_member_has_the_same_key() {
        let members = Members::new(&[
            member("u1", MemberKind::User, "Ada Lovelace", "ada"),
            member("a1", MemberKind::Agent, "Coder", "a1"),
        ]);
        for alias in ["coder", "CODER", "a1", "_u43_oder"] {
            assert_eq!(members.key(alias), "id:a1", "{alias}");
        }
        for alias in ["ada", "Ada_u20_Lovelace", "u1"] {
            assert_eq!(members.key(alias), "id:u1", "{alias}");
        }
        assert_eq!(members.key("Script"), "name:script");
        assert_eq!(members.key("ALL"), EVERYONE);
        assert_eq!(members.key("_u61_ll"), "name:all", "the alias of a member with this name");
    }
}
