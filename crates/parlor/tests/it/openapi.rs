//! `/api/openapi.json` is true: every documented status of every operation was seen in its form, and nothing
//! else ever was.

mod document;
mod files;
mod forms;
mod fuzz;
mod refusals;
mod successes;
mod tour;

use std::collections::BTreeSet;

use crate::scene::Scene;
use document::Document;
use tour::Tour;

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_status_is_seen_in_its_form_and_no_other() {
    let scene = Scene::with(&[("PARLOR_PROJECT_ROOTS", successes::FOLDER)]).await;
    let tour = Tour::new(Document::of(scene.url()).await);
    let slow = refusals::bodies_that_stop(&tour, &scene.admin);
    let slow_files = files::that_stop(&tour, &scene.admin);
    let (_, _, ()) = tokio::join!(slow, slow_files, async {
        successes::all(&tour, &scene).await;
        files::all(&tour, &scene).await;
        refusals::all(&tour, &scene).await;
    });
    refusals::too_often(&tour).await;
    refusals::without_a_store(&tour, &scene).await;
    let documented: BTreeSet<(String, u16)> = tour.document.statuses().collect();
    let never: Vec<_> = documented.difference(&tour.seen()).cloned().collect();
    assert!(
        never.is_empty(),
        "documented, but never seen; provoke it in `openapi/` or leave it out: {never:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_well_formed() {
    let scene = Scene::start().await;
    let document = Document::of(scene.url()).await;
    assert_eq!(document.root["openapi"], "3.1.0");
    // As published at https://spec.openapis.org/oas/3.1/schema/2022-10-07, under Apache-2.0. It leaves out the forms.
    let published = include_str!("../fixtures/openapi-3.1.json");
    let published = jsonschema::draft202012::new(&serde_json::from_str(published).unwrap()).unwrap();
    let flaws = |validator: &jsonschema::Validator, part| {
        let flaws = validator.iter_errors(part).map(|flaw| format!("{flaw} at {}", flaw.instance_path()));
        flaws.collect::<Vec<_>>()
    };
    assert_eq!(flaws(&published, &document.root), [""; 0]);
    for (name, form) in document.root["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::validate(form).is_ok(), "{name}: {form}");
    }
    let ids =
        document.operations.iter().map(|operation| operation.described["operationId"].as_str().unwrap());
    let unique: BTreeSet<&str> = ids.collect();
    assert_eq!(unique.len(), document.operations.len(), "each operation has a name of its own");
    for operation in &document.operations {
        assert!(operation.described["summary"].as_str().is_some_and(|words| !words.is_empty()));
        for requirement in operation.described["security"].as_array().unwrap() {
            for scheme in requirement.as_object().unwrap().keys() {
                assert!(document.root["components"]["securitySchemes"][scheme].is_object(), "{scheme}");
            }
        }
    }
}
