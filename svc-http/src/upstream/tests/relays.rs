//! Streams as they are passed on, and what is told of them once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use http_body::Body as _;
use http_body_util::BodyExt as _;
use svc_core::state::gateway::Usage;
use tokio::sync::oneshot;

use super::*;

/// The last word of a chat stream.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Passes on what comes, and knows the last word.
#[derive(Debug, Default)]
struct Plain {
    heard: Vec<u8>,
    events: usize,
    /// How long its last word is.
    last: usize,
    /// Whether it says that it has begun with its last word alone.
    waits: bool,
}

impl Translate for Plain {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
        out.extend_from_slice(bytes);
        let from = self.heard.len().saturating_sub(5);
        self.heard.extend_from_slice(bytes);
        self.events += self.heard[from..].windows(6).filter(|it| it == b"data: ").count();
        let far = self.heard.len().saturating_sub(1 << 16);
        self.heard.drain(..far);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.heard.ends_with(DONE)
    }

    fn has_begun(&self) -> bool {
        if self.waits { self.is_done() } else { self.events > 0 }
    }

    /// The first event says who speaks, the second has a word.
    fn has_token(&self) -> bool {
        self.events >= 2
    }

    fn reported(&self) -> Option<Usage> {
        None
    }

    fn pieces(&self) -> u64 {
        self.events as u64
    }

    fn end(&mut self, out: &mut Vec<u8>) -> How {
        if self.is_done() {
            self.last = DONE.len();
            return How::Done;
        }
        let word = error("short");
        self.last = word.len();
        out.extend_from_slice(word.as_bytes());
        How::Cut(Reason::Closed)
    }

    fn cut(&mut self, how: How, out: &mut Vec<u8>) {
        if !self.is_done() {
            self.write_error(how, out);
            self.last = error(&format!("{how:?}")).len();
        }
    }

    fn write_error(&self, how: How, out: &mut Vec<u8>) {
        out.extend_from_slice(error(&format!("{how:?}")).as_bytes());
    }

    fn last_bytes(&self) -> usize {
        self.last
    }
}

fn error(why: &str) -> String {
    format!("data: {{\"error\":\"{why}\"}}\n\n")
}

/// Tells the test, once.
struct Told(oneshot::Sender<(Option<Plain>, Ended)>);

impl Finish for Told {
    type Heard = Plain;

    async fn finish(self, heard: Option<Plain>, ended: Ended) -> Option<Charged> {
        // It is not told at once: whoever waits for the cost has to wait.
        tokio::task::yield_now().await;
        self.0.send((heard, ended)).ok().map(|()| Charged { cost: 42, unpriced: false })
    }
}

type Relayed = (RelayBody<Plain, Told>, oneshot::Receiver<(Option<Plain>, Ended)>, Arc<Switch>);

async fn relayed(upstreams: &Upstreams, target: &Target, model: &str) -> Relayed {
    let (told, hears) = oneshot::channel();
    let guard = Guard::new(upstreams, Told(told));
    let switch = Arc::new(Switch::default());
    let incoming = stream(upstreams, target, &call(model, true)).await;
    let begun = Relay::begin(incoming, Plain::default(), &mut None).await.unwrap();
    (begun.into_body(guard, Arc::clone(&switch), true), hears, switch)
}

/// What the client hears, the cost in the trailer, and how it ended.
async fn run(target: &Target, upstreams: &Upstreams, model: &str) -> (String, Option<u64>, Ended) {
    let (body, hears, _switch) = relayed(upstreams, target, model).await;
    let all = body.collect().await.unwrap();
    let cost = all.trailers().and_then(|it| it.get(COST_TRAILER)?.to_str().ok()?.parse().ok());
    let text = String::from_utf8_lossy(&all.to_bytes()).into_owned();
    let (heard, ended) = hears.await.unwrap();
    assert!(heard.is_some());
    (text, cost, ended)
}

