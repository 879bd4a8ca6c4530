//! Scopes and presets of API keys by the names that Jaibber gives them.

use parlor_model::Scope;

/// The hub's scopes for a scope of Jaibber. `None` for other names and for scopes that the hub does not have.
pub fn scope(name: &str) -> Option<Scope> {
    match name {
        "messages:read" | "tasks:read" | "agents:read" => Some(Scope::Read),
        "messages:write" | "tasks:write" => Some(Scope::Write),
        "agents:write" | "agents:manage" => Some(Scope::Agents),
        _ => None,
    }
}

/// The scopes of a key that is created with a preset.
pub fn preset(name: &str) -> Option<Vec<Scope>> {
    match name {
        "read-only" => Some(vec![Scope::Read]),
        "agent-operator" | "full-access" => Some(vec![Scope::Read, Scope::Write, Scope::Agents]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jaibbers_scopes_have_equivalents() {
        let check = |name, expected| assert_eq!(scope(name), expected, "{name}");
        check("messages:read", Some(Scope::Read));
        check("tasks:write", Some(Scope::Write));
        check("agents:manage", Some(Scope::Agents));
        check("webhooks:manage", None);
        assert_eq!(preset("read-only"), Some(vec![Scope::Read]));
        assert_eq!(preset("everything"), None);
    }
}
