//! Commands on sign-ins and second factors.
