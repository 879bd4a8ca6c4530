//! What lies in a folder that a room is about, and who works on it.

use parlor_model::{AgentId, Chunk, ChunkKind};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /api/workspace/tree`: the folder, by its name.
#[derive(Serialize, ToSchema)]
pub struct Tree(pub BTreeMap<String, TreeNode>);

#[derive(Debug, Default, Serialize, ToSchema)]
pub struct TreeNode {
    /// `dir`, `file`, or `link`, which is not followed.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Below the project root, without a slash in front; of the root itself the whole path.
    pub path: String,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub size: Option<u64>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_modified: Option<i64>,
    /// The agent that works on it in a turn that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agent: Option<String>,
    /// `working`, where an agent does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<&'static str>,
    /// There is more in it than is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub truncated: Option<bool>,
    /// By name, of the same form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub children: Option<BTreeMap<String, TreeNode>>,
}

impl TreeNode {
    pub fn folder(path: String) -> Self {
        Self { kind: "dir", path, children: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Puts something where its path says; says whether there is such a place.
    pub fn put(&mut self, steps: &[&str], node: TreeNode) -> bool {
        let Some((name, rest)) = steps.split_first() else { return false };
        let Some(children) = &mut self.children else { return false };
        if rest.is_empty() {
            children.insert((*name).to_owned(), node);
            return true;
        }
        children.get_mut(*name).is_some_and(|child| child.put(rest, node))
    }

    /// Marks what an agent works on, if it is told of.
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

/// Under what names tools are given a file.
const FILES: [&str; 5] = ["file_path", "path", "filePath", "notebook_path", "file"];

/// What of the folder a tool was called for, below it, if that is known.
pub fn worked_on(call: &Chunk, root: &str) -> Option<String> {
    if call.kind != ChunkKind::ToolUse {
        return None;
    }
    let input: serde_json::Value = serde_json::from_str(&call.content).ok()?;
    let path = FILES.iter().find_map(|name| input.get(*name)?.as_str())?;
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
    fn a_call_is_for_what_lies_in_the_folder_and_for_nothing_else() {
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
        let said = Chunk { kind: ChunkKind::Text, ..call(r#"{"path":"a"}"#) };
        assert_eq!(worked_on(&said, "/srv/app"), None);
    }
}
