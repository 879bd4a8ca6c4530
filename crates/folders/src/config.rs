//! The files that configure an agent and its sessions: `jvAgent.json` and `sessions/{id}.json`.
//!
//! Owns: which field is which part of the stored agent or session. All other fields are settings: the hub stores them, and
//! writes them back unchanged.

use crate::document::{Document, compact};
use parlor_model::command::SessionConfig;
use parlor_model::{
    Agent, AgentId, AutoRun, Pattern, Payload, RoomId, Session, SessionId, Subscription, Time,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Fields of `jvAgent.json` that are no settings. `parlor` decides which program the hub starts, so it is read from the disk
/// only and never written: the network cannot change it.
const AGENT_FIELDS: [&str; 5] = ["id", "name", "description", "subscriptions", HOST_FIELD];
/// Field with the kind of the agent and its program.
pub const HOST_FIELD: &str = "parlor";
const SESSION_FIELDS: [&str; 8] =
    ["id", "title", "isDefault", "subscriptions", "createdAt", "lastUsedAt", "autoRun", "room"];

type Settings = BTreeMap<Box<str>, Box<str>>;

/// Configuration of an agent, in a form in which the file and the store can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDoc {
    pub name: Box<str>,
    pub description: Box<str>,
    /// Compact JSON by name.
    pub settings: Settings,
    pub subscriptions: BTreeSet<Pattern>,
}

/// Configuration of a session, as [`AgentDoc`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDoc {
    pub title: Box<str>,
    pub is_default: bool,
    pub auto_run: Option<AutoRun>,
    pub room: Option<RoomId>,
    pub settings: Settings,
    pub subscriptions: BTreeSet<Pattern>,
    pub created_at: Option<Time>,
    pub last_used_at: Option<Time>,
}

/// Identifies the content of a configuration.
pub type DocDigest = String;

impl AgentDoc {
    pub fn of_file(id: &AgentId, file: &Document) -> Result<Self, String> {
        let name = file.text("name")?.filter(|name| !name.trim().is_empty());
        Ok(Self {
            name: name.unwrap_or_else(|| last_segment(id).into()),
            description: file.text("description")?.unwrap_or_default(),
            settings: settings(file, &AGENT_FIELDS),
            subscriptions: subscriptions(file)?,
        })
    }

    pub fn of_store(agent: &Agent, subscriptions: &[Subscription]) -> Self {
        let settings = agent.settings.iter().filter(|(name, _)| !AGENT_FIELDS.contains(&&***name));
        Self {
            name: agent.name.clone(),
            description: agent.description.clone(),
            settings: settings.map(|(name, json)| (name.clone(), compact(&json.0).into())).collect(),
            subscriptions: patterns(subscriptions),
        }
    }

    /// Changes a file to this configuration.
    pub fn write_to(&self, id: &AgentId, file: &mut Document, added_at: &[Subscription]) {
        file.retain(|name| AGENT_FIELDS.contains(&name) || self.settings.contains_key(name));
        file.set_text("id", id.as_str());
        file.set_text("name", &self.name);
        file.set_text("description", &self.description);
        write_subscriptions(&self.subscriptions, file, added_at);
        self.settings.iter().for_each(|(name, json)| file.set(name, json));
    }

    pub fn digest(&self) -> DocDigest {
        digest(&(&self.name, &self.description, &self.settings, &self.subscriptions))
    }

    pub fn settings(&self) -> Vec<(Box<str>, Payload)> {
        payloads(&self.settings)
    }

    /// The texts of a setting; none if it is absent or no list of texts.
    pub fn text_list_setting(&self, name: &str) -> Vec<String> {
        let json = self.settings.get(name);
        json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// The text of a setting; `None` if it is absent or no text.
    pub fn text_setting(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.settings.get(name)?).ok()
    }
}

