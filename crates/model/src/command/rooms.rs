//! Commands on rooms, members and room preferences, and their receipts.
