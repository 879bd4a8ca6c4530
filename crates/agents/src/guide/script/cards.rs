//! The run events of the larger cards: plan, questions, usage and changes.

use parlor_model::{
    ChangeReport, ChangedFile, Choice, ContextUsage, Plan, PlanState, PlanStep, Question, Questions,
    RunEvent, StepState, Usage, UsageReport,
};
use serde_json::{Value, json};

pub fn plan(state: PlanState, states: [StepState; 4]) -> RunEvent {
    let steps = [
        ("Put the kettle on", Some("Fresh water, for two cups.")),
        ("Put the leaves in the pot", Some("One spoon for each cup.")),
        ("Wait three minutes", None),
        ("Add milk", Some("Only if someone wants it.")),
    ];
    let step = |((title, description), state): ((&str, Option<&str>), StepState)| PlanStep {
        title: title.into(),
        description: description.map(Into::into),
        state,
    };
    RunEvent::Plan(Plan {
        summary: "Make a cup of tea".into(),
        state,
        steps: steps.into_iter().zip(states).map(step).collect(),
        text: Some("## Make a cup of tea\n\nBoil, steep, pour. Milk is optional.".into()),
    })
}

pub fn questions(reply: &str) -> RunEvent {
    let choice = |label: &str, description: &str, preview: Option<&str>| Choice {
        label: label.into(),
        description: Some(description.into()),
        preview: preview.map(Into::into),
    };
    RunEvent::Questions(Questions {
        id: format!("{reply}-q").into(),
        questions: vec![
            Question {
                text: "What would you like to drink?".into(),
                header: "Drink".into(),
                options: vec![
                    choice(
                        "Tea",
                        "Already made",
                        Some("  ( (\n   ) )\n .______.\n |      |]\n \\      /\n  `----'"),
                    ),
                    choice("Coffee", "For a long evening", None),
                    choice("Water", "The fern's favourite", None),
                ],
                several: false,
            },
            Question {
                text: "Which biscuits? Choose as many as you like.".into(),
                header: "Biscuits".into(),
                options: vec![
                    choice("Ginger", "Three left", None),
                    choice("Chocolate", "Three left", None),
                    choice("Oat", "The last one", None),
                ],
                several: true,
            },
        ],
    })
}

pub fn usage() -> RunEvent {
    RunEvent::Usage(UsageReport {
        spent: Some(Usage { input_tokens: 1_200, output_tokens: 340, cost: Some(5_100) }),
        context: Some(ContextUsage {
            stage: "post".into(),
            messages: 8,
            characters: 4_600,
            estimated_tokens: 1_150,
            token_limit: Some(200_000),
            prompt_tokens: Some(1_200),
            completion_tokens: Some(340),
            compressed: false,
            summaries: 0,
        }),
    })
}

const RECIPE: &str =
    "@@ -1,3 +1,3 @@\n # Tea\n-Steep for five minutes.\n+Steep for three minutes.\n Serve hot.";
const TIN: &str = "@@ -0,0 +1 @@\n+seven biscuits";

pub fn changes() -> RunEvent {
    let file = |path: &str, summary: &str, diff: &str| ChangedFile {
        path: path.into(),
        summary: summary.into(),
        diff: Some(diff.into()),
    };
    RunEvent::Changes(ChangeReport {
        files: vec![file("recipes/tea.md", "Modified", RECIPE), file("pantry/tin.txt", "Added", TIN)],
        left_out: 0,
    })
}

/// The changes of [`changes`] as a workspace status, which AgentIM clients show.
pub fn workspace() -> Value {
    json!({
        "branch": "tea-time",
        "changedFiles": [
            { "path": "recipes/tea.md", "status": "modified", "additions": 1, "deletions": 1, "diff": RECIPE },
            { "path": "pantry/tin.txt", "status": "added", "additions": 1, "deletions": 0, "diff": TIN },
        ],
        "summary": { "filesChanged": 2, "additions": 2, "deletions": 1 },
        "recentCommits": [{ "hash": "7ea7ea7", "message": "tea: Buy biscuits." }],
    })
}
