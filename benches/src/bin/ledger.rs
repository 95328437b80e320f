//! What a long ledger costs: appending a record, proving one and the bundle of a day, over a million records by the same over a
//! thousand, both in one run and in turn.
//!
//! `--records N` sets how long the long one is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use svc_benches::Fault;
use svc_benches::lane::Lane;
use svc_benches::measure::{Cost, Series, timed};
use svc_benches::report::{Report, micros};
use svc_core::state::evidence::{Chain, Entry, Tile, TileId, filled};
use svc_core::store::{Clock as _, MemoryStore, Range, Record, Row as _, Store as _};
use svc_core::testing::people::write;
use svc_core::value::id::{EvidenceId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;
use svc_core::value::{Id as _, Span};
use svc_store::evidence::Wanted;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Gate, Settings};

const SHORT: u64 = 1_000;
const LONG: u64 = 1_000_000;
/// The most that a long ledger may cost by a short one.
const BAR: f64 = 1.2;
const ROUNDS: usize = 9;
/// Records that are written at once while a ledger is filled.
const WRITTEN_AT_ONCE: u64 = 10_000;
/// Records of the day that bundles are taken of, and those that one round appends.
const DAY: usize = 1_000;
const APPENDED: usize = 256;
const PROOFS: u64 = 200;
const AGENTS: usize = 100;

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let long = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => LONG,
        (Some("--records"), Some(value)) => value.parse()?,
        (Some(other), _) => return Err(format!("unknown argument `{other}`").into()),
    };
    let mut sides = [Side::new("short", SHORT)?, Side::new("long", long)?];
    let mut report = Report::new("ledger", &["", "records", "append µs", "proof µs", "bundle of a day ms"]);
    let mut all: [Vec<Series>; 2] = [Vec::new(), Vec::new()];
    for (side, series) in sides.iter().zip(&mut all) {
        *series = ["append", "proof", "bundle"]
            .map(|it| Series { name: format!("{} {it}", side.name), rounds: vec![] })
            .into();
    }
    for round in 0..=ROUNDS {
        for (side, series) in sides.iter_mut().zip(&mut all) {
            // The bundle comes first: what a round appends is of the same day, and both sides append as much.
            let bundle = side.bundle()?;
            let costs = [side.append()?, side.proof()?, bundle];
            if round > 0 {
                series.iter_mut().zip(costs).for_each(|(series, cost)| series.rounds.push(cost));
            }
        }
    }
    for (side, series) in sides.iter().zip(&all) {
        let cpu = |at: usize| series.get(at).map_or(0.0, Series::cpu);
        let bundle = format!("{:.2}", cpu(2) / 1e6);
        report.row([side.name.to_owned(), format!("{}", side.records), micros(cpu(0)), micros(cpu(1)), bundle]);
    }
    let [short, long] = &all;
    for ((short, long), name) in short.iter().zip(long).zip(["append", "proof", "bundle_of_a_day"]) {
        report.at_most(format!("{name}.long_by_short.cpu"), long.cpu_by(short), BAR);
    }
    report.print();
    Ok(())
}

/// One ledger.
struct Side {
    name: &'static str,
    records: u64,
    lane: Lane<MemoryStore>,
    store: MemoryStore,
    gate: Gate,
    asked: u64,
}

impl Side {
    fn new(name: &'static str, records: u64) -> Result<Self, Fault> {
        let mut store = MemoryStore::new();
        let mut lane = Lane::over(store.clone());
        lane.grow_to(AGENTS)?;
        lane.world.engine().tick()?;
        fill(&mut store, &lane, records)?;
        lane.world.clock().advance(Span::hours(48));
        let clock = lane.world.clock().clone();
        let master = Some(MasterKey::new(Secret::new([8; 32])));
        let path = Path::new("/nowhere");
        let signer = receipt_signer(&mut store, path, master, clock.now(), "https://gate.example", &dalek)?;
        let mut settings = Settings::default();
        settings.timers = false;
        let gate = Gate::over(store.clone(), clock, signer, settings)?;
        let mut side = Self { name, records, lane, store, gate, asked: 0 };
        for _ in 0..DAY.div_ceil(APPENDED) {
            side.append()?;
        }
        eprintln!("{name}: {records} records");
        Ok(side)
    }

