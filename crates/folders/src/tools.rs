//! Programs in the `tools` folders: `tools/NAME.json` describes an executable file in the same folder.

use crate::scan::{TOOLS, open_folder};
use parlor_engine::ports::ToolProgram;
use parlor_model::{AgentId, ToolManifest};
use parlor_safe_files::{Directory, Kind};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MAX_TOOLS: usize = 1_000;

/// The tools of an agent, from the root to its folder, by name.
pub fn of_agent(root: &Directory, agent: &AgentId, folder: &Path) -> io::Result<Vec<ToolProgram>> {
    let mut tools = BTreeMap::new();
    let mut ancestors: Vec<AgentId> = agent.ancestors().collect();
    ancestors.reverse();
    add(root, folder, &mut tools);
    for id in ancestors.iter().chain([agent]) {
        if let Some(directory) = open_folder(root, id)? {
            add(&directory, folder, &mut tools);
        }
    }
    Ok(tools.into_values().collect())
}

/// Adds the tools of one folder. A tool replaces one with the same name further up.
fn add(directory: &Directory, folder: &Path, tools: &mut BTreeMap<Box<str>, ToolProgram>) {
    let path = directory.path().join(TOOLS);
    let report = |path: &Path, reason: &dyn std::fmt::Display| {
        tracing::warn!(path = %path.display(), %reason, "a tool is not used");
    };
    let (directory, names) = match directory.below(TOOLS).and_then(|directory| {
        directory.map(|directory| directory.names(MAX_TOOLS).map(|names| (directory, names))).transpose()
    }) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(error) => return report(&path, &error),
    };
    for file in names {
        let Some(name) = file.strip_suffix(".json").filter(|name| ToolManifest::is_name(name)) else {
            continue;
        };
        match tool(&directory, name, &file, folder) {
            Ok(tool) => drop(tools.insert(name.into(), tool)),
            Err(reason) => report(&path.join(&file), &reason),
        }
    }
}

fn tool(directory: &Directory, name: &str, file: &str, folder: &Path) -> Result<ToolProgram, String> {
    let text = directory.read(file, ToolManifest::MAX_BYTES as u64).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text.unwrap_or_default()).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let manifest = ToolManifest::parse(name, &text).map_err(|invalid| invalid.to_string())?;
    let program = manifest.program.unwrap_or_else(|| name.into());
    let is_file = directory.kind(&program).map_err(|error| error.to_string())? == Some(Kind::File);
    let path = directory.path().join(&*program);
    let is_executable =
        || std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if !is_file || !is_executable() {
        return Err(format!("its program {program} is not an executable file in the same folder"));
    }
    Ok(ToolProgram {
        name: name.into(),
        description: manifest.description,
        input_schema: manifest.input_schema,
        timeout: manifest.timeout,
        program: path,
        folder: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tools_are_inherited_and_links_are_rejected() {
        let path = tempfile::tempdir().unwrap();
        let write = |file: &str, content: &str, mode: u32| {
            let file = path.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        };
        let manifest =
            |text: &str| format!(r#"{{"description":"{text}","inputSchema":{{"type":"object"}}}}"#);
        for (folder, text) in [("", "root"), ("lead/", "lead"), ("lead/coder/", "coder")] {
            write(&format!("{folder}tools/greet.json"), &manifest(text), 0o644);
            write(&format!("{folder}tools/greet"), "#!/bin/sh\n", 0o755);
        }
        write("tools/plain.json", &manifest("no program"), 0o644);
        write("tools/plain", "", 0o644);
        write("lead/tools/linked.json", &manifest("a link"), 0o644);
        std::os::unix::fs::symlink("/bin/sh", path.path().join("lead/tools/linked")).unwrap();
        write("tools/root-only.json", &manifest("root"), 0o644);
        write("tools/root-only", "#!/bin/sh\n", 0o755);
        let root = Directory::open(path.path()).unwrap();
        let of = |id: &str| {
            let id = AgentId::stored(id);
            let tools = of_agent(&root, &id, &path.path().join(id.as_str())).unwrap();
            tools.into_iter().map(|tool| (tool.name, tool.description)).collect::<Vec<_>>()
        };
        assert_eq!(of("lead/coder"), [("greet".into(), "coder".into()), ("root-only".into(), "root".into())]);
        assert_eq!(of("other"), [("greet".into(), "root".into()), ("root-only".into(), "root".into())]);
    }
}
