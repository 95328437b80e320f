//! The table of refusals: one row a kind. HTTP answers, JSON-RPC errors and the page of errors all read these rows.
//!
//! A *type* is what callers branch on; a *kind* is finer where one type comes with two statuses or two pieces of advice.
//! A message is in lower case without a full stop, advice is one sentence. Nothing else that answers writes a status or a type
//! down.

/// Declares every kind of refusal with its status, type, default message and advice.
macro_rules! refusals {
    ($($(#[$doc:meta])* $kind:ident = $status:literal $type_:literal, $message:literal $(, fix $fix:literal)?;)*) => {
        /// What was refused, finer than its type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Kind {$(
            $(#[$doc])*
            #[doc = concat!("`", $status, " ", $type_, "`: ", $message, ".")]
            $kind,
        )*}

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Whether this is the same word to callers as `other`.
            #[must_use]
            pub fn is_told_as(self, other: Self) -> bool {
                self.row().type_ == other.row().type_
            }

            /// The row of this kind.
            #[must_use]
            pub const fn row(self) -> &'static Row {
                match self {$(
                    Self::$kind => &Row { name: stringify!($kind), status: $status, type_: $type_, message: $message, fix: refusals!(@fix $($fix)?) },
                )*}
            }
        }
    };
    (@fix) => { None };
    (@fix $fix:literal) => { Some($fix) };
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind's name.
    pub name: &'static str,
    /// The HTTP status, 400 to 599.
    pub status: u16,
    /// The stable word that callers branch on.
    pub type_: &'static str,
    /// What the refusal says where the place that made it has nothing better.
    pub message: &'static str,
    /// One sentence on what to send differently; every 4xx has one.
    pub fix: Option<&'static str>,
}

/// The advice in place of one that names `errors`, where none are told.
pub(super) const FIX_UNNAMED: &str = "Correct what this error describes and send the request again.";

/// The advice where a body did not come to its end.
pub(super) const FIX_UNFINISHED: &str = "Send the request again with the whole of its body, without a pause in it.";
/// The advice where a session may do nothing before its second factor is set up.
pub(super) const FIX_ENROLL: &str =
    "Set a second factor up first, in the console or by `POST /api/me/totp` and `POST /api/me/totp/confirm`.";
/// The advice where whoever is invited has signed in before.
pub(super) const FIX_MEMBER: &str = "Change their role or teams instead; where they cannot sign in, whoever runs the server makes them a link: `svc sign-in-link EMAIL`.";
/// The advice where nobody would be an owner any more.
pub(super) const FIX_LAST_OWNER: &str = "Make another member an owner first.";
/// The advice where no single change of the policy admits a model.
pub(super) const FIX_TOGETHER: &str = "Change several constraints together: `rejectedBy` of each of the `candidates` of `POST /v1/route/preview` tells which.";
/// The advice where a prompt is too long for the models that could answer.
pub(super) const FIX_TOO_LONG: &str = "Send a shorter prompt, such as one in which the conversation is summed up.";
/// The advice where a hold stops an agent, or every agent: starting the agent is no use while it stands.
pub(super) const FIX_HELD: &str = "Do not retry; an owner or an admin has to lift the hold that `hold` names.";
/// The advice where a word stands where an id belongs, and another route with this method has a word like it there.
pub(super) const FIX_MISSPELT: &str = "Send it to the route that `didYouMean` names, if that is meant; else use one of the methods in the `allow` header.";
/// The advice where a client speaks the third of the model APIs.
pub(super) const FIX_RESPONSES: &str = "Switch the client to chat completions (`POST /v1/chat/completions`) or messages (`POST /anthropic/v1/messages`): svc speaks these, and not the Responses API.";

