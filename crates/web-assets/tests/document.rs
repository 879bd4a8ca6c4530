//! The embedded document satisfies its content security policy, with and without an npm build.

fn document() -> String {
    String::from_utf8(parlor_web_assets::index().bytes.into_owned()).unwrap()
}

#[test]
fn the_document_has_no_inline_scripts_styles_or_event_handlers() {
    let document = document();
    for tag in document.split('<').skip(1).filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag) {
        assert!(!tag.starts_with("style"), "{tag}");
        assert!(!tag.starts_with("script") || tag.contains("src=\"/app/assets/"), "{tag}");
        for attribute in tag.split_whitespace().skip(1) {
            let name = attribute.split('=').next().unwrap_or_default();
            assert!(name != "style" && !(name.starts_with("on") && attribute.contains('=')), "{tag}");
        }
    }
}

#[test]
fn the_document_loads_only_embedded_files() {
    let document = document();
    for (attribute, until) in [("src=\"", '"'), ("<link rel=\"stylesheet\" crossorigin href=\"", '"')] {
        for address in document.split(attribute).skip(1).filter_map(|rest| rest.split(until).next()) {
            let path = address.strip_prefix('/').unwrap_or_else(|| panic!("{address} is not on this origin"));
            let asset = parlor_web_assets::find(path).unwrap_or_else(|| panic!("{path} is not embedded"));
            assert!(asset.brotli.is_some_and(|form| form.len() < asset.bytes.len()), "{path}");
            assert!(asset.gzip.is_some_and(|form| form.len() < asset.bytes.len()), "{path}");
        }
    }
}

#[test]
fn the_initial_javascript_is_small() {
    let document = document();
    let first = document.split("src=\"/").chain(document.split("rel=\"modulepreload\" crossorigin href=\"/"));
    let paths =
        first.filter(|rest| rest.starts_with("app/assets/")).filter_map(|rest| rest.split('"').next());
    let bytes: usize =
        paths.filter_map(parlor_web_assets::find).filter_map(|asset| asset.gzip).map(|form| form.len()).sum();
    assert!(bytes < 300_000, "{bytes} bytes of JavaScript before the first paint");
}
