//! Development only: fault injection, process harness, clients.
