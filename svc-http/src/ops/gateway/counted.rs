//! A request's tokens, counted by its provider.

use bytes::Bytes;
use serde::Deserialize;
use svc_core::dialect::{self, Body};
use svc_core::refusal::{AttemptedModel, Refusal};
use svc_core::rules::gateway::admit::Admitted;
use svc_core::state::gateway::{Demand, Dialect};

use super::passed;
use super::run::rejection;
use super::targets::Present;
use crate::dispatch::Call;
use crate::ops::GateService;
use crate::upstream::{self, Reply, What};

/// How many tokens a request has, as far as its provider tells.
pub(super) enum Count {
    /// So many.
    Told(u64),
    /// It cannot tell, or does not now: what is said of that beside an estimate.
    Untold(&'static str),
}

/// What a provider says of a request's tokens; what it says beside their number stays here.
#[derive(Deserialize)]
struct Counted {
    input_tokens: u64,
}

/// Counts a request's tokens at its provider, where that is of the messages shape and tells a number.
///
/// # Errors
/// `upstream_rejected` where it says that the request is at fault.
pub(super) async fn count(
    service: &GateService,
    body: &Body,
    demand: &Demand,
    admitted: &Admitted,
    call: &Call,
) -> Result<Count, Refusal> {
    const NOW: Count = Count::Untold("the provider has told no count now: this is an estimate");
    let Some((upstream, model)) = admitted.at(&admitted.place) else { return Ok(NOW) };
    if upstream.dialect != Dialect::Messages {
        return Ok(Count::Untold("the provider does not count tokens: this is an estimate"));
    }
    let whose = (admitted.call.workspace, upstream);
    let Ok(Present { target, moved }) = service.targets.of(&service.gate, &service.upstreams, whose) else {
        return Ok(NOW);
    };
    let upstream = moved.as_deref().unwrap_or(upstream);
    let sent = body.to_upstream(dialect::Target::of_call(upstream, model, &admitted.call, demand, false))?;
    let (query, headers) = (passed::query(&call.uri), passed::headers(&call.headers));
    let asked = upstream::Call {
        what: What::Count,
        body: Bytes::from(sent),
        stream: false,
        query: query.as_deref(),
        headers: &headers,
    };
    match service.upstreams.send(&target, &asked).await {
        Ok(Reply::Whole(whole)) => {
            Ok(serde_json::from_slice::<Counted>(&whole.body).map_or(NOW, |it| Count::Told(it.input_tokens)))
        }
        Err(failed) if failed.is_the_clients() => {
            let attempted = AttemptedModel {
                model: model.name.as_str().into(),
                provider: upstream.name.as_str().into(),
                status: failed.status,
                error: failed.error().into(),
            };
            Err(rejection(&failed, vec![attempted]))
        }
        Ok(Reply::Stream(_)) | Err(_) => Ok(NOW),
    }
}

#[cfg(test)]
mod tests {
    use svc_core::refusal::Refusal;

    use super::rejection;
    use crate::upstream::{Failed, Reason};

    /// What a provider says of a prompt that is too long is told in the words that clients look for.
    #[test]
    fn a_prompt_that_is_too_long_is_told_as_one() {
        let told = |message: &str| -> Refusal {
            let mut failed = Failed { status: Some(400), ..Failed::sent(Reason::Status) };
            failed.said.message = Some(message.into());
            rejection(&failed, Vec::new())
        };
        let code = |it: &Refusal| it.call().and_then(|it| it.code.clone());
        let long = told("This model's maximum context length is 8 tokens");
        assert_eq!(long.message(), "prompt is too long: This model's maximum context length is 8 tokens");
        assert_eq!((long.type_(), code(&long).as_deref()), ("upstream_rejected", Some("context_length_exceeded")));
        let other = told("`messages` is required");
        assert_eq!((other.message(), code(&other)), ("the provider refused the request: `messages` is required", None));
    }
}
