//! Queries about invitations and pairing codes, and their answers.
