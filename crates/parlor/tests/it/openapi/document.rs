//! Parses the OpenAPI document of a hub and validates responses against the schemas in it.

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
    /// Method and path, such as `GET /api/rooms/{id}`.
    pub name: String,
    pub method: Method,
    pub path: String,
    pub definition: Value,
    /// Schema of the JSON request body.
    pub body: Option<Value>,
    responses: BTreeMap<u16, Validator>,
}

impl Document {
    pub async fn of(url: &str) -> Self {
        let root = RestClient::outsider(url).get("/api/openapi.json").await.unwrap().body;
        let mut operations = Vec::new();
        for (path, item) in root["paths"].as_object().unwrap() {
            for (method, definition) in item.as_object().unwrap() {
                operations.push(Operation::read(&root, path, method, definition));
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
        let statuses_of = |operation: &Operation| {
            let name = operation.name.clone();
            operation.responses.keys().map(move |status| (name.clone(), *status)).collect::<Vec<_>>()
        };
        self.operations.iter().flat_map(statuses_of)
    }
}

impl Operation {
    fn read(root: &Value, path: &str, method: &str, definition: &Value) -> Self {
        let method = method.to_uppercase();
        let schema = |content: &Value| resolve(root, &content["content"]["application/json"]["schema"], 0);
        let validator = |(status, response): (&String, &Value)| {
            let options = jsonschema::draft202012::options().should_validate_formats(true);
            (status.parse().unwrap(), options.build(&deny_additional_properties(schema(response))).unwrap())
        };
        Self {
            name: format!("{method} {path}"),
            method: method.parse().unwrap(),
            path: path.to_owned(),
            body: definition
                .get("requestBody")
                .filter(|body| body["content"].get("application/json").is_some())
                .map(schema),
            responses: definition["responses"].as_object().unwrap().iter().map(validator).collect(),
            definition: definition.clone(),
        }
    }

    pub fn documents(&self, status: u16) -> bool {
        self.responses.contains_key(&status)
    }

    pub fn requires_auth(&self) -> bool {
        self.definition["security"]
            .as_array()
            .unwrap()
            .iter()
            .any(|requirement| requirement.get("bearer").is_some())
    }

    pub fn parameters(&self, place: &str) -> Vec<&Value> {
        let all = self.definition["parameters"].as_array();
        all.into_iter().flatten().filter(|parameter| parameter["in"] == place).collect()
    }

    /// The path with its placeholders replaced by `ids`, in order.
    pub fn path_with(&self, ids: &[&str]) -> String {
        let mut ids = ids.iter();
        let fill = |segment: &str| match segment.starts_with('{') {
            true => (*ids.next().unwrap_or_else(|| panic!("{} needs more ids", self.name))).to_owned(),
            false => segment.to_owned(),
        };
        self.path.split('/').map(fill).collect::<Vec<_>>().join("/")
    }

    /// Panics unless the status is documented and the body matches its schema. `request` describes the
    /// request in the panic message.
    #[track_caller]
    pub fn check(&self, response: &RestResponse, request: &str) {
        let status = response.status.as_u16();
        let Some(schema) = self.responses.get(&status) else {
            panic!("{} does not document {status}\n{request}\n{response:?}", self.name)
        };
        let errors: Vec<String> = schema.iter_errors(&response.body).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{} {status}: {errors:?}\n{request}\n{response:?}", self.name);
    }
}

/// Replaces every `$ref` by the schema it refers to, and merges every `allOf` into one object schema.
fn resolve(root: &Value, schema: &Value, depth: usize) -> Value {
    assert!(depth < 32, "recursive schema: {schema:.200}");
    let deeper = |schema: &Value| resolve(root, schema, depth + 1);
    match schema {
        Value::Object(parts) => {
            if let Some(reference) = parts.get("$ref") {
                let place = reference.as_str().and_then(|reference| reference.strip_prefix('#')).unwrap();
                return deeper(root.pointer(place).unwrap_or_else(|| panic!("{place} does not exist")));
            }
            let parts: Map<_, _> = parts.iter().map(|(name, part)| (name.clone(), deeper(part))).collect();
            match parts.get("allOf").and_then(Value::as_array) {
                Some(parts_of_all) => merge_all_of(parts_of_all),
                None => Value::Object(parts),
            }
        }
        Value::Array(parts) => parts.iter().map(deeper).collect(),
        other => other.clone(),
    }
}

fn merge_all_of(schemas: &[Value]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for schema in schemas {
        properties.extend(schema["properties"].as_object().unwrap().clone());
        required.extend(schema["required"].as_array().into_iter().flatten().cloned());
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Forbids additional properties. The document allows them so that fields can be added later, but in these
/// tests a response must not contain an undocumented field.
fn deny_additional_properties(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(parts) => {
            for part in parts.values_mut() {
                *part = deny_additional_properties(part.take());
            }
            if parts.contains_key("properties") {
                parts.insert("additionalProperties".into(), json!(false));
            }
        }
        Value::Array(parts) => {
            parts.iter_mut().for_each(|part| *part = deny_additional_properties(part.take()))
        }
        _ => {}
    }
    schema
}