impl SessionDoc {
    pub fn of_file(id: &SessionId, file: &Document) -> Result<Self, String> {
        let title = file.text("title")?.filter(|title| !title.trim().is_empty());
        let is_default = match file.get("isDefault") {
            None => *id == SessionId::main(),
            Some(json) => serde_json::from_str(json).map_err(|_| "isDefault must be true or false")?,
        };
        let auto_run = AutoRun::parse(file.get("autoRun").unwrap_or("null"));
        let room = file.text("room")?.map(|room| RoomId::parse(&room)).transpose();
        Ok(Self {
            title: title.unwrap_or_else(|| id.as_str().into()),
            is_default,
            auto_run: auto_run.map_err(|invalid| format!("autoRun {invalid}"))?,
            room: room.map_err(|_| "room must be the id of a room")?,
            settings: settings(file, &SESSION_FIELDS),
            subscriptions: subscriptions(file)?,
            created_at: time(file, "createdAt")?,
            last_used_at: time(file, "lastUsedAt")?,
        })
    }

    pub fn of_store(session: &Session, subscriptions: &[Subscription]) -> Self {
        let settings = session.settings.iter().filter(|(name, _)| !SESSION_FIELDS.contains(&&***name));
        Self {
            title: session.title.clone(),
            is_default: session.is_default,
            auto_run: session.auto_run.clone(),
            room: session.room.clone(),
            settings: settings.map(|(name, json)| (name.clone(), compact(&json.0).into())).collect(),
            subscriptions: patterns(subscriptions),
            created_at: Some(session.created_at),
            last_used_at: session.last_used_at,
        }
    }

    /// Changes a file to this configuration.
    pub fn write_to(&self, id: &SessionId, file: &mut Document, added_at: &[Subscription]) {
        file.retain(|name| SESSION_FIELDS.contains(&name) || self.settings.contains_key(name));
        file.set_text("id", id.as_str());
        file.set_text("title", &self.title);
        file.set("isDefault", if self.is_default { "true" } else { "false" });
        write_subscriptions(&self.subscriptions, file, added_at);
        let set_time = |file: &mut Document, name: &str, time: Option<Time>| {
            if let Some(time) = time.filter(|new| millis(file, name) != Some(new.millis())) {
                file.set(name, &time.millis().to_string());
            }
        };
        set_time(file, "createdAt", self.created_at);
        set_time(file, "lastUsedAt", self.last_used_at);
        let stated = AutoRun::parse(file.get("autoRun").unwrap_or("null"));
        match &self.auto_run {
            // The file may name the default limits, which the encoded setting leaves out.
            auto_run if stated.as_ref() == Ok(auto_run) => {}
            Some(auto_run) => file.set("autoRun", &auto_run.to_json().0),
            None => file.retain(|name| name != "autoRun"),
        }
        match &self.room {
            Some(room) => file.set_text("room", room.as_str()),
            None => file.retain(|name| name != "room"),
        }
        self.settings.iter().for_each(|(name, json)| file.set(name, json));
    }

    /// Identifies the configuration without its times, which the store decides.
    pub fn digest(&self) -> DocDigest {
        let room = self.room.as_ref().map(RoomId::as_str);
        digest(&(&self.title, self.is_default, &self.auto_run, room, &self.settings, &self.subscriptions))
    }

    pub fn config(&self, id: &SessionId) -> SessionConfig {
        SessionConfig {
            id: id.clone(),
            title: Some(self.title.clone()),
            is_default: self.is_default,
            auto_run: self.auto_run.clone(),
            room: self.room.clone(),
            subscriptions: self.subscriptions.iter().cloned().collect(),
            settings: payloads(&self.settings),
            created_at: self.created_at,
            last_used_at: self.last_used_at,
        }
    }
}

/// The id that the file of an agent names; an error if it is no id.
pub fn named_id(file: &Document) -> Result<Option<AgentId>, String> {
    let Some(id) = file.text("id")? else { return Ok(None) };
    AgentId::parse(&id).map(Some).map_err(|_| {
        "its field id is not the id of an agent: up to eight names joined by /, of letters, digits, _ and -"
            .to_owned()
    })
}

fn last_segment(id: &AgentId) -> &str {
    id.as_str().rsplit('/').next().unwrap_or_default()
}