refusals! {
    // Every route.
    InvalidJson = 400 "invalid_json", "the body is not JSON that this service reads", fix "Send one JSON object in UTF-8 with unique member names and at most 64 levels.";
    InvalidRequest = 400 "invalid_request", "the request is malformed", fix "Correct the fields that `errors` names and send the request again.";
    Unauthenticated = 401 "unauthenticated", "no credential that this route reads was sent", fix "Send the credential that this route takes, as its documentation says.";
    /// What a signed request is verified by, whatever of it is wrong.
    WrongSignature = 401 "unauthenticated", "the signature of this request does not fit, or it is too old or was received before", fix "Sign the body as it is sent, at the present time, with a secret of the integration that is in force, and send it once.";
    /// What somebody signs in by, whatever of it is wrong.
    WrongSignIn = 401 "unauthenticated", "what was sent to sign in with does not fit, or is used up or too old", fix "Send the account's own e-mail address and password, a link that was not used yet, or a new code with the `pending` of this sign-in.";
    InvalidApiKey = 401 "invalid_api_key", "the key is unknown, expired or revoked", fix "Send a key that is in force; `svc key create` makes a new one, and a client that a person let in refreshes its token or connects again.";
    Forbidden = 403 "forbidden", "this caller may not do that", fix "Ask somebody whose role allows it, or use a credential that does.";
    /// The session alone is not enough: the second factor has to be shown again.
    SecondFactorAsked = 403 "forbidden", "this takes the second factor once more", fix "Send the `code` that your authenticator app shows now, or a `recoveryCode`; an account without a second factor sets one up first.";
    /// The request named another host than the deployment's own.
    ForeignHost = 403 "forbidden", "this is answered at the deployment's own address alone", fix "Send the request to the address that the server was started with (`baseUrl`): its host and its port.";
    /// A page of another origin speaks MCP.
    ForeignOrigin = 403 "forbidden", "pages of another origin are not answered", fix "Connect from a program, which sends no `origin`, or from a page of the deployment's own address (`baseUrl`).";
    Csrf = 403 "csrf", "the write did not come from this console", fix "Send the header `x-svc-csrf: 1` from the deployment's own origin.";
    NotFound = 404 "not_found", "there is no such object here", fix "Check the id, and that the credential belongs to the same workspace and agent.";
    RouteNotFound = 404 "route_not_found", "no route has this method and path", fix "Check the method and the path against `/docs`.";
    MethodNotAllowed = 405 "method_not_allowed", "this path is served with other methods", fix "Use one of the methods in the `allow` header.";
    BodyTooLarge = 413 "body_too_large", "the body is over the limit", fix "Send a smaller body.";
    UriTooLong = 414 "uri_too_long", "the path and query are over the limit", fix "Send a shorter path and query.";
    HeadersTooLarge = 431 "headers_too_large", "the headers are over the limit", fix "Send fewer or shorter headers, such as cookies.";
    RateLimited = 429 "rate_limited", "too many requests", fix "Wait as many seconds as `retry-after` says.";
    Internal = 500 "internal", "internal error";
    /// A verification whose commit may or may not have happened.
    VerifyUnknown = 500 "internal", "internal error", fix "Ask again with the same `idempotency-key`; without one, treat the receipt as spent.";
    NotReady = 503 "not_ready", "this server cannot decide at the moment", fix "Ask again after as many seconds as `retry-after` says.";

    // Another person must do it.
    /// The caller can never do it.
    DutiesNever = 403 "separation_of_duties", "this caller can never do that", fix "Let somebody else do it.";
    /// Another state would allow it.
    DutiesNow = 409 "separation_of_duties", "another person must do that as things stand", fix "Let another owner or admin do it.";
    SecondOwnerRequired = 409 "second_owner_required", "a second owner must agree", fix "Let another owner agree to it in the approval; where there is no other owner, make one first.";
    SecondPersonRequired = 409 "second_person_required", "a second person must approve", fix "Let another person who may decide it approve as well: nobody whom the first has lately invited or given a role, nor who did so to the first.";

    // The gate.
    /// Of an action.
    InvalidStatus = 400 "invalid_status", "`status` is not an outcome", fix "Send `completed`, `failed` or `cancelled`.";
    InvalidTaskStatus = 400 "invalid_status", "`status` is not an outcome of a task", fix "Send `accepted`, `rejected`, `partial` or `abandoned`.";
    InvalidAmount = 400 "invalid_amount", "`amount` is not a whole number of minor units that can be settled", fix "Send a whole number of minor units, 0 or more, and only for an action with a payment.";
    /// Agents or mandates.
    PlanAgents = 402 "plan_limit_reached", "the plan's allowance of agents or mandates is used", fix "Remove an agent or a mandate, or move to a larger plan.";
    AgentKeyRequired = 403 "agent_key_required", "this key is not an agent's", fix "Send the agent's own key in `authorization: Bearer`.";
    AgentNotFound = 403 "agent_not_found", "the agent of this key has been removed", fix "Register the agent again and use its new key.";
    IdempotencyConflict = 409 "idempotency_conflict", "the idempotency key was used for a different request", fix "Send the first request unchanged, or a new key for a new request.";
    NotAllowed = 409 "not_allowed", "the object's state does not allow that", fix "Read the object and act on its present state.";
    AlreadySettled = 409 "already_settled", "the action is settled already", fix "Read the action; its outcome stands.";
    InvalidMandate = 400 "invalid_mandate", "the mandate is malformed", fix "Correct the fields that `errors` names.";
    ConfirmBroaden = 409 "confirm_broaden", "the rule would allow anywhere beside a narrower rule of this agent", fix "Send `confirmBroaden: true` if that is meant.";

    // The model gateway.
    UnclassifiedRequest = 400 "unclassified_request", "no task class was sent and the key has none", fix "Send `x-svc-task-class`, bind a class to the key, or have `defaultTaskClass` set in the workspace's routing; classes are made under `/api/w/{wid}/task-classes`.";
    UnknownTaskClass = 400 "unknown_task_class", "there is no such task class", fix "Send a task class of this workspace; they are listed and made under `/api/w/{wid}/task-classes`.";
    SensitiveDataBlocked = 400 "sensitive_data_blocked", "the request holds data that this workspace does not let out", fix "Remove the findings that the message counts.";
    ApprovalRequired = 402 "approval_required", "the budget has reached the step from which more takes a yes", fix "Ask the budget's owner, whom the error names, to raise it.";
    /// Calls that run have brought it there.
    ApprovalHeld = 402 "approval_required", "with what calls that run hold of it, the budget has reached the step from which more takes a yes", fix "Send the call again once others have ended; or ask the budget's owner, whom the error names, to raise it.";
    SeatLimitReached = 402 "seat_limit_reached", "the plan's people are used this month", fix "Move to a larger plan, or wait for the next month.";
    AgentStopped = 403 "agent_stopped", "the agent is stopped", fix "Do not retry; a person has to start it again, or to register a new one where it was removed.";
    UnknownTask = 404 "unknown_task", "there is no such task", fix "Report the task id that the model call answered.";
    PolicyConflict = 409 "policy_conflict", "no model satisfies the policy", fix "Change one of the constraints that `relaxations` lists.";
    BudgetExhausted = 429 "budget_exhausted", "the budget is exhausted", fix "Wait for the next period, or ask the budget's owner to raise it.";
    /// What is left is held by calls that run.
    BudgetHeld = 429 "budget_exhausted", "calls that run hold what is left of the budget", fix "Send the call again once others have ended, and fewer at once; or ask the budget's owner to raise it.";
    /// The call alone may cost more than is left.
    BudgetTooSmall = 429 "budget_exhausted", "the call may cost more than is left of the budget", fix "Bound the answer lower, shorten the request or name a cheaper model; or ask the budget's owner to raise it.";
    /// Model requests of the month.
    PlanRequests = 429 "plan_limit_reached", "the plan's model requests of this month are used", fix "Wait for the next month, or move to a larger plan.";
    UpstreamFailure = 502 "upstream_failure", "every eligible model failed", fix "Try again later; `attemptedModels` says what was tried.";
    /// Every provider that was asked lets this server in no longer, or has no such model: that stays so until somebody changes it.
    UpstreamDenied = 502 "upstream_failure", "every provider that was asked refused its key or account, or does not know the model", fix "Have whoever runs the providers correct the key, the address or the model that `attemptedModels` names; sending the request again does not help.";
    UpstreamRejected = 400 "upstream_rejected", "the provider refused the request", fix "Correct the request as the provider's message says.";
    /// The provider found the request too large.
    UpstreamTooLarge = 413 "upstream_rejected", "the provider found the request too large", fix "Send a shorter request.";
    /// The provider could not process a well-formed request.
    UpstreamUnprocessable = 422 "upstream_rejected", "the provider could not process the request", fix "Correct the request as the provider's message says.";

    // MCP servers behind this one.
    ToolServerFailure = 502 "upstream_failure", "the MCP server gave no answer", fix "Try again later; if it stays so, tell whoever put the server here.";
    ToolServerRejected = 400 "upstream_rejected", "the MCP server refused the call", fix "Correct the arguments as the server's message says.";
    ToolHeld = 409 "not_allowed", "the tool is not as a person accepted it", fix "Ask an owner or admin to look at what changed and accept it.";

    // Pushed security events: as RFC 8935 has them.
    AuthenticationFailed = 400 "authentication_failed", "the token could not be verified, or was received before", fix "Sign the token with a key of the issuer that is configured, and send each one once.";
    InvalidAudience = 400 "invalid_audience", "`aud` does not name the audience that is configured", fix "Send the token to the receiver that it names, or correct the integration's `audience`.";
    InvalidIssuer = 400 "invalid_issuer", "`iss` is not the issuer that is configured", fix "Send tokens of that issuer alone, or correct the integration's `issuer`.";
    InvalidKey = 400 "invalid_key", "no key of the issuer has the token's `kid`", fix "Publish the key in the issuer's key set, and send the token again a minute later.";

    // OAuth: flat, as RFC 6749 and 7591 have them.
    AccessDenied = 403 "access_denied", "the person said no", fix "Ask again only if the person wants to.";
    InvalidClient = 401 "invalid_client", "the client is unknown or did not show who it is", fix "Register the client, and send its id and secret as it registered.";
    InvalidClientMetadata = 400 "invalid_client_metadata", "the client's metadata is malformed", fix "Correct what the description names and send it again.";
    InvalidGrant = 400 "invalid_grant", "the code or refresh token is not in force", fix "Have the person connect the client again.";
    InvalidRedirectUri = 400 "invalid_redirect_uri", "a redirect URI is not one that may be sent to", fix "Name https URIs, or http on a loopback address, without fragment; any other is admitted by whoever runs this server, to the byte, in `oauth.allowRedirects`.";
    InvalidScope = 400 "invalid_scope", "the scope is not one of this server", fix "Ask for `svc:agent` or for no scope.";
    InvalidTarget = 400 "invalid_target", "the resource is not this server", fix "Name the resource as the protected-resource metadata does.";
    TemporarilyUnavailable = 503 "temporarily_unavailable", "this server cannot take another request of this kind at the moment", fix "Ask again after as many seconds as `retry-after` says.";
    UnauthorizedClient = 400 "unauthorized_client", "this client may not do that", fix "Use a client that registered for it.";
    UnsupportedGrantType = 400 "unsupported_grant_type", "the grant is none of this server's", fix "Send `authorization_code` or `refresh_token`.";
    UnsupportedResponseType = 400 "unsupported_response_type", "the response type is none of this server's", fix "Send `response_type=code`.";

    // Machine administration.
    InvalidToken = 401 "invalid_token", "the service token is unknown, revoked or not for this address", fix "Send a token that is in force, from an address it is pinned to.";
    TokenExpired = 401 "token_expired", "the service token has expired", fix "Have an owner make a new token.";
    MissingScope = 403 "missing_scope", "the credential lacks the scope of this route", fix "Use a credential with the scope that this route names.";
    InvalidApplication = 400 "invalid_application", "the application is malformed", fix "Correct the fields that `errors` names.";
    InvalidBudget = 400 "invalid_budget", "the budget is malformed", fix "Correct the fields that `errors` names.";
    InvalidUpstream = 400 "invalid_upstream", "the upstream is malformed", fix "Correct the fields that `errors` names.";
    TemplateOnly = 400 "template_only", "a token attaches mandates from templates alone", fix "Name a template in each mandate and nothing else.";
    UnknownTemplate = 400 "unknown_template", "there is no such template", fix "Name a template of this workspace.";
    InvalidSelector = 400 "invalid_selector", "the selector is malformed", fix "Correct the fields that `errors` names.";
    NothingSelected = 400 "nothing_selected", "the selector matches no agent", fix "Send a selector that matches at least one agent.";
    ReasonRequired = 400 "reason_required", "a reason is needed", fix "Send `reason`, 1 to 500 characters.";
    ConfirmCountRequired = 409 "confirm_count_required", "the number of agents must be confirmed", fix "Send `confirmCount` equal to `newCount`.";
    SelectionChanged = 409 "selection_changed", "the selection has changed since it was counted", fix "Look at the new selection and confirm its count.";
    /// An approval is not what its decider looked at.
    DigestChanged = 409 "selection_changed", "what waits is not what was looked at", fix "Read the approval again, look at what it asks for now, and decide with its present `actionDigest`.";
    DrillCooldown = 429 "drill_cooldown", "a drill was started within the last hour", fix "Wait as many seconds as `retry-after` says.";
}

