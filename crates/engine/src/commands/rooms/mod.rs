//! Commands on rooms, members and room preferences.
