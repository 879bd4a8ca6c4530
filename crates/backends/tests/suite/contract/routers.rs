//! Routers: models that choose the agents that answer.

use super::each;
use crate::fixtures::{put_room, room, room_id, user_id};
use parlor_engine::changes::{AccountChange, Change, ModelChange};
use parlor_model::{ModelAccess, ModelApi, Router, RouterId, SealedKey, Time};
use std::sync::Arc;

pub fn router(id: &str, by: &str, shared: bool, created: i64) -> Router {
    Router {
        id: RouterId::stored(id),
        name: format!("Router {id}").into(),
        shared,
        model: ModelAccess {
            api: ModelApi::Anthropic,
            base_url: "https://model.example/".into(),
            model: "small".into(),
            key: Some(SealedKey([1, 2, 3].into())),
        },
        created_by: user_id(by),
        created_at: Time(created),
        updated_at: Time(created),
    }
}

#[test]
fn a_user_sees_own_and_shared_routers_oldest_first() {
    each(|ports| {
        let (own, shared, other) =
            (router("b", "ann", false, 2), router("a", "bob", true, 2), router("c", "bob", false, 1));
        for router in [&own, &shared, &other] {
            ports.change(vec![Change::Model(ModelChange::PutRouter(Arc::new(router.clone())))]);
        }
        assert_eq!(ports.read(|s| s.routers(&user_id("ann"))), [shared.clone(), own.clone()]);
        assert_eq!(ports.read(|s| s.routers(&user_id("bob"))), [other, shared]);
        let mut changed = own.clone();
        (changed.model.key, changed.model.api, changed.name) = (None, ModelApi::OpenAi, "other".into());
        ports.change(vec![Change::Model(ModelChange::PutRouter(Arc::new(changed.clone())))]);
        assert_eq!(ports.read(|s| s.router(&own.id)), Some(changed));
        assert_eq!(ports.read(|s| s.router(&RouterId::stored("never"))), None);
    });
}

#[test]
fn removing_a_router_unsets_it_in_its_rooms() {
    each(|ports| {
        // `put_room` of the fixtures sets this router.
        let picker = router("picker", "bob", true, 1);
        let put = Change::Model(ModelChange::PutRouter(Arc::new(picker.clone())));
        let of_room = |ports: &mut super::Ports| ports.read(|s| s.room(&room_id("r"))).unwrap().router;
        ports.change(vec![put.clone(), put_room("r")]);
        assert_eq!(of_room(ports), room("r").router);
        ports.change(vec![Change::Model(ModelChange::RemoveRouter(picker.id.clone()))]);
        assert_eq!((of_room(ports), ports.read(|s| s.router(&picker.id))), (None, None));
        ports.change(vec![put, put_room("r"), Change::Account(AccountChange::RemoveUser(user_id("bob")))]);
        assert_eq!((of_room(ports), ports.read(|s| s.router(&picker.id))), (None, None));
    });
}