const _: () = {
    let mut rest = Kind::ALL;
    while let [kind, tail @ ..] = rest {
        let row = kind.row();
        assert!(row.status >= 400 && row.status <= 599, "a refusal's status is 4xx or 5xx");
        assert!(row.status >= 500 || row.fix.is_some(), "every 4xx says what to send differently");
        rest = tail;
    }
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use super::*;

    /// The whole table as text is the committed one: a changed row shows in a review.
    #[test]
    fn the_table_is_the_committed_one() {
        let mut text = String::new();
        for kind in Kind::ALL {
            let Row { name, status, type_, message, fix } = kind.row();
            let _ = writeln!(text, "{name}: {status} {type_}\n  {message}\n  {}", fix.unwrap_or("-"));
        }
        assert_eq!(text, include_str!("table.expected.txt"), "{text}");
    }

    /// Every type of the interface is here with the statuses it has there, and no other type is.
    #[test]
    fn types_and_statuses_are_those_of_the_interface() {
        let mut table: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
        for kind in Kind::ALL {
            let row = kind.row();
            let statuses = table.entry(row.type_).or_default();
            if !statuses.contains(&row.status) {
                statuses.push(row.status);
            }
        }
        let found: Vec<String> = table
            .into_iter()
            .map(|(type_, mut statuses)| {
                statuses.sort_unstable();
                format!("{type_} {}", statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(found.join("\n"), INTERFACE.trim());
    }

    /// Advice is a sentence; a message is a clause without a full stop.
    #[test]
    fn messages_are_clauses_and_advice_is_a_sentence() {
        for kind in Kind::ALL {
            let row = kind.row();
            assert!(
                !row.message.ends_with('.') && !row.message.starts_with(|it: char| it.is_uppercase()),
                "{}",
                row.message
            );
            if let Some(fix) = row.fix {
                assert!(fix.ends_with('.') && fix.starts_with(|it: char| it.is_uppercase()), "{fix}");
            }
        }
    }

    const INTERFACE: &str = "
access_denied 403
agent_key_required 403
agent_not_found 403
agent_stopped 403
already_settled 409
approval_required 402
authentication_failed 400
body_too_large 413
budget_exhausted 429
confirm_broaden 409
confirm_count_required 409
csrf 403
drill_cooldown 429
forbidden 403
headers_too_large 431
idempotency_conflict 409
internal 500
invalid_amount 400
invalid_api_key 401
invalid_application 400
invalid_audience 400
invalid_budget 400
invalid_client 401
invalid_client_metadata 400
invalid_grant 400
invalid_issuer 400
invalid_json 400
invalid_key 400
invalid_mandate 400
invalid_redirect_uri 400
invalid_request 400
invalid_scope 400
invalid_selector 400
invalid_status 400
invalid_target 400
invalid_token 401
invalid_upstream 400
method_not_allowed 405
missing_scope 403
not_allowed 409
not_found 404
not_ready 503
nothing_selected 400
plan_limit_reached 402 429
policy_conflict 409
rate_limited 429
reason_required 400
route_not_found 404
seat_limit_reached 402
second_owner_required 409
second_person_required 409
selection_changed 409
sensitive_data_blocked 400
separation_of_duties 403 409
template_only 400
temporarily_unavailable 503
token_expired 401
unauthenticated 401
unauthorized_client 400
unclassified_request 400
unknown_task 404
unknown_task_class 400
unknown_template 400
unsupported_grant_type 400
unsupported_response_type 400
upstream_failure 502
upstream_rejected 400 413 422
uri_too_long 414
";
}
