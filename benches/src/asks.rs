//! What the load asks for: payments, each of which a mandate allows.

use crate::gate::{MANDATES, MERCHANTS, merchant};
use crate::load::Source;
use crate::server::agent_key;

/// Payments of all agents to all merchants, in turn.
#[derive(Debug)]
pub struct Authorize {
    agents: usize,
    asked: usize,
    keyed: bool,
    /// The first answer.
    pub sample: Option<Vec<u8>>,
    /// The receipts of the answers, where they are kept.
    pub receipts: Option<Vec<String>>,
}

impl Authorize {
    /// Payments of so many agents; each with an idempotency key of its own if `keyed`.
    #[must_use]
    pub const fn new(agents: usize, keyed: bool) -> Self {
        Self { agents, asked: 0, keyed, sample: None, receipts: None }
    }
}

impl Source for Authorize {
    fn next(&mut self, into: &mut Vec<u8>) -> bool {
        self.asked += 1;
        let (asked, agent) = (self.asked, self.asked * 619 % self.agents.max(1));
        let merchant = merchant(asked / 7 % MANDATES, asked / 3 % MERCHANTS);
        let body = format!(
            "{{\"type\":\"payment\",\"summary\":\"Order number {asked} of office supplies\",\
             \"payment\":{{\"amount\":{},\"currency\":\"EUR\",\
             \"merchant\":{{\"name\":\"Office shop\",\"domain\":\"{merchant}\"}}}}}}",
            101 + asked % 30_011
        );
        let mut headers = format!("authorization: Bearer {}\r\n", agent_key(agent));
        if self.keyed {
            // Keys as clients make them: in no order.
            let scattered = (asked as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            headers.push_str(&format!("idempotency-key: order-{scattered:016x}\r\n"));
        }
        post(into, "/v1/actions/authorize", &headers, &body);
        true
    }

    fn answered(&mut self, body: &[u8]) {
        if self.sample.is_none() {
            self.sample = Some(body.to_vec());
        }
        let Some(receipts) = &mut self.receipts else { return };
        let text = String::from_utf8_lossy(body);
        let Some(receipt) = member(&text, "\"receipt\":\"") else { return };
        receipts.push(receipt.to_owned());
    }
}

/// Writes a request.
pub fn post(into: &mut Vec<u8>, path: &str, headers: &str, body: &str) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:8080\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    into.extend_from_slice(head.as_bytes());
    into.extend_from_slice(body.as_bytes());
}

/// The text behind `name` up to the next quotation mark.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_once(name)?.1.split('"').next()
}