/// A stream arrives as it was sent, its cost behind it, and its connection is used again.
#[tokio::test]
async fn a_stream_arrives_as_it_was_sent() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let (text, cost, ended) = run(&target, &upstreams, "m--words-30").await;
    assert_eq!((text.matches("data: ").count(), cost, ended.how), (33, Some(42), How::Done));
    assert!(text.ends_with("data: [DONE]\n\n") && ended.first_ms.is_some_and(|it| it <= ended.ms));
    let (again, ..) = run(&target, &upstreams, "m--words-30--pace-2").await;
    assert_eq!(text, again, "however slowly it came");
    mock.until(|it| it.ended == 2).await;
    assert_eq!(mock.counts().connections, 1, "{:?}", mock.counts());
}

/// Keeps what came of the call when it is told to.
struct Kept(oneshot::Receiver<()>);

impl Finish for Kept {
    type Heard = Plain;

    async fn finish(self, _heard: Option<Plain>, _ended: Ended) -> Option<Charged> {
        self.0.await.ok().map(|()| Charged { cost: 7, unpriced: false })
    }
}

/// A stream of which all but the last word was heard, which waits; what was heard, what keeps the call, and the switch.
async fn until_last(
    mock: &Mock,
    upstreams: &Upstreams,
    model: &str,
    events: usize,
) -> (RelayBody<Plain, Kept>, String, oneshot::Sender<()>, Arc<Switch>) {
    let (keep, kept) = oneshot::channel();
    let incoming = stream(upstreams, &chat_target(upstreams, mock), &call(model, true)).await;
    let begun = Relay::begin(incoming, Plain::default(), &mut None).await.unwrap();
    let switch = Arc::new(Switch::default());
    let mut body = begun.into_body(Guard::new(upstreams, Kept(kept)), Arc::clone(&switch), true);
    let mut text = String::new();
    while text.matches("data: ").count() < events {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&data).unwrap());
    }
    mock.until(|it| it.running == 0).await;
    let waits = poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending()));
    assert!(waits.await, "{model}");
    (body, text, keep, switch)
}

/// All but the last word goes on as it comes; the last waits until what came of the call is kept, be it an error.
#[tokio::test]
async fn the_last_word_waits_for_the_record() {
    let (mock, upstreams) = (mock(), usual());
    for (model, events, last) in [
        ("m--words-30", 32, "data: [DONE]\n\n"),
        ("m--words-30--short-9", 9, "data: {\"error\":\"short\"}\n\n"),
        ("m--words-30--cut-9", 9, "data: {\"error\":\"Cut(Closed)\"}\n\n"),
    ] {
        let (body, text, keep, _switch) = until_last(&mock, &upstreams, model, events).await;
        assert!(!text.contains(last), "{model}: {text}");
        keep.send(()).unwrap();
        let rest = body.collect().await.unwrap();
        let cost = rest.trailers().and_then(|it| it.get(COST_TRAILER)?.to_str().ok()?.parse().ok());
        assert_eq!((cost, rest.to_bytes()), (Some(7), last.into()), "{model}");
    }
}

/// The time to the first token is not that to the first bytes, which only say who speaks.
#[tokio::test]
async fn the_first_token_is_no_first_byte() {
    let (mock, upstreams) = (mock(), usual());
    let (.., ended) = run(&chat_target(&upstreams, &mock), &upstreams, "m--words-3--pace-40").await;
    assert!(ended.first_ms.is_some_and(|it| (40..=ended.ms).contains(&it)), "{ended:?}");
}

/// Whatever breaks a stream, the client has an error event at its end, and what came of it says what it was.
#[tokio::test]
async fn a_broken_stream_ends_with_an_error() {
    let (mock, upstreams) = (mock(), usual());
    let short = Duration::from_millis(80);
    let quick = Times { idle: short, total: secs(3), ..upstreams.times() };
    let late = Times { first_token: short, ..upstreams.times() };
    let all = Times { total: Duration::from_millis(300), ..upstreams.times() };
    for (model, times, frames, how) in [
        ("m--cut-3", upstreams.times(), 3, How::Cut(Reason::Closed)),
        ("m--half-3", upstreams.times(), 4, How::Cut(Reason::Closed)),
        ("m--short-3", upstreams.times(), 3, How::Cut(Reason::Closed)),
        ("m--stall-3", quick, 3, How::Cut(Reason::Idle)),
        ("m--pings-3", quick, 3, How::Cut(Reason::Idle)),
        ("m--stall-1", late, 1, How::Cut(Reason::FirstToken)),
        ("m--pace-20--words-1000", all, 0, How::Cut(Reason::Total)),
    ] {
        let target = target_at(&upstreams, &mock.chat_url(), Dialect::Chat, times);
        let (text, cost, ended) = run(&target, &upstreams, model).await;
        assert_eq!((ended.how, cost), (how, Some(42)), "{model}");
        assert_eq!(ended.first_ms.is_some(), how != How::Cut(Reason::FirstToken), "{model}");
        let error = if model.contains("short") { "short".to_owned() } else { format!("{how:?}") };
        assert!(text.ends_with(&format!("data: {{\"error\":\"{error}\"}}\n\n")), "{model}: {text}");
        let seen = text.matches("data: ").count() - 1;
        assert!(frames == 0 || seen == frames, "{model}: {text}");
    }
    assert_eq!(mock.until(|it| it.running == 0 && it.open == 0).await.open, 0, "no connection is left");
}

