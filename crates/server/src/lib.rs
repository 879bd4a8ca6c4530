//! Listeners: HTTP and WebSocket, authentication, mounts.
