//! Reads the document of a hub, and says whether an answer is of the form that it promises.

use std::collections::BTreeMap;

use jsonschema::Validator;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::{Map, Value, json};

pub struct Document {
    pub root: Value,
    pub operations: Vec<Operation>,
}

pub struct Operation {
    /// `GET /api/rooms/{id}`
    pub name: String,
    pub method: Method,
    pub path: String,
    pub described: Value,
    /// The form of the body that it takes.
    pub body: Option<Value>,
    answers: BTreeMap<u16, Validator>,
}

impl Document {
    pub async fn of(url: &str) -> Self {
        let root = RestClient::outsider(url).get("/api/openapi.json").await.unwrap().body;
        let mut operations = Vec::new();
        for (path, item) in root["paths"].as_object().unwrap() {
            for (method, described) in item.as_object().unwrap() {
                operations.push(Operation::read(&root, path, method, described));
            }
        }
        Self { root, operations }
    }

    #[track_caller]
    pub fn operation(&self, name: &str) -> &Operation {
        let found = self.operations.iter().find(|operation| operation.name == name);
        found.unwrap_or_else(|| panic!("{name} is not documented"))
    }

    pub fn statuses(&self) -> impl Iterator<Item = (String, u16)> {
        let of = |operation: &Operation| {
            let name = operation.name.clone();
            operation.answers.keys().map(move |status| (name.clone(), *status)).collect::<Vec<_>>()
        };
        self.operations.iter().flat_map(of)
    }
}

impl Operation {
    fn read(root: &Value, path: &str, method: &str, described: &Value) -> Self {
        let method = method.to_uppercase();
        let form = |content: &Value| whole(root, &content["content"]["application/json"]["schema"], 0);
        let answer = |(status, response): (&String, &Value)| {
            let options = jsonschema::draft202012::options().should_validate_formats(true);
            (status.parse().unwrap(), options.build(&closed(form(response))).unwrap())
        };
        Self {
            name: format!("{method} {path}"),
            method: method.parse().unwrap(),
            path: path.to_owned(),
            body: described
                .get("requestBody")
                .filter(|body| body["content"].get("application/json").is_some())
                .map(form),
            answers: described["responses"].as_object().unwrap().iter().map(answer).collect(),
            described: described.clone(),
        }
    }

    pub fn documents(&self, status: u16) -> bool {
        self.answers.contains_key(&status)
    }

    pub fn is_signed(&self) -> bool {
        self.described["security"].as_array().unwrap().iter().any(|way| way.get("bearer").is_some())
    }

    pub fn parameters(&self, place: &str) -> Vec<&Value> {
        let all = self.described["parameters"].as_array();
        all.into_iter().flatten().filter(|parameter| parameter["in"] == place).collect()
    }

    /// The path with these ids in it, in their order.
    pub fn path_with(&self, ids: &[&str]) -> String {
        let mut ids = ids.iter();
        let fill = |segment: &str| match segment.starts_with('{') {
            true => (*ids.next().unwrap_or_else(|| panic!("{} needs more ids", self.name))).to_owned(),
            false => segment.to_owned(),
        };
        self.path.split('/').map(fill).collect::<Vec<_>>().join("/")
    }

    #[track_caller]
    pub fn check(&self, answer: &RestResponse, asked: &str) {
        let status = answer.status.as_u16();
        let Some(form) = self.answers.get(&status) else {
            panic!("{} does not document {status}\n{asked}\n{answer:?}", self.name)
        };
        let flaws: Vec<String> = form.iter_errors(&answer.body).map(|flaw| flaw.to_string()).collect();
        assert!(flaws.is_empty(), "{} {status}: {flaws:?}\n{asked}\n{answer:?}", self.name);
    }
}

/// The form with everything it refers to in its place, and what it is put together from as one.
fn whole(root: &Value, form: &Value, depth: usize) -> Value {
    assert!(depth < 32, "a form contains itself: {form:.200}");
    let deeper = |form: &Value| whole(root, form, depth + 1);
    match form {
        Value::Object(parts) => {
            if let Some(reference) = parts.get("$ref") {
                let place = reference.as_str().and_then(|reference| reference.strip_prefix('#')).unwrap();
                return deeper(root.pointer(place).unwrap_or_else(|| panic!("{place} is nowhere")));
            }
            let parts: Map<_, _> = parts.iter().map(|(name, part)| (name.clone(), deeper(part))).collect();
            match parts.get("allOf").and_then(Value::as_array) {
                Some(together) => united(together),
                None => Value::Object(parts),
            }
        }
        Value::Array(parts) => parts.iter().map(deeper).collect(),
        other => other.clone(),
    }
}

fn united(forms: &[Value]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for form in forms {
        properties.extend(form["properties"].as_object().unwrap().clone());
        required.extend(form["required"].as_array().into_iter().flatten().cloned());
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The document leaves room for more fields, so that they can be added; here, what it does not name is a lie.
fn closed(mut form: Value) -> Value {
    match &mut form {
        Value::Object(parts) => {
            for part in parts.values_mut() {
                *part = closed(part.take());
            }
            if parts.contains_key("properties") {
                parts.insert("additionalProperties".into(), json!(false));
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| *part = closed(part.take())),
        _ => {}
    }
    form
}