/// A client that hangs up ends the call, and what came of it is told all the same.
#[tokio::test]
async fn a_hang_up_is_told_and_ends_the_call() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let (mut body, hears, _switch) = relayed(&upstreams, &target, "m--stall-3").await;
    assert!(body.frame().await.unwrap().unwrap().is_data());
    drop(body);
    let (heard, ended) = hears.await.unwrap();
    assert_eq!((ended.how, heard.map(|it| it.heard.is_empty())), (How::HungUp, Some(false)));
    assert_eq!(mock.until(|it| it.open == 0).await.hung_up, 1);
    upstreams.settled().await;
    let (told, hears) = oneshot::channel();
    drop(Guard::new(&upstreams, Told(told)));
    let (heard, ended) = hears.await.unwrap();
    assert!(heard.is_none() && ended.how == How::HungUp, "before there was a stream");
}

/// A switch cuts a stream at once, also one on which nothing comes.
#[tokio::test]
async fn a_switch_cuts_a_stream() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let (body, hears, switch) = relayed(&upstreams, &target, "m--stall-3").await;
    let reading = tokio::spawn(body.collect());
    mock.until(|it| it.running == 1).await;
    switch.cut(Stop::Agent);
    let text = reading.await.unwrap().unwrap().to_bytes();
    assert!(text.ends_with(b"data: {\"error\":\"Stopped(Agent)\"}\n\n"));
    assert_eq!(hears.await.unwrap().1.how, How::Stopped(Stop::Agent));
    let (body, _hears, switch) = relayed(&upstreams, &target, "m--stall-3").await;
    switch.cut(Stop::Agent);
    let text = body.collect().await.unwrap().to_bytes();
    assert_eq!(text, "data: {\"error\":\"Stopped(Agent)\"}\n\n", "what waited is not passed on");
    let (body, _hears, switch) = relayed(&upstreams, &target, "m--stall-3").await;
    switch.cut(Stop::Server);
    let text = body.collect().await.unwrap().to_bytes();
    let last = b"\n\ndata: {\"error\":\"Stopped(Server)\"}\n\n";
    assert!(text.ends_with(last) && text.len() > last.len(), "what had come is the client's: {text:?}");
    mock.until(|it| it.open == 0).await;
}

/// Whoever is stopped after the end was read, and before the last word went out, hears that in its place: while what came of the
/// call is being kept, and where nobody had asked for what was read.
#[tokio::test]
async fn a_switch_outruns_the_last_word() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let expected = "data: {\"error\":\"Stopped(Agent)\"}\n\n";
    for (model, events) in [("m--words-30", 32), ("m--words-30--short-9", 9), ("m--words-30--cut-9", 9)] {
        let (mut body, _, keep, switch) = until_last(&mock, &upstreams, model, events).await;
        assert!(!body.takes_back(), "{model}");
        switch.cut(Stop::Agent);
        assert!(body.takes_back(), "{model}: what is held is dropped");
        keep.send(()).unwrap();
        let rest = body.collect().await.unwrap();
        assert!(rest.trailers().is_some_and(|it| it[COST_TRAILER] == "7"), "{model}");
        assert_eq!(rest.to_bytes(), expected, "{model}");
    }
    // The last word was given, and whoever was to hand it on still waits.
    for (is_stopped, rest) in [(true, expected), (false, "")] {
        let (mut body, _, keep, switch) = until_last(&mock, &upstreams, "m--words-30", 32).await;
        keep.send(()).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), DONE);
        if is_stopped {
            switch.cut(Stop::Agent);
        }
        assert_eq!(body.takes_back(), is_stopped);
        let heard = body.collect().await.unwrap();
        assert!(heard.trailers().is_some_and(|it| it[COST_TRAILER] == "7"));
        assert_eq!(heard.to_bytes(), rest);
    }
    let (told, hears) = oneshot::channel();
    let incoming = stream(&upstreams, &target, &call("m--words-3", true)).await;
    let whole = Plain { waits: true, ..Plain::default() };
    let begun = Relay::begin(incoming, whole, &mut None).await.unwrap();
    assert!(begun.translator().is_done());
    let switch = Arc::new(Switch::default());
    let body = begun.into_body(Guard::new(&upstreams, Told(told)), Arc::clone(&switch), true);
    switch.cut(Stop::Agent);
    assert_eq!(body.collect().await.unwrap().to_bytes(), expected);
    assert_eq!(hears.await.unwrap().1.how, How::Stopped(Stop::Agent));
}

