//! The personal texts behind a record's commitments, and the salt that lets them be shown.
//!
//! **Invariant:** a record never holds a personal text, only its commitment; letting go of this row is what erases it, and
//! the ledger's tree stays whole.

use serde::{Deserialize, Serialize};

use super::entry::{Actor, Fact};
use crate::state::gate::{commitment, commitment_salt};
use crate::value::Id as _;
use crate::value::canonical::with_member;
use crate::value::digest::Digest;
use crate::value::id::{EvidenceId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};

/// The texts that one record commits to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosure {
    /// The record.
    pub entry: EvidenceId,
    /// Whose ledger it is in.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// The id of what the record is about.
    pub subject: Box<str>,
    /// The person who wrote them, where a person did: who did what the record tells, or in whose words somebody else did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PrincipalId>,
    /// Sixteen random bytes that the salt of every text is derived from.
    #[serde(with = "crate::state::gate::salt_serde")]
    pub salt: [u8; 16],
    /// The members of the record's `data`, dotted, each with its text.
    pub texts: Vec<(Box<str>, Box<str>)>,
}

impl Disclosure {
    /// The disclosure of `texts`, dotted members of the record's `data`, and the record's fact with their commitments.
    #[must_use]
    pub fn of(
        entry: EvidenceId,
        workspace: WorkspaceId,
        fact: Fact,
        salt: [u8; 16],
        texts: &[(&str, &str)],
    ) -> (Self, Fact) {
        let mut data = fact.data;
        for (path, text) in texts {
            data = with_member(&data, path, &commitment(&salt, path, text));
        }
        let by = if let Actor::Person(id) = &fact.actor { Some(*id) } else { None };
        let subject = fact.subject.to_string().into();
        let texts = texts.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        (Self { entry, workspace, subject, by, salt, texts }, Fact { data, ..fact })
    }

    /// The salt of the text at `path`.
    #[must_use]
    pub fn salt_of(&self, path: &str) -> [u8; 16] {
        commitment_salt(&self.salt, path)
    }

    /// The list of everything disclosed about the thing with this id.
    #[must_use]
    pub fn about(subject: &str) -> u128 {
        Digest::of(subject).bits()
    }
}

impl Linked for Disclosure {
    fn links(&self) -> Vec<Link> {
        let about = Link::by_id(Index::PersonalOf, Self::about(&self.subject), self.entry);
        let by = self.by.map(|id| Link::by_id(Index::PersonalBy, id.bits(), self.entry));
        std::iter::once(about).chain(by).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::evidence::Subject;
    use crate::value::id::AgentId;

    /// The record holds the commitment, at its path, and the row what shows it.
    #[test]
    fn a_text_enters_a_record_as_its_commitment() {
        let agent = AgentId::from_bits(7);
        let fact = Fact {
            kind: "agent.renamed",
            actor: Actor::Person(PrincipalId::from_bits(9)),
            subject: Subject::Agent(agent),
            data: r#"{"agentId":"a","new":{"tier":"standard"}}"#.to_owned(),
        };
        let texts = [("reason", "it spent"), ("new.name", "Buyer"), ("old.name", "Bayer")];
        let (row, fact) = Disclosure::of(EvidenceId::from_bits(3), WorkspaceId::from_bits(1), fact, [5; 16], &texts);
        let made = |path: &str, text: &str| commitment(&[5; 16], path, text);
        let expected = format!(
            r#"{{"agentId":"a","new":{{"name":{},"tier":"standard"}},"old":{{"name":{}}},"reason":{}}}"#,
            made("new.name", "Buyer"),
            made("old.name", "Bayer"),
            made("reason", "it spent"),
        );
        assert_eq!(fact.data, expected);
        assert_eq!(row.by, Some(PrincipalId::from_bits(9)));
        let hash = hex::encode(Digest::of([row.salt_of("reason").as_slice(), b"it spent"].concat()).as_bytes());
        assert!(fact.data.contains(&hash));
    }
}
