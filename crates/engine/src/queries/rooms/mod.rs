//! Queries about rooms, members and room preferences.
