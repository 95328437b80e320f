//! Published vectors of the ledger's tree and notes: RFC 6962 as transparency-dev/merkle tests it, C2SP signed-note,
//! tlog-checkpoint and tlog-tiles.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use svc_core::state::evidence::merkle::{Edge, Span, leaf_hash, verify_consistency, verify_inclusion};
use svc_core::state::evidence::note::{Checkpoint, NoteFault, NoteKey, open, sign};
use svc_core::state::evidence::{TILE_WIDTH, Tile, TileId, filled, root_over};
use svc_core::state::gate::receipt::{DalekSigner, PublicKey};
use svc_core::value::id::WorkspaceId;
use svc_core::value::secret::Secret;
use svc_core::value::{Id as _, Timestamp};

macro_rules! vectors {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("data/", $name, ".json"))).unwrap()
    };
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// No proof and an empty one are the same: no hashes.
fn proof(value: &Value) -> Vec<Vec<u8>> {
    value.as_array().map(|list| list.iter().map(bytes).collect()).unwrap_or_default()
}

/// The roots of all trees over the eight leaves.
#[test]
fn trees_have_the_published_roots() {
    let file = vectors!("rfc6962_merkle");
    let mut edge = Edge::default();
    let leaves = file["leafInputsHex"].as_array().unwrap();
    for (size, root) in file["rootsHexBySize"].as_array().unwrap().iter().enumerate() {
        assert_eq!(edge.root().to_string(), text(root), "{size}");
        if let Some(leaf) = leaves.get(size) {
            edge.push(size as u64, leaf_hash(&hex::decode(text(leaf)).unwrap()));
        }
    }
    assert_eq!(leaves.len(), 8);
}

/// Every inclusion case; a hash that is not 32 bytes is refused also where a literal reading of RFC 9162 would take it.
#[test]
fn inclusion_proofs_are_judged_as_published() {
    let file = vectors!("rfc6962_merkle");
    let cases = file["inclusion"].as_array().unwrap();
    assert_eq!(cases.len(), 98);
    for case in cases {
        let (leaf, root) = (bytes(&case["leafHash"]), bytes(&case["root"]));
        let (index, size) = (case["leafIdx"].as_u64().unwrap(), case["treeSize"].as_u64().unwrap());
        let judged = verify_inclusion(&leaf, index, size, &proof(&case["proof"]), &root);
        assert_eq!(judged.is_err(), case["wantErr"].as_bool().unwrap(), "{}", case["file"]);
    }
}

/// Every consistency case; from size 0 nothing is proved, and nothing by roots that are not 32 bytes.
#[test]
fn consistency_proofs_are_judged_as_published() {
    let file = vectors!("rfc6962_merkle");
    let cases = file["consistency"].as_array().unwrap();
    assert_eq!(cases.len(), 98);
    for case in cases {
        let (old, new) = (case["size1"].as_u64().unwrap(), case["size2"].as_u64().unwrap());
        let (old_root, new_root) = (bytes(&case["root1"]), bytes(&case["root2"]));
        let judged = verify_consistency(old, &old_root, new, &new_root, &proof(&case["proof"]));
        // One case is labelled good whose equal roots are twelve bytes: no tree has such a root.
        let short = old_root.len() != 32 || new_root.len() != 32;
        assert_eq!(judged.is_err(), case["wantErr"].as_bool().unwrap() || short, "{}", case["file"]);
    }
}

/// The name and the key of `name+hash+base64(0x01 ‖ key)`.
fn vkey(text: &str) -> (&str, String, PublicKey) {
    let (name, rest) = text.split_once('+').unwrap();
    let (id, key) = rest.split_once('+').unwrap();
    let key = STANDARD.decode(key).unwrap();
    assert_eq!(key[0], 1);
    (name, id.to_owned(), PublicKey::new(key[1..].try_into().unwrap()).unwrap())
}

/// The note verifies, signing its text again gives its bytes, and the key's id is the published one.
#[test]
fn the_published_note_is_signed_and_opened() {
    let file = vectors!("c2sp_signed_note");
    let (name, id, public) = vkey(text(&file["vkey"]));
    let key = NoteKey { name, key: &public };
    assert_eq!(hex::encode(key.id()), id);
    assert_eq!(open(text(&file["note"]), &[key]).unwrap(), text(&file["text"]));

    let seed = STANDARD.decode(text(&file["skey"]).splitn(5, '+').last().unwrap()).unwrap();
    let signer = DalekSigner::new(&Secret::new(seed[1..].try_into().unwrap()), "");
    assert_eq!(signer.public_key(Timestamp::from_millis(0)).as_bytes(), public.as_bytes());
    assert_eq!(sign(text(&file["text"]), &key, &signer).unwrap(), text(&file["note"]));

    for other in file["otherVkeys"].as_array().unwrap() {
        let (name, id, public) = vkey(text(other));
        let other = NoteKey { name, key: &public };
        assert_eq!(hex::encode(other.id()), id);
        assert_eq!(open(text(&file["note"]), &[other]), Err(NoteFault::Unsigned));
    }
}

