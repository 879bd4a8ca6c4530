//! Tests of the file side of chat.md, with real files.

mod appending;
mod archiving;
mod cases;
mod cursors;
mod following;
mod hostile;
mod replacing;
mod scene;
mod sequences;
mod status;
mod watching;
mod writers;
