//! Commands on sign-ins and second factors, and their receipts.
