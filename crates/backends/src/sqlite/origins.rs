//! Columns `origin` and `answer` of a message: conversion between JSON and model types.

use parlor_model::{Answer, Origin, Payload, UserId};
use std::borrow::Cow;

pub fn origin(origin: &Origin) -> String {
    let Origin { connection, client, id, fields } = origin;
    let parts = (connection, client, id, fields.as_ref().map(|fields| &*fields.0));
    serde_json::to_string(&parts).expect("strings always serialise to JSON")
}

pub fn read_origin(json: &str) -> Option<Box<Origin>> {
    type Parts<'a> = (Box<str>, Option<Box<str>>, Box<str>, Option<Cow<'a, str>>);
    let (connection, client, id, fields): Parts<'_> = serde_json::from_str(json).ok()?;
    let fields = fields.map(|fields| Payload(fields.into()));
    Some(Box::new(Origin { connection, client, id, fields }))
}

pub fn answer(answer: &Answer) -> String {
    let Answer { owner, depth, chain } = answer;
    serde_json::to_string(&(owner.as_str(), depth, chain))
        .expect("strings and numbers always serialise to JSON")
}

pub fn read_answer(json: &str) -> Option<Box<Answer>> {
    let (owner, depth, chain): (Cow<'_, str>, u32, Vec<Box<str>>) = serde_json::from_str(json).ok()?;
    Some(Box::new(Answer { owner: UserId::stored(&*owner), depth, chain }))
}
