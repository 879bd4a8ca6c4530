//! Schemas of the generic answers. The derived ones would have the same name for every type of data.

use super::{One, Page, PageEnd, Pagination};
use std::any::type_name;
use std::borrow::Cow;
use utoipa::openapi::schema::{Array, Object};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

type Schemas = Vec<(String, RefOr<Schema>)>;

/// Name of an answer with data of this type.
fn name_of<T>(answer: &str) -> Cow<'static, str> {
    let data = type_name::<T>();
    let list = if data.contains("::Vec<") { "List" } else { "" };
    let data = data.rsplit("::").next().unwrap_or_default();
    let data: String = data.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{answer}{list}Of{data}").into()
}

/// Adds the schema of a type and returns a reference to it.
fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn add<T: ToSchema>(schemas: &mut Schemas) {
    schemas.push((T::name().into(), T::schema()));
    T::schemas(schemas);
}

impl<T: ToSchema> PartialSchema for One<T> {
    fn schema() -> RefOr<Schema> {
        Object::builder().property("data", T::schema()).required("data").build().into()
    }
}

impl<T: ToSchema> ToSchema for One<T> {
    fn name() -> Cow<'static, str> {
        name_of::<T>("Jaibber")
    }

    fn schemas(schemas: &mut Schemas) {
        T::schemas(schemas);
    }
}

impl<T: ToSchema> PartialSchema for Page<'_, T> {
    fn schema() -> RefOr<Schema> {
        let object = Object::builder().property("data", Array::new(T::schema())).required("data");
        let object = object.property("pagination", reference::<Pagination<'_>>()).required("pagination");
        object.property("meta", reference::<PageEnd<'_>>()).required("meta").build().into()
    }
}

impl<T: ToSchema> ToSchema for Page<'_, T> {
    fn name() -> Cow<'static, str> {
        name_of::<T>("JaibberPage")
    }

    fn schemas(schemas: &mut Schemas) {
        T::schemas(schemas);
        add::<Pagination<'_>>(schemas);
        add::<PageEnd<'_>>(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AgentRegistration, ProjectFile};
    use super::*;

    #[test]
    fn answers_with_different_data_have_different_names() {
        assert_eq!(One::<ProjectFile>::name(), "JaibberOfProjectFile");
        assert_eq!(One::<Vec<ProjectFile>>::name(), "JaibberListOfProjectFile");
        assert_eq!(One::<Vec<AgentRegistration>>::name(), "JaibberListOfAgentRegistration");
        assert_eq!(Page::<ProjectFile>::name(), "JaibberPageOfProjectFile");
    }
}