fn settings(file: &Document, reserved: &[&str]) -> Settings {
    let settings = file.fields().filter(|(name, _)| !reserved.contains(name));
    settings.map(|(name, json)| (name.into(), compact(json).into())).collect()
}

fn payloads(settings: &Settings) -> Vec<(Box<str>, Payload)> {
    settings.iter().map(|(name, json)| (name.clone(), Payload((**json).into()))).collect()
}

fn patterns(subscriptions: &[Subscription]) -> BTreeSet<Pattern> {
    subscriptions.iter().map(|subscription| subscription.pattern.clone()).collect()
}

/// An entry of `subscriptions`: an object, or only its pattern.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Pattern(String),
    Object { pattern: String },
}

fn entries(file: &Document) -> Result<Vec<(Pattern, Box<RawValue>)>, String> {
    let Some(json) = file.get("subscriptions") else { return Ok(Vec::new()) };
    let entries: Vec<Box<RawValue>> =
        serde_json::from_str(json).map_err(|_| "subscriptions must be a list".to_owned())?;
    let pattern = |entry: &RawValue| match serde_json::from_str(entry.get()) {
        Ok(Entry::Pattern(pattern) | Entry::Object { pattern }) => {
            Pattern::parse(&pattern).map_err(|invalid| format!("in subscriptions, a {invalid}"))
        }
        Err(_) => Err("an entry of subscriptions has no pattern".to_owned()),
    };
    entries.into_iter().map(|entry| Ok((pattern(&entry)?, entry))).collect()
}

fn subscriptions(file: &Document) -> Result<BTreeSet<Pattern>, String> {
    Ok(entries(file)?.into_iter().map(|(pattern, _)| pattern).collect())
}

/// Writes the subscriptions. Entries of the file whose pattern stays keep their text.
fn write_subscriptions(patterns: &BTreeSet<Pattern>, file: &mut Document, stored: &[Subscription]) {
    let mut entries = entries(file).unwrap_or_default();
    let before = entries.len();
    entries.retain(|(pattern, _)| patterns.contains(pattern));
    let new: Vec<&Pattern> =
        patterns.iter().filter(|pattern| !entries.iter().any(|(known, _)| known == *pattern)).collect();
    if before == entries.len() && new.is_empty() && file.get("subscriptions").is_some() {
        return;
    }
    let mut list: Vec<String> = entries.iter().map(|(_, entry)| entry.get().to_owned()).collect();
    for pattern in new {
        let added_at = stored.iter().find(|known| known.pattern == *pattern);
        let added_at = added_at.map_or(0, |known| known.added_at.millis());
        let pattern = serde_json::to_string(pattern.as_str()).expect("a string always serialises to JSON");
        list.push(format!("{{\"pattern\":{pattern},\"addedAt\":{added_at}}}"));
    }
    file.set("subscriptions", &format!("[{}]", list.join(",")));
}

/// A time in milliseconds.
fn time(file: &Document, name: &str) -> Result<Option<Time>, String> {
    match (file.get(name), millis(file, name)) {
        (None, _) => Ok(None),
        (Some(_), Some(millis)) => Ok(Some(Time(millis.saturating_mul(1000)))),
        (Some(_), None) => Err(format!("{name} must be a time in milliseconds")),
    }
}

fn millis(file: &Document, name: &str) -> Option<i64> {
    let millis: f64 = serde_json::from_str(file.get(name)?).ok()?;
    (0.0..1e15).contains(&millis).then_some(millis as i64)
}

