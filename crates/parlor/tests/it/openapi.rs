//! Checks `/api/openapi.json` against a running hub: every documented status of every operation is provoked
//! and matches its schema, and no undocumented status or field occurs.

mod document;
mod files;
mod forms;
mod fuzz;
mod projects;
mod refusals;
mod successes;
mod tour;

use std::collections::BTreeSet;

use crate::scene::Scene;
use document::Document;
use tour::Tour;

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_status_occurs_with_its_schema_and_no_other() {
    let scene = Scene::with(&[("PARLOR_PROJECT_ROOTS", successes::FOLDER)]).await;
    let tour = Tour::new(Document::of(scene.url()).await);
    let slow = refusals::stalled_bodies(&tour, &scene.admin);
    let slow_files = files::stalled_uploads(&tour, &scene.admin);
    let (_, _, ()) = tokio::join!(slow, slow_files, async {
        successes::all(&tour, &scene).await;
        projects::all(&tour, &scene).await;
        files::all(&tour, &scene).await;
        refusals::all(&tour, &scene).await;
    });
    refusals::rate_limited(&tour).await;
    refusals::without_a_store(&tour, &scene).await;
    let documented: BTreeSet<(String, u16)> = tour.document.statuses().collect();
    let missing: Vec<_> = documented.difference(&tour.seen()).cloned().collect();
    assert!(
        missing.is_empty(),
        "documented, but never observed; provoke it in `openapi/` or remove it from the document: {missing:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_well_formed() {
    let scene = Scene::start().await;
    let document = Document::of(scene.url()).await;
    assert_eq!(document.root["openapi"], "3.1.0");
    // As published at https://spec.openapis.org/oas/3.1/schema/2022-10-07, under Apache-2.0. It does not
    // validate the JSON schemas inside the document, which are checked below.
    let published = include_str!("../fixtures/openapi-3.1.json");
    let published = jsonschema::draft202012::new(&serde_json::from_str(published).unwrap()).unwrap();
    let errors = |validator: &jsonschema::Validator, part| {
        let errors = validator.iter_errors(part).map(|error| format!("{error} at {}", error.instance_path()));
        errors.collect::<Vec<_>>()
    };
    assert_eq!(errors(&published, &document.root), [""; 0]);
    for (name, schema) in document.root["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::validate(schema).is_ok(), "{name}: {schema}");
    }
    let ids =
        document.operations.iter().map(|operation| operation.definition["operationId"].as_str().unwrap());
    let unique: BTreeSet<&str> = ids.collect();
    assert_eq!(unique.len(), document.operations.len(), "operation ids are unique");
    for operation in &document.operations {
        assert!(operation.definition["summary"].as_str().is_some_and(|text| !text.is_empty()));
        for requirement in operation.definition["security"].as_array().unwrap() {
            for scheme in requirement.as_object().unwrap().keys() {
                assert!(document.root["components"]["securitySchemes"][scheme].is_object(), "{scheme}");
            }
        }
    }
}