    /// Times deciding so many actions, which gives their records places.
    fn append(&mut self) -> Result<Cost, Fault> {
        let commands = self.lane.commands(APPENDED);
        let lane = &mut self.lane;
        let (done, cost) = timed(APPENDED as u64, || lane.decide(commands));
        done?;
        Ok(cost)
    }

    /// Proves records all over the ledger.
    fn proof(&mut self) -> Result<Cost, Fault> {
        let workspace = self.lane.world.workspace();
        let mut ids = Vec::new();
        for _ in 0..PROOFS {
            self.asked += 1;
            let seq = u128::from(self.asked * 7_919 % self.records);
            let range = Range { from: seq, ..Range::all(Index::LedgerOf, workspace.bits(), 1) };
            let found = self.store.scan(&range)?;
            ids.extend(found.iter().filter_map(|it| it.row.record.as_ref().and_then(Entry::peel)).map(|it| it.id));
        }
        let (done, cost) = timed(PROOFS, || -> Result<(), Fault> {
            for id in ids {
                self.gate.proof(workspace, id)?;
            }
            Ok(())
        });
        done?;
        Ok(cost)
    }

    /// Takes the bundle of the last day.
    fn bundle(&mut self) -> Result<Cost, Fault> {
        let now = self.lane.world.now();
        let wanted = Wanted {
            workspace: self.lane.world.workspace(),
            from: now.minus(Span::hours(24)),
            to: None,
            since: None,
            start: None,
            agent: None,
            redact: false,
        };
        let (done, cost) = timed(1, || -> Result<usize, Fault> {
            let mut bytes = 0;
            for piece in self.gate.bundle(&wanted)? {
                bytes += piece?.len();
            }
            Ok(bytes)
        });
        done?;
        Ok(cost)
    }
}

/// Writes records into a ledger with their places and tiles, as if each had been placed one by one.
fn fill(store: &mut MemoryStore, lane: &Lane<MemoryStore>, records: u64) -> Result<(), Fault> {
    let (workspace, now) = (lane.world.workspace(), lane.world.now());
    let found = store.load(&[Chain::key(workspace)])?.remove(0).record;
    let mut chain = Chain::clone(found.as_ref().and_then(Chain::peel).ok_or("no chain")?);
    let mut tiles: BTreeMap<TileId, Tile> = BTreeMap::new();
    let mut rows: Vec<Record> = Vec::new();
    for number in 0..records {
        let entry = Entry {
            id: EvidenceId::from_bits(ulid_bits(now, u128::from(number) + 1)),
            workspace,
            at: now,
            kind: "action.allowed".into(),
            actor: r#"{"kind":"policy"}"#.to_owned().into(),
            subject: "act_00000000000000000000000000".into(),
            data: format!(r#"{{"amount":{number},"decision":"allow","status":"allowed"}}"#).into(),
            place: None,
        };
        let id = chain.last_tile();
        let (placed, newest) = chain.place(entry);
        rows.push(Entry::wrap(Arc::new(placed)));
        if let Some(newest) = newest {
            let mut find = |id: TileId| match tiles.get(&id) {
                Some(tile) => Ok::<_, Fault>(Some(tile.clone())),
                None => {
                    let found = store.load(&[Tile::key(id)])?.remove(0).record;
                    Ok(found.as_ref().and_then(Tile::peel).map(|it| Tile::clone(it)))
                }
            };
            let mut leaves = find(id)?.map(|it| it.hashes).unwrap_or_default();
            leaves.extend(newest);
            for tile in filled(id, leaves, find)? {
                tiles.insert(tile.id, tile);
            }
        }
        if (number + 1) % WRITTEN_AT_ONCE == 0 || number + 1 == records {
            let of_tree = tiles.values().map(|it| Tile::wrap(Arc::new(it.clone())));
            rows.extend(of_tree);
            // Only tiles above the leaves may still grow.
            tiles.retain(|id, _| id.level > 0);
            rows.push(Chain::wrap(Arc::new(chain.clone())));
            write(store, std::mem::take(&mut rows));
        }
    }
    Ok(())
}
