//! Programs in `tools` folders: inherited, called over `/ws/broker`, and called by the program of a run.

use super::{Root, broker};
use crate::scene::PARLOR;
use parlor_testkit::broker::Broker;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

impl Root {
    /// Writes a tool, whose program is this shell script.
    fn write_tool(&self, folder: &str, name: &str, description: &str, script: &str) -> &Self {
        let manifest = json!({ "description": description, "inputSchema": { "type": "object" } });
        let program = format!("{folder}tools/{name}");
        self.write(&format!("{program}.json"), &manifest.to_string());
        self.write(&program, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(&program), Permissions::from_mode(0o755)).unwrap();
        self
    }
}

/// The programs of an agent, with their descriptions.
async fn programs(broker: &mut Broker, agent: &str) -> Vec<(String, String)> {
    let listed = broker.ask(json!({ "type": "agent.tools.list", "agentId": agent })).await.unwrap();
    let built_in = ["ask-user", "list-agents", "search-messages", "send-message"];
    let text = |tool: &Value, field: &str| tool[field].as_str().unwrap().to_owned();
    let tools = listed["tools"].as_array().unwrap().iter();
    let tools = tools.map(|tool| (text(tool, "name"), text(tool, "description")));
    tools.filter(|(name, _)| !built_in.contains(&&**name)).collect()
}

async fn call(broker: &mut Broker, kind: &str, agent: &str, tool: &str, input: Value) -> Value {
    let frame =
        json!({ "type": kind, "agentId": agent, "toolName": tool, "input": input, "sessionId": "main" });
    broker.ask(frame).await.unwrap()
}

/// Prints the input, the agent and the working directory, and the number of agents that its token can list.
fn report() -> String {
    let listed = format!("'{PARLOR}' tool call list-agents");
    format!(
        "read -r input; listed=$({listed}) || exit 3\n\
         printf '{{\"input\":%s,\"agent\":\"%s\",\"directory\":\"%s\",\"listed\":%s}}' \
         \"$input\" \"$TOOL_AGENT_ID\" \"$PWD\" \"$listed\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_inherited_and_called_over_the_broker() {
    let root = Root::new();
    root.write_agent("lead", json!({})).write_agent("lead/coder", json!({})).write_agent("other", json!({}));
    root.write_tool("", "report", "of the root", &report());
    root.write_tool("", "fail", "fails", "echo 'no licence' >&2; exit 4");
    root.write_tool("lead/", "greet", "of the lead", "echo '\"lead\"'");
    root.write_tool("lead/coder/", "greet", "of the coder", "echo '\"coder\"'");
    let scene = root.start().await;
    let mut broker = broker(&scene).await;
    let named = |tools: &[(&str, &str)]| {
        tools.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<Vec<_>>()
    };
    for (agent, greet) in
        [("other", None), ("lead", Some("of the lead")), ("lead/coder", Some("of the coder"))]
    {
        let greet = greet.map(|text| ("greet", text));
        let expected: Vec<_> =
            [("fail", "fails")].into_iter().chain(greet).chain([("report", "of the root")]).collect();
        assert_eq!(programs(&mut broker, agent).await, named(&expected), "{agent}");
    }
    let result =
        call(&mut broker, "agent.tool.execute", "lead/coder", "report", json!({ "city": "Rome" })).await;
    assert_eq!(result["result"]["isError"], false, "{result}");
    let data = &result["result"]["output"]["data"];
    let folder = fs::canonicalize(root.path("lead/coder")).unwrap();
    assert_eq!(
        json!([data["input"], data["agent"], data["directory"]]),
        json!([{ "city": "Rome" }, "lead/coder", folder.to_str().unwrap()])
    );
    assert_eq!(data["listed"]["ok"], true, "its token permits the tools of the agent: {data}");

    let result = call(&mut broker, "agent.tools.execute", "lead/coder", "greet", json!({})).await;
    assert_eq!(result["result"]["output"]["data"], "coder", "the nearer program: {result}");
    let result = call(&mut broker, "agent.tool.execute", "other", "fail", json!({})).await;
    let error = &result["result"]["output"]["error"];
    assert_eq!(json!([result["result"]["isError"], error["code"]]), json!([true, "failed"]), "{result}");
    let result = call(&mut broker, "agent.tool.execute", "other", "greet", json!({})).await;
    assert_eq!(result["error"], "Tool not found: greet (agent: other)");

    // A program that is added while the hub runs.
    root.write_tool("other/", "greet", "added", "echo 7");
    assert_eq!(
        programs(&mut broker, "other").await,
        named(&[("fail", "fails"), ("greet", "added"), ("report", "of the root")])
    );
    let result = call(&mut broker, "agent.tool.execute", "other", "greet", json!({})).await;
    assert_eq!(result["result"]["output"]["data"], 7, "{result}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_of_a_run_calls_an_inherited_program() {
    let root = Root::new();
    let script = format!("'{PARLOR}' tool call report --input '{{\"n\":1}}'");
    let host = json!({ "kind": "command", "command": ["sh", "-c", script] });
    root.write_agent("lead", json!({})).write_agent("lead/coder", json!({ "parlor": host }));
    root.write_tool("", "report", "of the root", &report());
    let scene = root.start().await;
    let mut broker = broker(&scene).await;
    let start = json!({ "type": "session.start", "agent": "lead/coder", "id": "main", "prompt": "go" });
    let started = broker.ask(start).await.unwrap();
    assert_eq!(started["type"], "session.started", "{started}");
    let result = broker.wait_for_type("session.result").await.unwrap();
    let output: Value = serde_json::from_str(result["text"].as_str().unwrap().trim()).unwrap();
    let data = &output["data"];
    assert_eq!(
        json!([output["ok"], data["input"], data["agent"], data["listed"]["ok"]]),
        json!([true, { "n": 1 }, "lead/coder", true]),
        "{output}"
    );
    scene.ends_well().await;
}
