//! What is said of the service's role on the server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;

use svc_store::postgres::Terms;
use svc_store::{PostgresStore, StoreError};

use crate::database::Database;

/// Tables are made for as long as that takes, whatever time the role is given for a statement.
#[test]
fn the_roles_time_for_a_statement_ends_no_first_start() {
    let server = Database::start();
    server.sql("ALTER ROLE svc SET statement_timeout='300ms'");
    // Somebody is making the same schema, and thinks better of it later.
    let mut shell = server.shell();
    let mut say = shell.stdin.take().unwrap();
    writeln!(say, "SET statement_timeout=0; BEGIN; CREATE SCHEMA svc; SELECT 'done';").unwrap();
    let mut heard = BufReader::new(shell.stdout.as_mut().unwrap()).lines();
    assert!(heard.any(|it| it.unwrap().trim() == "done"));
    thread::scope(|threads| {
        let opens = threads.spawn(|| PostgresStore::open(&server.address(), Terms::default()));
        let waits =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock' AND now()-query_start > '600ms'";
        while server.sql(waits) == "0" {
            assert!(!opens.is_finished(), "it waits for the other one");
        }
        writeln!(say, "ROLLBACK;").unwrap();
        drop(say);
        assert!(opens.join().unwrap().is_ok());
    });
    shell.wait().unwrap();
}

/// A role that may read and not write opens nothing: a server that is told so at its start is better than one that is ready and
/// commits nothing.
#[test]
fn a_role_that_may_only_read_is_refused() {
    let server = Database::start();
    drop(PostgresStore::open(&server.address(), Terms::default()).unwrap());
    server.sql("CREATE ROLE looks LOGIN");
    server.sql("GRANT USAGE ON SCHEMA svc TO looks");
    server.sql("GRANT SELECT ON ALL TABLES IN SCHEMA svc TO looks");
    let address = server.address().replacen("svc@", "looks@", 1);
    for opened in [
        PostgresStore::open(&address, Terms::default()).map(drop),
        PostgresStore::existing(&address, Terms::default()).map(drop),
    ] {
        assert!(matches!(opened, Err(StoreError::NoRight(_))), "{opened:?}");
    }
}
