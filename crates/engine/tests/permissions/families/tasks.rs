//! Permissions of the family `tasks`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{HOSTING, READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{ChangeTask, CreateTask, RemoveTask, ReportTask, TaskChanges};
use parlor_model::query::{GetTask, ListOwnTasks, ListTasks};
use parlor_model::{AgentId, TaskId, TaskPriority, TaskStatus};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateTask(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   create_task(None), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   create_task(None), NO_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   yes  ", HOSTING, create_task(Some("coder")), TASK_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   out  ", HOSTING, create_task(Some("coder")), TASK_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?room ?bot  no    ?room ?room", HOSTING, create_task(Some("coder")), TASK_AGENT_NO_ROOM;
    }
    AnyCommand::ChangeTask(_) => {
        "who   who   ?task yes   yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   change_status(), A_TASK;
        "who   who   ?task no    yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   change_task(), A_TASK;
        "who   who   ?task yes   yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   change_task(), TASK_OF_MEMBER;
        "who   who   ?task yes   yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   change_task(), TASK_FOR_MEMBER;
        "who   who   ?task ?task ?task ?task ?task ?task ?task no    ?task who  ", WRITE,   change_status(), READY;
    }
    AnyCommand::RemoveTask(_) => {
        "who   who   ?task no    yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   remove_task(), A_TASK;
        "who   who   ?task yes   yes   yes   ?task ?task ?task no    yes   who  ", WRITE,   remove_task(), TASK_OF_MEMBER;
        "who   who   ?task ?task ?task ?task ?task ?task ?task no    ?task who  ", WRITE,   remove_task(), READY;
    }
    AnyCommand::ReportTask(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   yes  ", HOSTING, report_task(), TASK_FOR_CODER;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?task ?bot  no    ?task ?task", HOSTING, report_task(), TASK_FOR_CODER_WHO_LEFT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?task ?bot  no    ?task ?task", HOSTING, report_task(), UNASSIGNED_TASK_CODER_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?task ?bot  no    ?task ?task", HOSTING, report_task(), TASK_AGENT_IN_ROOM;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListTasks(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_tasks(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_tasks(), NO_ROOM;
    }
    AnyQuery::GetTask(_) => {
        "who   who   ?task yes   yes   yes   ?task ?task ?task no    yes   who  ", READ,    GetTask { task: task() }, A_TASK;
        "who   who   ?task ?task ?task ?task ?task ?task ?task no    ?task who  ", READ,    GetTask { task: task() }, READY;
    }
    AnyQuery::ListOwnTasks(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_own_tasks(), READY;
    }
}

fn create_task(by: Option<&str>) -> CreateTask {
    CreateTask {
        room: lobby(),
        by: by.map(AgentId::stored),
        title: "Tidy up".into(),
        description: None,
        priority: TaskPriority::Medium,
        due_at: None,
        assignee: None,
        parent: None,
    }
}

fn change_status() -> ChangeTask {
    let changes = TaskChanges { status: Some(TaskStatus::Completed), ..TaskChanges::default() };
    ChangeTask { task: task(), changes }
}

fn change_task() -> ChangeTask {
    let changes = TaskChanges {
        status: Some(TaskStatus::Completed),
        title: Some("New".into()),
        ..TaskChanges::default()
    };
    ChangeTask { task: task(), changes }
}

fn remove_task() -> RemoveTask {
    RemoveTask { task: task() }
}

fn report_task() -> ReportTask {
    let (agent, status) = (AgentId::stored("coder"), TaskStatus::Completed);
    ReportTask { task: task(), agent, status, result: None }
}

fn list_tasks() -> ListTasks {
    ListTasks { room: lobby() }
}

fn list_own_tasks() -> ListOwnTasks {
    ListOwnTasks { limit: 10, offset: 0 }
}

fn task() -> TaskId {
    TaskId::stored("task")
}
