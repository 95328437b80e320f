//! What the hook remembers from before a call to after it: which action it was. A file each, in the user's own directory,
//! with ids and nothing of what was asked.
//!
//! Nothing is decided by what is remembered: the gate is asked for the action as it stands, and its answer has to be about
//! this very call. What cannot be read, as it was cut short or is somebody else's, is as if it were not there, and what is written next
//! takes its place.

use std::fs;
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;

use super::event::Event;

/// Allowed calls without an id of their own that are remembered at once, where they look the same.
const TWINS: u8 = 8;
/// How long something is remembered: longer than any action waits.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long it is remembered how often a call was made by one id: of each call that much stays.
const TURNS_KEPT: Duration = Duration::from_secs(24 * 3_600);
/// How long hooks may speak of one call before it runs: as long as clients wait for them.
const AT_ONCE: Duration = Duration::from_secs(60);
/// Files that are looked at in one round of tidying.
const TIDIED: usize = 10_000;
/// Bytes of one that is read.
const BYTES_MAX: u64 = 4_096;
/// What the name of a file begins with that is yet to come to its place.
const UNPLACED: &str = "new-";

/// The memory of calls.
#[derive(Debug)]
pub(crate) struct Memory {
    folder: Option<PathBuf>,
    call: String,
    is_named: bool,
    /// What is called, wherever: a tool may move on while it runs, and clients say afterwards where it is then, or nothing of it.
    about: String,
    /// What is called, and where.
    same: String,
}

/// A call that was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Its action.
    pub(crate) action: ActionId,
    /// Whether it was allowed.
    pub(crate) allowed: bool,
    /// What it was, and where: under this name it stands that a person is asked about it.
    same: String,
}

/// The newest question about a call with an id of its own, told from others by the same id.
#[derive(Debug)]
struct Turn {
    asked: Asked,
    /// How many questions by the id there were before.
    at: u32,
    /// Whether what came of it was told.
    is_over: bool,
}

impl Memory {
    /// What is remembered of this call, whose whole input has this digest.
    pub(crate) fn of(folder: Option<&Path>, event: &Event, input_digest: &str) -> Self {
        let name = |parts: &[&str]| {
            let lengths: String = parts.iter().map(|it| format!("{}:{it}", it.len())).collect();
            Digest::of(lengths).to_string()
        };
        let client = event.client.name();
        let about = format!("waits-{}", name(&[client, &event.session, &event.tool, input_digest]));
        // What is called begins this name, and all of such names are as long.
        let same = event.cwd.as_ref().map_or_else(|| about.clone(), |it| format!("{about}-{}", name(&[it])));
        let call = match &event.call {
            Some(call) => format!("call-{}", name(&[client, &event.session, call])),
            None => format!("like-{}", name(&[client, &event.session, &event.tool, input_digest])),
        };
        Self { folder: folder.map(Path::to_owned), call, is_named: event.call.is_some(), about, same }
    }

    /// How many questions there were by the client's id of the call before the newest about this very call.
    pub(crate) fn turn(&self) -> u32 {
        self.newest().map_or(0, |it| it.at)
    }

    /// Whether the newest question about this very call is older than another hook that speaks of it at once could be. One that cannot be
    /// read may be of any age: no answer from then is taken for one to this call.
    pub(crate) fn is_of_before(&self) -> bool {
        let about = self.turn_of(&self.same).and_then(|it| fs::symlink_metadata(it).ok());
        about.is_some_and(|it| self.newest().is_none() || age(&it).is_some_and(|it| it > AT_ONCE))
    }

