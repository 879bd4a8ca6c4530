//! Tests that acknowledged messages are durable: kills and power losses at random times, under load.

use parlor_testkit::crash::{CrashPlan, CrashReport};
use parlor_testkit::faultfs::FaultyDirectory;
use parlor_testkit::hub::HubCommand;
use parlor_testkit::oracle::Violation;

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_at_random_times_has_every_acknowledged_message_once_and_in_order() {
    let data = tempfile::tempdir().unwrap();
    let report = CrashPlan::new(PARLOR, data.path(), 25).run().await.unwrap();
    assert_nothing_lost(&report, 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_loss_does_not_lose_acknowledged_messages() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let plan = CrashPlan::new(PARLOR, &directory.file("data"), 12).on(&directory.disk);
    let report = plan.run().await.unwrap();
    assert_nothing_lost(&report, 12);
    assert!(directory.disk.counters().fsyncs > 12, "the hub must sync: {:?}", directory.disk.counters());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_loss_right_after_the_first_start_does_not_invalidate_sign_ins() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let command = HubCommand::process(PARLOR, &directory.file("data"));
    let mut hub = command.start().await.unwrap();
    let admin = hub.admin().await.unwrap();
    hub.crash().await.unwrap();
    directory.disk.drop_unsynced();
    let hub = command.start().await.unwrap();
    let answer = admin.at(hub.url()).get("/api/rooms").await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Control experiment: proves that the power-loss test above detects a hub that does not sync.
#[tokio::test(flavor = "multi_thread")]
async fn a_power_loss_loses_acknowledged_messages_of_a_hub_that_does_not_sync() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut plan = CrashPlan::new(PARLOR, &directory.file("data"), 3).on(&directory.disk);
    plan.hub = plan.hub.env("PARLOR_SYNCHRONOUS", "off");
    let report = plan.run().await.unwrap();
    let lost = report.violations.iter().filter(|found| matches!(found, Violation::Lost { .. })).count();
    assert!(lost > 0, "none of {} acknowledged messages was lost: {:?}", report.acks, report.violations);
}

#[track_caller]
fn assert_nothing_lost(report: &CrashReport, rounds: u32) {
    println!(
        "seed {}: {} rounds, {} acknowledged, {} found, slowest start {:?}",
        report.seed, report.rounds, report.acks, report.found, report.slowest_start
    );
    let first_few = &report.violations[..report.violations.len().min(5)];
    assert!(
        first_few.is_empty(),
        "seed {}, round {}: {} violations, {first_few:#?}",
        report.seed,
        report.rounds,
        report.violations.len()
    );
    assert_eq!(report.rounds, rounds);
    assert!(report.acks >= rounds as usize, "only {} acknowledgements", report.acks);
    assert!(report.found >= report.acks, "{} found, {} acknowledged", report.found, report.acks);
}
