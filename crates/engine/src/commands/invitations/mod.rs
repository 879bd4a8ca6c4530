//! Commands on invitations and pairing codes.
