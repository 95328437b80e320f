//! What a connection comes to whose client has forgotten it.

use svc_core::refusal::Kind;
use svc_core::state::connect::{CONNECTION_IDLE, EndedBy, TOKENS_KEPT};
use svc_core::state::gate::Agent;
use svc_core::value::Span;

use super::connect::{Scene, kept};

/// A connection whose tokens nobody renews for ninety days ends, and its refresh token is worth nothing from then on; a renewal counts
/// as use, and one that comes before the timer has run finds it over too.
#[test]
fn a_connection_that_nobody_uses_ends() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    scene.world.advance(Span::millis(CONNECTION_IDLE.as_millis() - 1));
    let pair = scene.refresh(&pair.refresh).unwrap();
    scene.world.advance(Span::millis(CONNECTION_IDLE.as_millis() - 1));
    assert_eq!(scene.ended(), None);
    scene.world.advance(Span::millis(1));
    assert_eq!(scene.ended(), Some(EndedBy::Unused));
    assert_eq!(kept(&mut scene)[3], 0, "its access token went with it");
    assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
    let agent = scene.agent.agent;
    assert_eq!(scene.world.row::<Agent>(agent).connections().count(), 0);
    scene.world.advance(TOKENS_KEPT);
    assert_eq!(kept(&mut scene), [0, 0, 0, 0]);
    scene.world.audit();
    // A timer that is late gives no token more time.
    let mut scene = Scene::new();
    let late = scene.connect();
    scene.world.clock().advance(CONNECTION_IDLE);
    assert_eq!(scene.refresh(&late.refresh).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.ended(), Some(EndedBy::Unused));
    scene.world.audit();
}
