//! Format of the permission table's rows, and the check that compares them with the code.

use crate::callers::{COLUMNS, lobby};
use crate::stored::Stored;
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Reader, Store};
use parlor_model::{Caller, EntityKind, Epoch, Field, Refusal, Scope};
use parlor_testkit::stores::MemoryStore;

/// A command or query with given rows in the store, and the expected verdict for each kind of caller.
pub struct Row<Request> {
    pub request: Request,
    /// The scope that an API key needs; `None` if keys are not allowed at all.
    pub scope: Option<Scope>,
    /// Rows that the store contains besides those of the caller.
    pub given: Stored,
    pub given_name: &'static str,
    /// One verdict per column, in the order of `COLUMNS`. The last one is omitted if the authentication code
    /// has no more rights than an anonymous caller.
    pub verdicts: &'static str,
}

impl<Request: std::fmt::Debug> Row<Request> {
    /// The verdicts of all columns.
    pub fn verdicts(&self) -> Vec<&'static str> {
        let mut verdicts: Vec<&str> = self.verdicts.split_whitespace().collect();
        if verdicts.len() + 1 == COLUMNS.len() {
            verdicts.push(verdicts[0]);
        }
        assert_eq!(verdicts.len(), COLUMNS.len(), "a verdict for each column: {:?}", self.request);
        verdicts
    }
}

/// Compares the verdicts with the code, on a store with the rows of the caller and of the situation.
pub fn check<Request: std::fmt::Debug>(
    rows: &[Row<Request>],
    permit: impl Fn(&Caller, &Request, &mut dyn Store, &dyn Reader) -> Result<(), Refusal>,
) {
    let mut wrong = Vec::new();
    for row in rows {
        for (who, verdict) in COLUMNS.into_iter().zip(row.verdicts()) {
            let (mut store, reader) = MemoryStore::open(Epoch(1));
            let mut changes = who.changes(row.scope);
            changes.extend((row.given)(who));
            let mut transaction = store.begin().unwrap();
            transaction.apply(&Effects { changes, ..Effects::default() }).unwrap();
            transaction.commit().unwrap();
            let permitted = permit(&who.caller(), &row.request, &mut *store, &*reader);
            if permitted != meaning(verdict) {
                wrong.push(format!(
                    "{who:?}: {:?} ({}): the table says {verdict}, decided was {permitted:?}",
                    row.request, row.given_name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn meaning(verdict: &str) -> Result<(), Refusal> {
    let not_found = |thing| Err(Refusal::NotFound(thing));
    match verdict {
        "yes" => Ok(()),
        "no" => Err(Refusal::Forbidden),
        "who" => Err(Refusal::NotSignedIn),
        "out" => Err(Refusal::NotAMember { room: lobby() }),
        "admin" => {
            Err(Refusal::invalid(Field::Scope, "sources, dead-letters and metrics are for keys of admins"))
        }
        "path" => Err(Refusal::invalid(Field::Path, "must lie in the agent's folder")),
        "pub" => Err(Refusal::invalid(Field::Path, "must not be below room/ or agent/")),
        "none" => Err(Refusal::invalid(Field::SelectedRoom, "is required unless a project root is given")),
        "many" => {
            Err(Refusal::invalid(Field::SelectedRoom, "is required: several rooms have this project root"))
        }
        "where" => Err(Refusal::invalid(
            Field::SelectedRoom,
            "is required with a project root: a new room has no project root",
        )),
        "plans" => {
            Err(Refusal::invalid(Field::SelectedRoom, "is required: the agent has several pending plans"))
        }
        "keep" => Err(Refusal::LastOneRequired(EntityKind::Room)),
        "?user" => not_found(EntityKind::User),
        "?room" => not_found(EntityKind::Room),
        "?mate" => not_found(EntityKind::Member),
        "?msg" => not_found(EntityKind::Message),
        "?run" => not_found(EntityKind::Run),
        "?pin" => not_found(EntityKind::Pin),
        "?file" => not_found(EntityKind::Upload),
        "?bot" => not_found(EntityKind::Agent),
        "?task" => not_found(EntityKind::Task),
        "?gate" => not_found(EntityKind::Gateway),
        "!bot" => Err(Refusal::BelongsToAnother(EntityKind::Agent)),
        "!gate" => Err(Refusal::BelongsToAnother(EntityKind::Gateway)),
        "?ask" => not_found(EntityKind::Approval),
        "?rule" => not_found(EntityKind::ApprovalRule),
        "?key" => not_found(EntityKind::Key),
        "?dev" => not_found(EntityKind::SignIn),
        "?pair" => not_found(EntityKind::Pairing),
        "?inv" => not_found(EntityKind::Invitation),
        "?rout" => not_found(EntityKind::Router),
        "?goal" => not_found(EntityKind::Mission),
        "?plan" => not_found(EntityKind::Plan),
        "?dir" => not_found(EntityKind::ProjectRoot),
        "?let" => not_found(EntityKind::DeadLetter),
        "?serv" => not_found(EntityKind::Service),
        other => panic!("no such verdict: {other}"),
    }
}

/// Defines a function with the rows of one family, in one group per command or query. A row in the wrong group
/// fails an assertion.
macro_rules! table {
    ($name:ident: $request:ty; $($group:pat => {
        $($verdicts:literal, $scope:expr, $value:expr, $given:ident;)*
    })*) => {
        #[allow(unused_mut, reason = "a family may have only commands or only queries")]
        pub fn $name() -> Vec<$crate::table::Row<$request>> {
            let mut rows = Vec::new();
            $($($crate::table::table!(@row rows, $request, $group, $verdicts, $scope, $value, $given);)*)*
            rows
        }
    };
    (@row $rows:ident, $request:ty, $group:pat, $verdicts:literal, $scope:expr, $value:expr, $given:ident) => {
        let request = <$request>::from($value);
        assert!(matches!(&request, $group), "a row in the wrong group: {request:?}");
        $rows.push($crate::table::Row {
            request,
            scope: $scope,
            given: $given,
            given_name: stringify!($given),
            verdicts: $verdicts,
        });
    };
}
pub(crate) use table;
