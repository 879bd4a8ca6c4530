//! Commands on routers.
