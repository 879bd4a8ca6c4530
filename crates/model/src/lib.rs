//! The nouns and the shared words of Parlor; no I/O, no async.