/// The rules that come with the vectors.
#[test]
fn a_note_is_judged_by_the_lines_of_known_keys() {
    let file = vectors!("c2sp_signed_note");
    let (name, _, public) = vkey(text(&file["vkey"]));
    let key = NoteKey { name, key: &public };
    let note = text(&file["note"]);
    // Sixteen lines of strangers before the known one change nothing.
    let (body, line) = note.split_once("\n\n").unwrap();
    let strangers: String = (0..16).map(|n| format!("\u{2014} stranger{n} AAAAAAAA\n")).collect();
    let crowded = format!("{body}\n\n{strangers}{line}");
    assert_eq!(open(&crowded, &[key]).unwrap(), text(&file["text"]));
    // A known key's line that does not fit spoils the note, whoever else signed.
    let wrong = note.replacen("If you", "If we", 1);
    assert_eq!(open(&wrong, &[key]), Err(NoteFault::BadSignature));
    assert_eq!(open(note, &[]), Err(NoteFault::Unsigned));
    for malformed in
        ["", "text\n", &note.replace(' ', "\t"), note.trim_end(), &format!("{note}x"), &format!("{note}\n")]
    {
        assert_eq!(open(malformed, &[key]), Err(NoteFault::Malformed), "{malformed:?}");
    }
    let signer = DalekSigner::new(&Secret::new([7; 32]), "");
    for origin in ["a\nb", "a b", "a+b", ""] {
        let forged = Checkpoint { origin: origin.into(), size: 1, root: leaf_hash(b"") };
        assert_eq!(forged.sign(&public, &signer), None, "{origin:?}");
    }
}

/// Notes of others are read, their key ids as published.
#[test]
fn published_checkpoints_are_read() {
    let file = vectors!("c2sp_signed_note");
    for case in file["parseOnly"].as_array().unwrap() {
        let note = text(&case["note"]);
        assert_eq!(open(note, &[]), Err(NoteFault::Unsigned));
        let line = note.lines().last().unwrap().rsplit_once(' ').unwrap().1;
        if let Some(id) = case["keyIdHex"].as_str() {
            assert_eq!(hex::encode(&STANDARD.decode(line).unwrap()[..4]), id);
        }
        if let Some(checkpoint) = case["checkpoint"].as_str() {
            let read = Checkpoint::parse(checkpoint).unwrap();
            assert_eq!((&*read.origin, read.size), (text(&case["origin"]), case["size"].as_u64().unwrap()));
            assert_eq!(read.text(), checkpoint);
            assert_eq!(Checkpoint::parse(&checkpoint.replace("208521", "0208521")), Err(NoteFault::Malformed));
        }
    }
}

/// Paths and widths of tiles.
#[test]
fn tiles_are_named_and_filled_as_published() {
    let file = vectors!("c2sp_tlog_tiles");
    let workspace = WorkspaceId::from_bits(1);
    for case in file["tilePath"].as_array().unwrap() {
        let tile = TileId::new(workspace, 0, case["index"].as_u64().unwrap());
        assert_eq!(tile.to_string(), format!("tile/0/{}", text(&case["encoded"])));
    }
    assert_eq!(file["fullTileBytes"].as_u64().unwrap(), TILE_WIDTH * 32);
    for case in file["partialTiles"].as_array().unwrap() {
        let size = case["treeSize"].as_u64().unwrap();
        let (mut tail, mut edge) = (Vec::new(), Edge::default());
        let mut tiles: BTreeMap<TileId, Tile> = BTreeMap::new();
        for seq in 0..size {
            tail.push(leaf_hash(&seq.to_be_bytes()));
            edge.push(seq, *tail.last().unwrap());
            if tail.len() as u64 == TILE_WIDTH {
                let id = TileId::new(workspace, 0, seq / TILE_WIDTH);
                let changed = filled(id, std::mem::take(&mut tail), |id| Ok::<_, ()>(tiles.get(&id).cloned()));
                tiles.extend(changed.unwrap().into_iter().map(|it| (it.id, it)));
            }
        }
        for level in 0..3 {
            let full = tiles.values().filter(|it| it.id.level == level && it.is_full()).count() as u64;
            let partial = tiles.values().filter(|it| it.id.level == level && !it.is_full()).map(|it| it.hashes.len());
            let partial = if level == 0 { tail.len() } else { partial.sum::<usize>() } as u64;
            let said = |name: &str| case[format!("level{level}{name}")].as_u64().unwrap_or_default();
            assert_eq!((full, partial), (said("Full"), said("Partial")), "{size} {level}");
        }
        // From the tiles alone comes the root that the right edge has.
        let read = |node| {
            let (id, place) = TileId::of(workspace, node);
            let hashes = tiles.get(&id).map_or(&tail, |it| &it.hashes);
            Ok::<_, ()>(root_over(&hashes[place]))
        };
        assert_eq!(Span::whole(size).hash(read), Ok(edge.root()));
    }
}