    /// Whether what is noted here is kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.folder.as_ref().is_some_and(|it| make(it).is_ok())
    }

    /// Where the newest question about what has this name stands, by the client's id of the call.
    fn turn_of(&self, what: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref().filter(|_| self.is_named)?;
        Some(folder.join(format!("turn-{}", Digest::of([&self.call, " ", what].concat()))))
    }

    /// What stands for what is called, wherever it was.
    fn anywhere(&self) -> String {
        format!("{}-anywhere", self.about)
    }

    fn newest(&self) -> Option<Turn> {
        self.newest_of(&self.same)
    }

    /// The newest question about what is called that is not over: here, else wherever it was made.
    fn under_way(&self) -> Option<Turn> {
        [&self.same, &self.anywhere()].into_iter().filter_map(|it| self.newest_of(it)).find(|it| !it.is_over)
    }

    fn newest_of(&self, what: &str) -> Option<Turn> {
        let path = self.turn_of(what)?;
        let (asked, value) = (read(&path)?, value(&path)?);
        let at = value.get("turn")?.as_u64().and_then(|it| u32::try_from(it).ok())?;
        Some(Turn { asked, at, is_over: value.get("over")?.as_bool()? })
    }

    /// The action about this very call that a person was asked to decide.
    pub(crate) fn waiting(&self) -> Option<ActionId> {
        read(&self.folder.as_ref()?.join(&self.same)).map(|it| it.action)
    }

    /// Takes this action out of what waits, and none that came in its place meanwhile: `true` for one of many who do so
    /// at once.
    pub(crate) fn take_waiting(&self, action: ActionId) -> bool {
        let is_it = self.waiting() == Some(action);
        is_it && self.folder.as_ref().is_some_and(|it| fs::remove_file(it.join(&self.same)).is_ok())
    }

    /// Remembers that the call was asked about; `waits` where a person decides, `turn` the questions by its id before. A memory
    /// that cannot be written forgets, which the after-tool hook tells.
    pub(crate) fn note(&self, action: ActionId, allowed: bool, waits: bool, turn: u32) {
        let Some(folder) = &self.folder else { return };
        if make(folder).is_err() {
            return;
        }
        let text = json!({ "action": action, "allowed": allowed, "same": self.same }).to_string();
        if waits {
            let _ = write(&folder.join(&self.same), &text, false);
        }
        if self.is_named {
            // Another hook of the client has just used up the yes to this very call: what comes of it comes of that.
            let newest = self.newest();
            let is_let_run = newest.as_ref().is_some_and(|it| it.asked.allowed && !it.is_over);
            if !allowed && is_let_run && !self.is_of_before() {
                return;
            }
            let _ = write(&folder.join(&self.call), &text, false);
            let asked = Asked { action, allowed, same: self.same.clone() };
            // An answer that is repeated is as old as it was.
            if newest.is_none_or(|it| it.asked != asked || it.at != turn || it.is_over) {
                self.keep(&Turn { asked, at: turn, is_over: false });
            }
        } else if allowed {
            let _ = self.twins().into_iter().find(|it| write(&folder.join(it), &text, true).is_ok());
        } else {
            let _ = write(&folder.join(self.refused()), &text, false);
        }
    }

    /// Keeps a question under what was called and where, and under what was called alone unless another one has come there since.
    fn keep(&self, turn: &Turn) {
        let Asked { action, allowed, same } = &turn.asked;
        let text = json!({ "action": action, "allowed": allowed, "same": same, "turn": turn.at, "over": turn.is_over });
        let anywhere = self.anywhere();
        let is_newest = !turn.is_over || self.newest_of(&anywhere).is_some_and(|it| it.asked.action == *action);
        let both = [Some(same), is_newest.then_some(&anywhere)];
        for path in both.into_iter().flatten().filter_map(|it| self.turn_of(it)) {
            let _ = write(&path, &text.to_string(), false);
        }
    }

    /// Where calls without an id of their own stand that were allowed.
    fn twins(&self) -> Vec<String> {
        (0..TWINS).map(|twin| format!("{}-{twin}", self.call)).collect()
    }

    /// Where the newest of them stands that was not. Nobody comes back for it, unless it ran all the same: what was allowed
    /// goes before it.
    fn refused(&self) -> String {
        format!("{}-refused", self.call)
    }

    /// Takes what is remembered of the call.
    pub(crate) fn take(&self) -> Option<Asked> {
        if !self.is_named {
            let all = || self.twins().into_iter().chain([self.refused()]);
            return self.removed(all(), |it| it.same == self.same).or_else(|| self.removed(all(), |_| true));
        }
        if let Some(turn) = self.under_way() {
            return Some(self.ended(&turn));
        }
        // What is over is told once more by another hook, unless the id stands for something else that runs.
        let is_over = || self.newest().or_else(|| self.newest_of(&self.anywhere()));
        self.removed([self.call.clone()], |_| true).or_else(|| is_over().map(|it| it.asked))
    }

    /// Takes what is remembered of the call where it was allowed, and leaves it where it was not.
    pub(crate) fn take_allowed(&self) -> Option<Asked> {
        if !self.is_named {
            return self.removed(self.twins(), |it| it.allowed);
        }
        match self.under_way() {
            Some(turn) => turn.asked.allowed.then(|| self.ended(&turn)),
            None => self.removed([self.call.clone()], |it| it.allowed && self.is_about(it)),
        }
    }

    /// Remembers that what came of the newest question about this very call was told.
    fn ended(&self, turn: &Turn) -> Asked {
        let asked = turn.asked.clone();
        self.keep(&Turn { asked: asked.clone(), at: turn.at, is_over: true });
        self.removed([self.call.clone()], |it| it.action == asked.action);
        asked
    }

    /// Takes the first of these that is there and wanted.
    fn removed(&self, names: impl IntoIterator<Item = String>, is_wanted: impl Fn(&Asked) -> bool) -> Option<Asked> {
        let folder = self.folder.as_ref()?;
        names.into_iter().map(|it| folder.join(it)).find_map(|path| {
            let asked = read(&path).filter(&is_wanted)?;
            fs::remove_file(&path).ok()?;
            Some(asked)
        })
    }

    /// Whether what was asked about is this very call: the same tool with the same input, wherever that has led.
    pub(crate) fn is_about(&self, asked: &Asked) -> bool {
        asked.same.starts_with(&self.about)
    }

    /// Forgets that a person was asked because of the call: it is over.
    pub(crate) fn forget_waiting(&self, asked: &Asked) {
        if let Some(folder) = &self.folder
            && read(&folder.join(&asked.same)).is_some_and(|it| it.action == asked.action)
        {
            let _ = fs::remove_file(folder.join(&asked.same));
        }
    }

    /// Forgets what nobody came back for.
    pub(crate) fn tidy(&self) {
        let files = self.folder.as_ref().and_then(|it| fs::read_dir(it).ok());
        for file in files.into_iter().flatten().take(TIDIED).filter_map(Result::ok) {
            let Ok(about) = file.metadata() else { continue };
            let kept = match file.file_name().to_string_lossy() {
                // A hook that was ended while it wrote has left it.
                name if name.starts_with(UNPLACED) || about.len() == 0 => AT_ONCE,
                name if name.starts_with("turn-") => TURNS_KEPT,
                _ => KEPT,
            };
            if age(&about).is_some_and(|it| it > kept) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

fn age(about: &fs::Metadata) -> Option<Duration> {
    about.modified().ok()?.elapsed().ok()
}

fn value(path: &Path) -> Option<Value> {
    let about = fs::symlink_metadata(path).ok().filter(|it| it.is_file() && it.len() <= BYTES_MAX);
    serde_json::from_slice(&fs::read(about.map(|_| path)?).ok()?).ok()
}

fn read(path: &Path) -> Option<Asked> {
    let value = value(path)?;
    let same = value.get("same")?.as_str()?;
    // It becomes a path: it is one of our own names or nothing.
    let is_name = same.starts_with("waits-") && same.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    Some(Asked {
        action: ActionId::parse(value.get("action")?.as_str()?).ok()?,
        allowed: value.get("allowed")?.as_bool()?,
        same: is_name.then(|| same.to_owned())?,
    })
}

fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file beside its place and puts it there whole: a hook may be ended at any moment. Nothing is written into what stands there,
/// be it a link or a pipe: it is replaced, or where it has to be `is_new`, left as it is.
fn write(path: &Path, text: &str, is_new: bool) -> std::io::Result<()> {
    let mut id = [0_u8; 8];
    getrandom::fill(&mut id).map_err(|_| Error::other("there is no entropy"))?;
    let beside = path.with_file_name(format!("{UNPLACED}{}", hex::encode(id)));
    let created = |path: &Path| {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    };
    let written = created(&beside).and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| {
        if is_new {
            // Of many that come at once one has the place: it is taken before anything is in it.
            created(path)?;
        }
        fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;
    use svc_core::value::json::Json;

    use super::*;

    fn event(call: Option<&str>) -> Event {
        let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "T", "tool_use_id": call });
        Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), None).unwrap()
    }

    fn path(memory: &Memory) -> PathBuf {
        memory.turn_of(&memory.same).unwrap()
    }

    fn forget(memory: &Memory) {
        for what in [&memory.same, &memory.anywhere()] {
            fs::remove_file(memory.turn_of(what).unwrap()).unwrap();
        }
    }

    /// A call is remembered until it is over, under its own id, and twins without one are as many as they are.
    #[test]
    fn calls_are_remembered_until_they_are_over() {
        let folder = tempfile::tempdir().unwrap();
        let memory = |call: Option<&str>| Memory::of(Some(folder.path()), &event(call), "sha256:00");
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory(Some("a")).note(one, true, false, 0);
        assert_eq!(memory(Some("b")).take(), None);
        let asked = memory(Some("a")).take().unwrap();
        assert_eq!((asked.action, asked.allowed), (one, true));
        assert_eq!(memory(Some("a")).take(), Some(asked), "another hook may tell of the same run");
        assert_eq!(memory(Some("a")).take_allowed(), None, "what is over is not cancelled");
        for _ in 0..=TWINS {
            memory(None).note(two, false, false, 0);
        }
        memory(None).note(one, true, false, 0);
        memory(None).note(two, true, false, 0);
        let taken: Vec<_> = std::iter::from_fn(|| memory(None).take()).map(|it| (it.action, it.allowed)).collect();
        assert_eq!(
            taken,
            [(one, true), (two, true), (two, false)],
            "what ran is what was allowed, before what was not"
        );
    }

    /// Calls that share an id and are under way at once are told apart, each with its own action and how often it was asked; a
    /// memory of before knows the newest of them.
    #[test]
    fn calls_that_share_an_id_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let memory = |digest: &str| Memory::of(Some(folder.path()), &event(Some("T:0")), digest);
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory("sha256:00").note(one, true, false, 0);
        memory("sha256:01").note(two, true, false, 3);
        assert_eq!((memory("sha256:00").turn(), memory("sha256:01").turn(), memory("sha256:02").turn()), (0, 3, 0));
        let taken = memory("sha256:00").take().unwrap();
        assert_eq!((taken.action, memory("sha256:00").is_about(&taken)), (one, true));
        let instead = memory("sha256:02").take().unwrap();
        assert_eq!((instead.action, memory("sha256:02").is_about(&instead)), (two, false));
        assert_eq!(memory("sha256:01").take_allowed().unwrap().action, two);
        assert_eq!(memory("sha256:01").turn(), 3);
        forget(&memory("sha256:01"));
        memory("sha256:01").note(two, true, false, 3);
        forget(&memory("sha256:01"));
        assert_eq!(memory("sha256:01").take().unwrap().action, two, "as it was written before");
    }

    /// A question is of before once no other hook can speak of the same call any more, and forgotten a day later.
    #[test]
    fn a_question_is_of_before_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        assert!(!memory.is_of_before() && memory.is_kept());
        memory.note(ActionId::from_bits(1), false, false, 2);
        assert!(!memory.is_of_before());
        for (ago, is_of_before, turn) in [(AT_ONCE * 2, true, 2), (TURNS_KEPT * 2, true, 0)] {
            let file = fs::File::options().write(true).open(path(&memory)).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - ago).unwrap();
            assert_eq!(memory.is_of_before(), is_of_before, "{ago:?}");
            memory.tidy();
            assert_eq!(memory.turn(), turn, "{ago:?}");
        }
    }

    /// Of two hooks that speak of one call at once the one that was let run is remembered, whichever comes last; a while later what is
    /// asked is another call.
    #[test]
    fn what_was_let_run_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory.note(two, false, true, 0);
        memory.note(one, true, false, 0);
        memory.note(two, false, true, 0);
        assert_eq!((memory.waiting(), memory.take().map(|it| (it.action, it.allowed))), (Some(two), Some((one, true))));
        memory.note(two, false, true, 0);
        assert_eq!(memory.take().map(|it| it.action), Some(two), "what is over is no part of it");
        memory.note(one, true, false, 0);
        let file = fs::File::options().write(true).open(path(&memory)).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - AT_ONCE * 2).unwrap();
        memory.note(two, false, true, 0);
        assert_eq!(memory.take().map(|it| it.action), Some(two));
    }

    /// What waits for a person is found by the next call that is the same, and taken by one of them alone.
    #[test]
    fn what_waits_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let memory = |call: &str| Memory::of(Some(folder.path()), &event(Some(call)), "sha256:00");
        let one = ActionId::from_bits(1);
        memory("a").note(one, false, true, 0);
        assert_eq!(memory("b").waiting(), Some(one));
        assert_eq!(Memory::of(Some(folder.path()), &event(Some("b")), "sha256:01").waiting(), None);
        assert!(!memory("b").take_waiting(ActionId::from_bits(2)), "another one is not taken");
        assert_eq!((memory("b").take_waiting(one), memory("c").take_waiting(one)), (true, false));
        memory("a").note(one, false, true, 0);
        let asked = memory("a").take().unwrap();
        memory("a").forget_waiting(&asked);
        assert_eq!(memory("a").waiting(), None);
    }

    /// A yes is about one directory, and is not found from another; what came of a call is told from wherever the tool has led, or from
    /// nowhere.
    #[test]
    fn a_question_is_about_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let memory = |call: Option<&str>, cwd: &str| {
            let mut said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "T", "cwd": cwd });
            said.as_object_mut().unwrap().extend(call.map(|it| ("tool_use_id".to_owned(), json!(it))));
            let event = Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), None).unwrap();
            Memory::of(Some(folder.path()), &event, "sha256:00")
        };
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory(Some("a"), "/p").note(one, false, true, 0);
        assert_eq!((memory(Some("b"), "/p").waiting(), memory(Some("b"), "/q").waiting()), (Some(one), None));
        for (call, elsewhere) in [(Some("c"), "/q"), (Some("d"), ""), (None, "/q"), (None, "")] {
            memory(call, "/p").note(one, true, false, 3);
            assert_eq!(memory(call, elsewhere).turn(), 0);
            let told = memory(call, elsewhere).take().unwrap();
            assert_eq!((told.action, told.allowed), (one, true));
            assert!(memory(call, elsewhere).is_about(&told));
            let again = memory(call, elsewhere).take().map(|it| it.action);
            assert_eq!(again, call.map(|_| one), "another hook may tell of the same run");
        }
        for call in [Some("e"), None] {
            memory(call, "/p").note(one, false, false, 0);
            memory(call, "/q").note(two, true, false, 0);
            let told = |cwd: &str| memory(call, cwd).take().map(|it| (it.action, it.allowed));
            assert_eq!(told("/q"), Some((two, true)));
            assert_eq!(told("/p"), Some((one, false)), "what ran here is what was asked here");
        }
    }

    /// An answer that is repeated is as old as it was: to repeat it does not make it new.
    #[test]
    fn a_repeated_answer_stays_as_old_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        let one = ActionId::from_bits(1);
        memory.note(one, true, false, 0);
        let file = fs::File::options().write(true).open(path(&memory)).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - AT_ONCE * 2).unwrap();
        memory.note(one, true, false, 0);
        assert!(memory.is_of_before());
        memory.note(one, true, false, 1);
        assert!(!memory.is_of_before());
    }

    /// What somebody else wrote there is no memory, and without a directory there is none.
    #[test]
    fn what_is_no_memory_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        for text in ["", "{}", r#"{"action":"../../x","allowed":true,"same":"waits-0"}"#] {
            fs::write(folder.path().join(&memory.call), text).unwrap();
            assert_eq!(memory.take(), None, "{text}");
        }
        let id = ActionId::from_bits(1);
        let escape = json!({ "action": id, "allowed": true, "same": "waits-/../../x" });
        fs::write(folder.path().join(&memory.call), escape.to_string()).unwrap();
        assert_eq!(memory.take(), None);
        let none = Memory::of(None, &event(Some("a")), "sha256:00");
        none.note(id, true, true, 0);
        assert_eq!((none.take(), none.waiting(), none.take_waiting(id)), (None, None, false));
    }

    /// What is written comes to its place whole, for its user alone: into what stands there nothing is written, and nothing is left beside
    /// it.
    #[test]
    fn what_is_written_is_there_whole() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory.note(one, false, true, 0);
        let files = |folder: &Path| fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect::<Vec<_>>();
        let before = files(folder.path());
        assert_eq!(before.len(), 4);
        let kept = |path: &Path| elsewhere.path().join(path.file_name().unwrap());
        for path in &before {
            // Whoever writes into the file writes into this one.
            fs::hard_link(path, kept(path)).unwrap();
        }
        memory.note(two, false, true, 1);
        for path in &before {
            let (then, now) = (fs::read_to_string(kept(path)).unwrap(), fs::read_to_string(path).unwrap());
            assert!(then.contains(&one.to_string()) && now.contains(&two.to_string()), "{then} {now}");
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(files(folder.path()).len(), 4);
        for path in &before {
            fs::remove_file(path).unwrap();
            symlink(kept(path), path).unwrap();
        }
        memory.note(two, false, true, 1);
        assert!(before.iter().all(|it| fs::read_to_string(kept(it)).unwrap().contains(&one.to_string())));
        assert_eq!((memory.waiting(), memory.take().map(|it| it.action)), (Some(two), Some(two)));
        let twin = Memory::of(Some(folder.path()), &event(None), "sha256:00");
        (0..=TWINS).for_each(|_| twin.note(one, true, false, 0));
        let twins: Vec<_> = twin.twins().iter().map(|it| folder.path().join(it)).collect();
        assert!(twins.iter().all(|it| fs::metadata(it).unwrap().permissions().mode() & 0o777 == 0o600));
        assert_eq!(std::iter::from_fn(|| twin.take()).count(), usize::from(TWINS));
    }

    /// Whatever stands in the place of a memory, one that was cut anywhere or somebody else's, it says nothing of a call, lets no answer of
    /// before pass for one of now, and is in nobody's way.
    #[test]
    fn what_was_cut_short_is_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::of(Some(folder.path()), &event(Some("a")), "sha256:00");
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        memory.note(one, true, true, 3);
        let whole = |path: PathBuf| (fs::read(&path).unwrap(), path);
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| whole(it.unwrap().path())).collect();
        let longest = files.iter().map(|it| it.0.len()).max().unwrap();
        let other = br#"{"action":"act_x","allowed":true,"same":"waits-0","turn":-1,"over":0}"#;
        for cut in 0..=longest {
            for (text, path) in &files {
                let cut = text.get(..cut.min(text.len() - 1)).filter(|_| cut < longest);
                fs::write(path, cut.unwrap_or(other)).unwrap();
            }
            assert_eq!((memory.turn(), memory.waiting(), memory.take_allowed(), memory.take()), (0, None, None, None));
            assert!(memory.is_of_before(), "{cut}");
            memory.note(two, true, true, 1);
            assert_eq!((memory.turn(), memory.is_of_before(), memory.waiting()), (1, false, Some(two)), "{cut}");
            assert_eq!(memory.take().map(|it| it.action), Some(two), "{cut}");
        }
        let left = folder.path().join(format!("{UNPLACED}0"));
        for (path, text) in [(&left, "x"), (&folder.path().join(memory.twins().first().unwrap()), "")] {
            fs::write(path, text).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - AT_ONCE * 2).unwrap();
            memory.tidy();
            assert!(!path.exists(), "what a hook has left that was ended");
        }
    }
}
