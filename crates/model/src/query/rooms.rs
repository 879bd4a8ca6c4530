//! Queries about rooms, members and room preferences, and their answers.
