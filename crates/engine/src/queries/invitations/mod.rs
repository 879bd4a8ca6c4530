//! Queries about invitations and pairing codes.
