//! The verbs: pipeline, rules, routing, fan-out; defines the ports.