/// A client that asks for no more holds nothing open: whoever is stopped, and the time for the whole call, end the stream at its
/// provider, which is told, and the client hears of it once it reads on.
#[tokio::test]
async fn a_client_that_does_not_read_holds_nothing_open() {
    let (mock, upstreams) = (mock(), usual());
    let (usual, short) = (upstreams.times(), Times { total: Duration::from_millis(300), ..upstreams.times() });
    for (times, stop, how) in [
        (usual, Some(Stop::Agent), How::Stopped(Stop::Agent)),
        (usual, Some(Stop::Server), How::Stopped(Stop::Server)),
        (short, None, How::Cut(Reason::Total)),
    ] {
        let target = target_at(&upstreams, &mock.chat_url(), Dialect::Chat, times);
        for has_read in [false, true] {
            let (mut body, hears, switch) = relayed(&upstreams, &target, "m--words-1000000").await;
            if has_read {
                assert!(body.frame().await.unwrap().unwrap().is_data());
            }
            stop.into_iter().for_each(|it| switch.cut(it));
            let (heard, ended) = timeout(secs(20), hears).await.expect("it ends by itself").unwrap();
            assert_eq!((ended.how, heard.is_some()), (how, true));
            mock.until(|it| it.open == 0).await;
            let rest = body.collect().await.unwrap();
            assert!(rest.trailers().is_some_and(|it| it[COST_TRAILER] == "42"), "{how:?}");
            let (rest, last) = (rest.to_bytes(), error(&format!("{how:?}")));
            assert!(rest.ends_with(last.as_bytes()), "{how:?} {rest:?}");
            let waited = !has_read && stop != Some(Stop::Agent);
            assert_eq!(
                rest.len() > last.len(),
                waited,
                "what had come is the client's but where its agent was stopped"
            );
        }
    }
    // One that goes away then has been told of already.
    let (body, hears, switch) = relayed(&upstreams, &chat_target(&upstreams, &mock), "m--stall-3").await;
    switch.cut(Stop::Agent);
    assert_eq!(hears.await.unwrap().1.how, How::Stopped(Stop::Agent));
    drop(body);
    upstreams.settled().await;
    // One that takes what comes before the last word, and no more, keeps nobody from keeping what came of it.
    let (mut body, hears, _switch) = relayed(&upstreams, &chat_target(&upstreams, &mock), "m--words-3").await;
    mock.until(|it| it.running == 0).await;
    assert!(body.frame().await.unwrap().unwrap().is_data());
    let ended = timeout(secs(20), hears).await.expect("it is told by itself").unwrap().1;
    assert_eq!((ended.how, body.collect().await.unwrap().to_bytes()), (How::Done, DONE.into()));
    // What was read to its end has come to its end, however late its client asks for it.
    let (told, hears) = oneshot::channel();
    let target = target_at(&upstreams, &mock.chat_url(), Dialect::Chat, short);
    let incoming = stream(&upstreams, &target, &call("m--words-3", true)).await;
    let whole = Plain { waits: true, ..Plain::default() };
    let begun = Relay::begin(incoming, whole, &mut None).await.unwrap();
    let body = begun.into_body(Guard::new(&upstreams, Told(told)), Arc::default(), true);
    assert_eq!(hears.await.unwrap().1.how, How::Done);
    let text = body.collect().await.unwrap().to_bytes();
    assert!(text.ends_with(DONE) && !text.windows(5).any(|it| it == b"error"), "{text:?}");
}