fn digest(content: &impl serde::Serialize) -> DocDigest {
    let json = serde_json::to_vec(content).expect("texts and numbers always serialise to JSON");
    let mut digest = String::new();
    for byte in &Sha256::digest(json)[..16] {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Document {
        Document::parse(text.as_bytes()).unwrap()
    }

    fn agent(text: &str) -> Result<AgentDoc, String> {
        AgentDoc::of_file(&AgentId::stored("team/coder"), &file(text))
    }

    #[test]
    fn an_agent_is_read_from_its_file() {
        let doc = agent(
            r#"{"id":"team/coder","description":"Writes code","defaultModel":"haiku","x": { "a": 1.0 },
                "subscriptions":["slack/**",{"pattern":"/email//*","addedAt":5}],"parlor":{"kind":"command"}}"#,
        )
        .unwrap();
        assert_eq!((&*doc.name, &*doc.description), ("coder", "Writes code"));
        let settings: Vec<_> = doc.settings.iter().map(|(name, json)| (&**name, &**json)).collect();
        assert_eq!(settings, [("defaultModel", "\"haiku\""), ("x", "{\"a\":1.0}")], "never the program");
        let patterns: Vec<_> = doc.subscriptions.iter().map(Pattern::as_str).collect();
        assert_eq!(patterns, ["email/*", "slack/**"]);
        assert_eq!(doc.text_setting("defaultModel").as_deref(), Some("haiku"));
    }

    #[test]
    fn invalid_fields_are_named() {
        let check = |text: &str, reason: &str| {
            let error = agent(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        check(r#"{"name":7}"#, "name must be a text");
        check(r#"{"subscriptions":{}}"#, "subscriptions must be a list");
        check(r#"{"subscriptions":[7]}"#, "no pattern");
        check(r#"{"subscriptions":["a/\u0000"]}"#, "control character");
        assert!(named_id(&file(r#"{"id":"../x"}"#)).unwrap_err().contains("not the id"));
    }

    #[test]
    fn what_the_hub_does_not_change_stays_in_the_file() {
        let text = r#"{"custom": {"b": [1, 2]},  "id": "team/coder", "parlor": {"kind": "command", "command": ["a"]},
            "subscriptions": [{"addedAt": 5, "pattern": "a/**", "why": "x"}, "b"], "gone": 1}"#;
        let mut document = file(text);
        let mut doc = agent(text).unwrap();
        doc.settings.remove("gone");
        doc.settings.insert("heartbeat".into(), "\"* * * * *\"".into());
        doc.subscriptions = [Pattern::stored("a/**"), Pattern::stored("c")].into();
        doc.write_to(&AgentId::stored("team/coder"), &mut document, &[]);
        let text = document.render();
        for part in [
            "\"custom\": {\"b\": [1, 2]}",
            "\"parlor\": {\"kind\": \"command\", \"command\": [\"a\"]}",
            "[{\"addedAt\": 5, \"pattern\": \"a/**\", \"why\": \"x\"},{\"pattern\":\"c\",\"addedAt\":0}]",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("gone"));
        assert_eq!(agent(&text).unwrap(), doc);
        assert_eq!(agent(&text).unwrap().digest(), doc.digest());
    }

    #[test]
    fn a_session_survives_a_round_trip() {
        let id = SessionId::stored("side");
        let text = r#"{"id":"side","title":"Side","isDefault":true,"room":"lobby","mood":"good",
            "autoRun":{"enabled":true,"debounceMs":3000},"createdAt":1708900000000,"subscriptions":[]}"#;
        let doc = SessionDoc::of_file(&id, &file(text)).unwrap();
        let mut document = file(text);
        doc.write_to(&id, &mut document, &[]);
        let written = document.render();
        assert!(written.contains("\"autoRun\": {\"enabled\":true,\"debounceMs\":3000}"), "{written}");
        assert_eq!(SessionDoc::of_file(&id, &Document::parse(written.as_bytes()).unwrap()), Ok(doc.clone()));
        let used = SessionDoc { last_used_at: Some(Time(7_000)), auto_run: None, ..doc.clone() };
        used.write_to(&id, &mut document, &[]);
        assert!(document.render().contains("\"lastUsedAt\": 7"));
        assert!(!document.render().contains("autoRun"));
        assert_eq!(SessionDoc { auto_run: doc.auto_run.clone(), ..used }.digest(), doc.digest());
        let invalid = SessionDoc::of_file(&id, &file(r#"{"room":"../x"}"#)).unwrap_err();
        assert!(invalid.contains("room"), "{invalid}");
    }
}
