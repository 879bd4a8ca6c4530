//! The lines of `.workplace/chat.md`, a text file through which agents exchange messages.
//!
//! Owns: the grammar of a line, the rendering of a message as lines, aliases for names that the grammar
//! forbids, and the JSON object of a message. Never: opens a file. The file side is the crate
//! `parlor-chatmd`; `docs/protocols/chatmd.md` describes the protocol.

pub mod grammar;
pub mod json;
pub mod names;
pub mod render;

/// One message of the file: its header line and its continuation lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMessage {
    pub sender: String,
    pub recipient: String,
    /// Observers in the order of the line. The grammar does not restrict their characters.
    pub broadcast: Vec<String>,
    /// Text of the header line, without white space at its ends; never empty.
    pub message: String,
    /// Text of the header line and of all continuation lines; `None` without continuation lines.
    pub body: Option<String>,
}

impl LineMessage {
    /// Returns the whole text: the body, or the text of the header line if there is no body.
    pub fn text(&self) -> &str {
        self.body.as_deref().unwrap_or(&self.message)
    }
}
