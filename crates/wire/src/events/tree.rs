//! REST body for the file tree of a project root, with the agents that currently work on its files.

use parlor_model::{AgentId, Chunk, ChunkKind};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /api/workspace/tree`: the root folder, keyed by its name.
#[derive(Serialize, ToSchema)]
pub struct Tree(pub BTreeMap<String, TreeNode>);

#[derive(Debug, Default, Serialize, ToSchema)]
pub struct TreeNode {
    /// `dir`, `file` or `link`. Links are not followed.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Path relative to the project root, without a leading slash; the absolute path for the root itself.
    pub path: String,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub size: Option<u64>,
    /// Time of the last change, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_modified: Option<i64>,
    /// Agent that works on the file in an active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agent: Option<String>,
    /// `working` if an agent works on the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<&'static str>,
    /// Whether the folder has more entries than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub truncated: Option<bool>,
    /// Child nodes, keyed by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub children: Option<BTreeMap<String, TreeNode>>,
}

impl TreeNode {
    pub fn folder(path: String) -> Self {
        Self { kind: "dir", path, children: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Inserts a node at the given path. Returns `false` if its parent folder is not in the tree.
    pub fn put(&mut self, steps: &[&str], node: TreeNode) -> bool {
        let Some((name, rest)) = steps.split_first() else { return false };
        let Some(children) = &mut self.children else { return false };
        if rest.is_empty() {
            children.insert((*name).to_owned(), node);
            return true;
        }
        children.get_mut(*name).is_some_and(|child| child.put(rest, node))
    }

    /// Marks the node at the given path as being worked on by `agent`, if it is in the tree.
    pub fn mark(&mut self, steps: &[&str], agent: &AgentId) {
        match steps.split_first() {
            None => (self.agent, self.status) = (Some(agent.as_str().to_owned()), Some("working")),
            Some((name, rest)) => {
                if let Some(child) = self.children.as_mut().and_then(|children| children.get_mut(*name)) {
                    child.mark(rest, agent);
                }
            }
        }
    }
}

/// Names of tool input fields that contain a file path.
const PATH_FIELDS: [&str; 5] = ["file_path", "path", "filePath", "notebook_path", "file"];

/// Returns the file that a tool call works on, relative to `root`. `None` if the call names no file below
/// `root`.
pub fn worked_on(call: &Chunk, root: &str) -> Option<String> {
    if call.kind != ChunkKind::ToolUse {
        return None;
    }
    let input: serde_json::Value = serde_json::from_str(&call.content).ok()?;
    let path = PATH_FIELDS.iter().find_map(|name| input.get(*name)?.as_str())?;
    let below = match path.strip_prefix(root) {
        Some(rest) => rest.strip_prefix('/')?,
        None => Some(path).filter(|path| !path.starts_with('/'))?,
    };
    let steps = below.split('/').filter(|step| !matches!(*step, "" | "."));
    let steps: Vec<&str> = steps.collect();
    (!steps.is_empty() && !steps.contains(&"..")).then(|| steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_root_are_recognised_in_a_tool_call() {
        let call = |input: &str| Chunk { kind: ChunkKind::ToolUse, content: input.into(), metadata: None };
        let cases = [
            (r#"{"file_path":"/srv/app/src/a.rs"}"#, Some("src/a.rs")),
            (r#"{"path":"./src//a.rs"}"#, Some("src/a.rs")),
            (r#"{"path":"/srv/application/a"}"#, None),
            (r#"{"path":"/etc/passwd"}"#, None),
            (r#"{"path":"src/../../x"}"#, None),
            (r#"{"path":"/srv/app"}"#, None),
            (r#"{"path":7,"file":"b"}"#, Some("b")),
            ("not json", None),
        ];
        for (input, expected) in cases {
            assert_eq!(worked_on(&call(input), "/srv/app").as_deref(), expected, "{input}");
        }
        let text = Chunk { kind: ChunkKind::Text, ..call(r#"{"path":"a"}"#) };
        assert_eq!(worked_on(&text, "/srv/app"), None);
    }
}
