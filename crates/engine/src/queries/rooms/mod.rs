//! Queries about rooms, members and room preferences.

mod get_room;
mod get_workspace_root;
mod list_members;
mod list_project_roots;
mod list_rooms;
mod list_rooms_with_agent;
mod may_follow_room;
mod may_read_rooms;
mod member_page;