/// What is readable together is handed on together, and never more than a read or two of it is held.
#[tokio::test]
async fn frames_are_handed_on_together() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let (mut body, hears, _switch) = relayed(&upstreams, &target, "m--words-5000--lines-100000").await;
    let (mut frames, mut bytes, mut events) = (0, 0, 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.unwrap().into_data() else { continue };
        assert!(data.len() <= 2 * 64 * 1024, "{} bytes at once", data.len());
        events += data.windows(6).filter(|it| it == b"data: ").count();
        (frames, bytes) = (frames + 1, bytes + data.len());
    }
    assert!(bytes > 1_000_000 && events > 4_900 && frames < events / 10, "{frames} frames of {events} events");
    assert_eq!(hears.await.unwrap().1.how, How::Done);
}

/// A stream that breaks before the client has heard anything leaves another attempt open.
#[tokio::test]
async fn nothing_heard_is_nothing_begun() {
    /// Hears comments alone.
    struct Deaf;

    impl Translate for Deaf {
        fn push(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(), Reason> {
            if bytes.starts_with(b"data: {\"error\"") { Err(Reason::Unreadable) } else { Ok(()) }
        }
        fn is_done(&self) -> bool {
            false
        }
        fn has_begun(&self) -> bool {
            false
        }
        fn has_token(&self) -> bool {
            false
        }
        fn reported(&self) -> Option<Usage> {
            Some(Usage { input: 5, ..Usage::default() })
        }
        fn pieces(&self) -> u64 {
            0
        }
        fn end(&mut self, _out: &mut Vec<u8>) -> How {
            How::Cut(Reason::Closed)
        }
        fn cut(&mut self, _how: How, _out: &mut Vec<u8>) {}
        fn write_error(&self, _how: How, _out: &mut Vec<u8>) {}
        fn last_bytes(&self) -> usize {
            0
        }
    }

    let (mock, upstreams) = (mock(), usual());
    let times = Times { first_token: Duration::from_millis(150), ..upstreams.times() };
    let target = target_at(&upstreams, &mock.chat_url(), Dialect::Chat, times);
    for (model, reason) in [
        ("m--cut-2", Reason::Closed),
        ("m--short-2", Reason::Empty),
        ("m--stall-2", Reason::FirstToken),
        ("m--error-0", Reason::Unreadable),
        ("m--lines-100000000", Reason::FirstToken),
    ] {
        let incoming = stream(&upstreams, &target, &call(model, true)).await;
        let mut told = None;
        let failed = Relay::begin(incoming, Deaf, &mut told).await.unwrap_err();
        assert_eq!((failed.reason, failed.status, failed.was_sent), (reason, Some(200), true), "{model}");
        assert_eq!(told.map(|it| it.input), Some(5), "what it told is charged: {model}");
    }
    mock.until(|it| it.open == 0).await;
}

/// Tells whether it is told within a request.
struct Within(oneshot::Sender<bool>);

impl Finish for Within {
    type Heard = Plain;

    async fn finish(self, _heard: Option<Plain>, _ended: Ended) -> Option<Charged> {
        let is_within = crate::at_hand::AtHand::now().is_some();
        self.0.send(is_within).ok().map(|()| Charged { cost: 0, unpriced: false })
    }
}

/// What comes of a call is told within the request that brought it, though that was answered before: with its end, and where nobody
/// waits for that.
#[tokio::test]
async fn what_comes_of_a_call_is_told_within_its_request() {
    let upstreams = usual();
    for is_waited_for in [true, false] {
        let (told, hears) = oneshot::channel();
        let at_hand = crate::at_hand::AtHand::of(http::HeaderValue::from_static("req-1"));
        let guard = at_hand.within(async { Guard::new(&upstreams, Within(told)) }).await;
        if is_waited_for {
            guard.finish(None, How::Done, None).await.unwrap();
        } else {
            drop(guard);
        }
        assert!(hears.await.unwrap(), "{is_waited_for}");
    }
}
