//! Stored rows, and mandates as people write them.

use svc_core::state::gate::{Mandate, Terms};
use svc_core::store::{Record, Table};
use svc_core::testing::sample;

use super::inputs;

/// A row that is read is written as one that reads the same. The first byte is the table, the second the format.
///
/// # Panics
/// Where it is not.
pub fn record(data: &[u8]) {
    let [table, format, body @ ..] = data else { return };
    let table = Table::ALL[usize::from(*table) % Table::ALL.len()];
    let Ok(record) = Record::decode(table, u16::from(*format % 4), body) else { return };
    assert_eq!(record.key().table(), table);
    let links = record.links();
    assert!(links.iter().all(|link| table.indexes().contains(&link.index)), "{links:?}");
    let written = record.encode().expect("a row is JSON");
    let again = Record::decode(table, written.format, &written.body).expect("a row is read back");
    assert_eq!(again, record);
    assert_eq!(again.links(), links);
}

/// A full and a bare row of every table.
#[must_use]
pub fn record_seeds() -> Vec<Vec<u8>> {
    let seed = |row: Record| {
        let table = Table::ALL.iter().position(|it| *it == row.key().table()).unwrap_or_default();
        let mut bytes = vec![u8::try_from(table).unwrap_or_default(), 1];
        bytes.extend(row.encode().expect("a row is JSON").body);
        bytes
    };
    sample::rows().into_iter().map(seed).collect()
}

/// A mandate that is read is written as one that reads the same, its faults found without a panic.
///
/// # Panics
/// Where it is not.
pub fn mandate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(terms) = read(text) else { return };
    let written = sample_of(&terms);
    assert_eq!(read(&written).as_ref(), Some(&terms), "{written}");
}

/// The terms, through the row that keeps them: nothing here reads JSON of its own.
fn read(text: &str) -> Option<Terms> {
    let body = MANDATE.replacen("TERMS", text, 1);
    match Record::decode(Table::Mandate, 1, body.as_bytes()) {
        Ok(Record::Mandate(row)) => Some(row.terms().clone()),
        Ok(_) | Err(_) => None,
    }
}

fn sample_of(terms: &Terms) -> String {
    let body = MANDATE.replacen("TERMS", r#"{"name":"Any","actions":["payment"]}"#, 1);
    let Ok(Record::Mandate(row)) = Record::decode(Table::Mandate, 1, body.as_bytes()) else {
        panic!("the bare mandate is read")
    };
    let row =
        Mandate::new(row.id, row.agent, row.template.clone(), terms.clone(), (row.created_by.clone(), row.created_at));
    let body = Record::Mandate(row.into()).encode().expect("a mandate is JSON").body;
    let text = String::from_utf8(body).expect("JSON is text");
    let (_, terms) = text.split_once("\"terms\":").expect("a mandate has terms");
    let (terms, _) = terms.rsplit_once(",\"created_at\"").expect("a mandate was made at some time");
    terms.to_owned()
}

const MANDATE: &str = r#"{"id":{"mandate":"mnd_01K6FN0001000000000000000A","version":1},"agent":"agt_01K6FN0001000000000000000A","terms":TERMS,"created_at":0}"#;

/// Mandates with every member.
#[must_use]
pub fn mandate_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        r#"{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":12000,"period":"hour"},"count":{"max":9,"period":"day"},"askAbove":4000},"merchants":{"allow":["*.example.com"],"deny":["bad.example.com"]}}"#,
        r#"{"name":"Tools","actions":["tool.call"]}"#,
    ])
}
