//! Refusals of people and of what they gave out: sessions, service tokens, and what takes somebody else (CONTRACT part 5).

use std::borrow::Cow;
use std::fmt;

use super::{FieldError, Kind, Refusal, table};

/// The constructors.
impl Refusal {
    /// 401: the session whose cookie was sent is none that is in force.
    #[must_use]
    pub fn session_over() -> Self {
        Self { message: "the session is over: sign in again".into(), ..Self::plain(Kind::Unauthenticated) }
    }

    /// 409: whoever is invited is a member who has signed in.
    #[must_use]
    pub fn member_already() -> Self {
        Self::not_allowed("they are a member already").with(|it| it.fix = Some(table::FIX_MEMBER))
    }

    /// 403: the credential lacks the scope of the route.
    #[must_use]
    pub fn missing_scope() -> Self {
        Self::plain(Kind::MissingScope)
    }

    /// 403: the credential lacks this scope.
    #[must_use]
    pub fn missing_scope_named(scope: &str) -> Self {
        Self { message: format!("the token lacks the scope `{scope}`").into(), ..Self::plain(Kind::MissingScope) }
    }

    /// 403: the key is none with admin scope.
    #[must_use]
    pub fn missing_admin_scope() -> Self {
        Self { message: "the key lacks the scope `admin`".into(), ..Self::plain(Kind::MissingScope) }
    }

    /// 401: the service token is unknown, revoked or not for this address.
    #[must_use]
    pub fn invalid_token() -> Self {
        Self::plain(Kind::InvalidToken)
    }

    /// 401: the service token's time is up.
    #[must_use]
    pub fn token_expired() -> Self {
        Self::plain(Kind::TokenExpired)
    }

    /// 403: a console write without its header, or from another origin.
    #[must_use]
    pub fn csrf() -> Self {
        Self::plain(Kind::Csrf)
    }

    /// 403: the session may do nothing but set up the second factor.
    #[must_use]
    pub fn must_enroll() -> Self {
        Self::forbidden("this session may only set up the second factor").with(|it| it.fix = Some(table::FIX_ENROLL))
    }

    /// 403: the workspace takes only sessions of its own single sign-on, and this is none.
    #[must_use]
    pub fn needs_sso() -> Self {
        Self::forbidden("this workspace takes only sessions of its own single sign-on")
    }

    /// 409: another person has to agree as well; `approval` is the id of what they are to approve in `workspace`.
    pub fn second_person_required(workspace: impl fmt::Display, approval: impl fmt::Display) -> Self {
        Self::plain(Kind::SecondPersonRequired).about_approval(workspace, approval)
    }

    /// 403: the session alone is not enough. An account that has no second factor sets one up first.
    #[must_use]
    pub fn second_factor_asked(has_factor: bool) -> Self {
        let clause = if has_factor {
            "is asked for once more at this amount"
        } else {
            "is asked for at this amount, and the account has no second factor"
        };
        Self::faults(Kind::SecondFactorAsked, vec![FieldError::new("code", clause)])
    }

    /// 409: another owner has to agree; `approval` is the id of what they are to approve in `workspace`.
    pub fn second_owner_required(workspace: impl fmt::Display, approval: impl fmt::Display) -> Self {
        Self::plain(Kind::SecondOwnerRequired).about_approval(workspace, approval)
    }

    /// 409: nobody would be an owner any more, so that there is no approval for another one to agree to.
    #[must_use]
    pub fn last_owner() -> Self {
        let plain = Self::plain(Kind::SecondOwnerRequired);
        Self { message: "the last owner cannot leave".into(), ..plain }.with(|it| it.fix = Some(table::FIX_LAST_OWNER))
    }

    /// 409: another person has to do this as things stand; `why` says which state makes it so.
    pub fn duties_now(why: impl Into<Cow<'static, str>>) -> Self {
        Self { message: why.into(), ..Self::plain(Kind::DutiesNow) }
    }

    /// 403: this caller can never do that; `why` says why not.
    pub fn duties_never(why: impl Into<Cow<'static, str>>) -> Self {
        Self { message: why.into(), ..Self::plain(Kind::DutiesNever) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where something can be done about it that the kind's own advice does not know, the advice says so, and the word stays.
    #[test]
    fn advice_that_a_kind_does_not_know_is_told() {
        let cases = [
            (Refusal::must_enroll(), "forbidden", "`POST /api/me/totp`"),
            (Refusal::last_owner(), "second_owner_required", "another member an owner first"),
            (Refusal::member_already(), "not_allowed", "`svc sign-in-link EMAIL`"),
            (Refusal::policy_conflict(None, Vec::new()), "policy_conflict", "several constraints together"),
        ];
        for (refusal, type_, named) in cases {
            assert_eq!(refusal.type_(), type_);
            assert!(refusal.fix().is_some_and(|it| it.contains(named)), "{refusal:?}");
            assert_ne!(refusal.fix(), refusal.kind().row().fix);
        }
        assert!(Refusal::missing_admin_scope().message().contains("`admin`"));
    }
}
