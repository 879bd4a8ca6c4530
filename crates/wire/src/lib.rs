//! The doors as pure translations between frames and the model.
