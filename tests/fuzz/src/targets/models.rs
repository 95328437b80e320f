//! What is sent to models, and tables of what they cost.

use svc_core::dlp;
use svc_core::state::gateway::listing;

use super::inputs;

/// Redacting takes out what was found and nothing else: kinds stand in its place, and their number is that of the scan.
///
/// # Panics
/// Where it is not.
pub fn dlp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let found = dlp::scan(text);
    match dlp::redact(text) {
        None => assert!(found.is_empty(), "{found:?}"),
        Some((left, counted)) => {
            assert_eq!(counted, found);
            let told: u32 = found.counts().map(|(_, count)| count).sum();
            let marks = left.matches("[redacted:").count() - text.matches("[redacted:").count();
            assert_eq!(u32::try_from(marks), Ok(told), "{left}");
        }
    }
}

/// Texts that give each kind away.
#[must_use]
pub fn dlp_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "card 4242 4242 4242 4242, IBAN DE89 3704 0044 0532 0130 00, DNI 12345678Z, 123-45-6789",
        "alice@example.com +1 (415) 555-2671 tel: 030 901820 postgres://app:S3cretS3cret@db.example.com/x",
        "AKIAIOSFODNN7EXAMPLE api_key='f3K9vX2mQ8rT1zW7bN4c' eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----",
        "1 84 12 76 451 089 46 RSSMRA85T10A562S 756.9217.0769.85 529.982.247-25 AB123456C",
    ])
}

/// A table that is read has prices that are some, and reads the same again.
///
/// # Panics
/// Where it does not.
pub fn prices(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match listing::read(text) {
        Err(faults) => assert!(!faults.is_empty() && faults.iter().all(|it| !it.message.is_empty())),
        Ok(read) => {
            for (id, listed) in &read.listing.models {
                let faults = listed.prices.as_ref().map(|it| it.faults()).unwrap_or_default();
                assert!(faults.is_empty(), "{id}: {faults:?}");
            }
            assert_eq!(listing::read(text).as_ref(), Ok(&read));
        }
    }
}

/// One table of each shape.
#[must_use]
pub fn price_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        r#"{"date":"2026-11-21","models":[{"id":"a","aliases":["b"],"jurisdiction":"eu","contextWindow":1,"maxOutput":1,
            "capabilities":["tools"],"retention":"days","retentionDays":30,"quality":{"general":1,"code":2},
            "figures":{"image":1},"prices":{"input":1,"cachedInput":1,"cacheWrite":1,"cacheWriteLong":1,"output":1,
            "reasoning":1,"perImage":1,"perRequest":1,"perAudioSecond":1,"audioOutput":1,"imageOutput":1,"tools":{"x":1},
            "tiers":[{"aboveInputTokens":1,"prices":{"input":1,"output":1}}],"cachesUnasked":true,
            "serviceTiers":{"flex":{"input":1,"output":1,"tiers":[]}}}}]}"#,
        r#"{"a":{"mode":"chat","input_cost_per_token":1.5e-07,"output_cost_per_token":"6e-7","max_tokens":8192,
            "cache_read_input_token_cost":7.5e-8,"cache_creation_input_token_cost_above_1hr":1e-6,
            "input_cost_per_token_above_200k_tokens":3e-07,"input_cost_per_token_flex":1e-8,
            "output_cost_per_token_flex":1e-8,"search_context_cost_per_query":{"search_context_size_low":0.03},
            "input_cost_per_audio_token":1e-6,"supports_vision":true}}"#,
    ])
}
