//! Commands on invitations and pairing codes, and their receipts.
