//! Random and concurrent changes: the received set with the changes equals the set of a query.

use super::*;

#[test]
fn a_set_opened_during_concurrent_changes_has_no_gap_and_no_duplicate() {
    let test = Test::new();
    let mut viewers = std::thread::scope(|scope| {
        for connection in ["c1", "c2", "c3"] {
            let test = &test;
            scope.spawn(move || {
                let hold = test.hold(connection, "ben");
                for number in 0..300 {
                    let client = format!("{}", number % 7);
                    match number % 3 {
                        2 => test.leave(&hold, "x/a", update(&client, (number, 0), "")),
                        _ => {
                            test.enter(&hold, "ben", "x/a", update(&client, (number, 0), &number.to_string()))
                        }
                    }
                }
            });
        }
        (0..40).map(|_| test.viewer("ann", "x/a")).collect::<Vec<_>>()
    });
    for viewer in &mut viewers {
        test.check(viewer);
    }
}

#[test]
fn the_received_set_and_changes_equal_the_set_of_a_query() {
    let mut rng = parlor_seed::rng();
    for _ in 0..parlor_seed::cases(60) {
        run_random_changes(&mut rng);
    }
}

const NAMES: [&str; 4] = ["ann", "ben", "cat", "dan"];
const PLACES: [&str; 4] = [LOBBY, "room/attic", EVERYONE, "x/a"];

fn run_random_changes(rng: &mut parlor_seed::Rng) {
    let mut test = Test::new();
    for name in NAMES {
        let rooms = ["lobby", "attic"].into_iter().filter(|_| rng.below(2) == 0).collect::<Vec<_>>();
        test.stored.insert(user(name), facts(name, &rooms, &[]));
    }
    let mut viewers = Vec::new();
    let mut online: Vec<SubscriberId> = Vec::new();
    let mut holds: Vec<(Hold, &str)> = Vec::new();
    for step in 0..120 {
        let pick =
            |rng: &mut parlor_seed::Rng, from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
        match rng.below(12) {
            0 | 1 => viewers.push(test.viewer(pick(rng, &NAMES), pick(rng, &PLACES))),
            2 => online.push(test.online(pick(rng, &NAMES))),
            3 if !online.is_empty() => {
                test.fanout.disconnect(online.swap_remove(rng.below(online.len() as u64) as usize))
            }
            4 => drop(test.fanout.end_grace_periods(Instant::now() + Duration::from_secs(60))),
            5 => {
                let name = pick(rng, &NAMES);
                holds.push((test.hold(&format!("c{step}"), name), name));
            }
            6..=8 if !holds.is_empty() => {
                let (hold, name) = &holds[rng.below(holds.len() as u64) as usize];
                let (place, client) = (pick(rng, &PLACES), pick(rng, &NAMES));
                let change = update(client, (rng.below(120), 0), &step.to_string());
                // A connection whose members the hub has ended is refused.
                match rng.below(3) {
                    0 => test.leave(hold, place, change),
                    _ => drop(test.try_enter(hold, name, place, change)),
                }
            }
            9 if !holds.is_empty() => {
                let (hold, _) = holds.swap_remove(rng.below(holds.len() as u64) as usize);
                match rng.below(3) {
                    0 => test.change(|sets, now| sets.close(&hold, now)),
                    1 => test.change(|sets, now| sets.leave_place(&hold, &path(LOBBY), now)),
                    _ => test.lose(&hold),
                }
            }
            10 => {
                let (name, room) = (pick(rng, &NAMES), pick(rng, &["lobby", "attic"]));
                let member = MemberId::User(user(name));
                let is_added = rng.below(2) == 0;
                let rooms = &mut test.stored.get_mut(&user(name)).unwrap().rooms;
                match is_added {
                    true => rooms.insert(RoomId::stored(room)),
                    false => rooms.remove(&RoomId::stored(room)),
                };
                let change =
                    if is_added { MemberChange::Added(member) } else { MemberChange::Removed(member) };
                test.change_member(room, change);
                // A removed member receives no more items.
                let is_open = |viewer: &Viewer| {
                    let topic = match viewer.place.room() {
                        Some(room) => Destination::Room(room),
                        None => Destination::Path(viewer.place.clone()),
                    };
                    test.fanout.is_in(viewer.id, &topic)
                };
                viewers.retain(is_open);
            }
            _ => {
                let name = pick(rng, &NAMES);
                let agents = [("bot", ["lobby", "attic"])];
                let known = test.stored[&user(name)].clone();
                let rooms: Vec<&str> = known.rooms.iter().map(RoomId::as_str).collect();
                if known.agents.is_empty() && test.stored.values().all(|facts| facts.agents.is_empty()) {
                    let agents = agents.each_ref().map(|(name, rooms)| (*name, &rooms[..]));
                    test.stored.insert(user(name), facts(name, &rooms, &agents));
                    test.fanout.agent_came_online(&user(name));
                    test.load();
                } else if !known.agents.is_empty() {
                    test.stored.insert(user(name), facts(name, &rooms, &[]));
                    test.fanout.agent_went_offline(&AgentId::stored("bot"));
                }
            }
        }
        for viewer in &mut viewers {
            test.check(viewer);
        }
    }
}
