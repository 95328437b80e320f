//! The shipped table, looking a model up, and both shapes of files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use super::*;
use crate::value::MicroUsd;

fn micros(value: u64) -> MicroUsd {
    MicroUsd::new(value)
}

fn messages(faults: &[FieldError]) -> Vec<&str> {
    faults.iter().map(|it| it.message.as_ref()).collect()
}

/// The shipped table is read whole, has a date, and every model of it has prices, lengths and abilities.
#[test]
fn the_shipped_table_is_whole_and_dated() {
    let read = read(include_str!("models.json")).unwrap();
    assert_eq!((&read.listing, read.skipped.len()), (shipped(), 0));
    let date = shipped().date.as_deref().unwrap();
    assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    assert!(shipped().models.len() >= 40);
    for (id, listed) in &shipped().models {
        assert!(listed.prices.is_some() && listed.jurisdiction.is_some() && listed.quality.is_some(), "{id}");
        assert!(listed.retention.is_some() && listed.capabilities.is_some(), "{id}");
        assert!(listed.max_output.unwrap() <= listed.context_window.unwrap(), "{id}");
    }
    for makers in ["gpt-6-sol", "claude-opus-5-5", "gemini-2.5-pro", "mistral-large-4"] {
        assert!(find(None, "any", makers).is_some(), "{makers}");
    }
}

/// A model is found by its id, an alias, or without the day or version behind it; by a file's word before the table's,
/// and by its provider's name before the bare one.
#[test]
fn a_model_is_found_by_id_alias_and_without_its_day() {
    let base = find(None, "openai", "gpt-5").unwrap();
    for name in ["gpt-5-2025-08-07", "gpt-5-20250807", "gpt-5@001"] {
        assert_eq!(find(None, "openai", name), Some(base), "{name}");
    }
    for name in
        ["gpt-5-turbo", "gpt-5-99", "gpt-50", "-2025-08-07", "@1", "gpt-5@", "gpt-5-2025-08-0x", "gpt-5-19990807"]
    {
        assert_ne!(find(None, "openai", name), Some(base), "{name}");
    }
    assert!(find(None, "mistral", "mistral-medium-latest").is_some());
    let mut added = Listing::default();
    added.models.insert("gpt-5".into(), Listed { max_output: Some(1), ..Listed::default() });
    added.models.insert("azure/gpt-5".into(), Listed { max_output: Some(2), ..Listed::default() });
    let output = |provider, name| find(Some(&added), provider, name).unwrap().max_output;
    assert_eq!((output("openai", "gpt-5"), output("azure", "gpt-5-2025-08-07")), (Some(1), Some(2)));
    assert_eq!(output("azure", "gpt-5-mini"), find(None, "azure", "gpt-5-mini").unwrap().max_output);
}

/// The widespread shape is read with prices to the micro, tiers by length and of service, and fees; what does not chat or
/// has no price is left out, with why.
#[test]
fn the_widespread_shape_is_read_to_the_micro() {
    let read = read(
        r#"{"sample_spec":{"input_cost_per_token":0.0,"max_tokens":"a text"},
            "one":{"litellm_provider":"x","mode":"chat","max_input_tokens":200000,"max_output_tokens":"64000","max_tokens":7,
                "input_cost_per_token":1.5e-07,"output_cost_per_token":6.000000001e-07,"cache_read_input_token_cost":7.5e-8,
                "cache_creation_input_token_cost":1.875e-07,"cache_creation_input_token_cost_above_1hr":3e-07,
                "output_cost_per_reasoning_token":"7e-07","input_cost_per_token_above_200k_tokens":3e-07,
                "output_cost_per_token_above_200k_tokens":9e-07,"input_cost_per_token_above_128k_tokens":2e-07,
                "input_cost_per_token_flex":7.5e-08,"output_cost_per_token_flex":3e-07,
                "input_cost_per_token_priority":3e-07,"input_cost_per_token_batches":1e-9,
                "input_cost_per_audio_token":1.15e-06,"output_cost_per_audio_token":2e-06,"input_cost_per_image":0.0012,
                "provider_specific_entry":{"us":1.1,"fast":2.0,"eu":0,"xai":{"a":[1]},"labels":["hot"]},
                "search_context_cost_per_query":{"search_context_size_high":0.05,"search_context_size_low":0.03},
                "supports_function_calling":true,"supports_vision":true,"supports_reasoning":false,"supports_audio_input":true},
            "two":{"mode":"embedding","input_cost_per_token":1e-06},
            "three":{"mode":"chat","litellm_provider":"x"},
            "four":{"mode":"chat","input_cost_per_token":0.0,"output_cost_per_token":0}}"#,
    )
    .unwrap();
    let skipped: Vec<&str> = read.skipped.iter().map(|(id, _)| id.as_ref()).collect();
    assert_eq!(skipped, ["four", "sample_spec", "three", "two"]);
    assert_eq!(read.listing.models.len(), 1);
    let one = read.listing.get("any", "one").unwrap();
    let prices = one.prices.clone().unwrap();
    assert_eq!((prices.tokens.input, prices.tokens.output), (micros(150_000), micros(600_001)));
    assert_eq!((prices.tokens.cached_input, prices.tokens.cache_write), (Some(micros(75_000)), Some(micros(187_500))));
    assert_eq!(
        (prices.tokens.cache_write_long, prices.tokens.reasoning),
        (Some(micros(300_000)), Some(micros(700_000)))
    );
    let tiers: Vec<(u64, u64, u64)> =
        prices.tiers.iter().map(|it| (it.above_input_tokens, it.prices.input.get(), it.prices.output.get())).collect();
    assert_eq!(tiers, [(128_000, 200_000, 600_001), (200_000, 300_000, 900_000)]);
    assert_eq!(prices.service_tiers["flex"].tokens.output, micros(300_000));
    assert!(!prices.service_tiers.contains_key("priority"), "half a price is none");
    let fast = &prices.service_tiers["fast"];
    assert_eq!((fast.tokens.output, fast.tiers[1].prices.input), (micros(1_200_002), micros(600_000)));
    let geos: Vec<(&str, u16)> = prices.inference_geos.iter().map(|(name, it)| (&**name, it.get())).collect();
    assert_eq!(geos, [("us", 110)]);
    assert_eq!((prices.per_audio_second, prices.audio_output), (Some(micros(50)), Some(micros(2_000_000))));
    assert_eq!((prices.per_image, prices.tools["web_search"]), (Some(micros(1_200)), micros(50_000)));
    assert_eq!((one.context_window, one.max_output), (Some(200_000), Some(7)));
    let can = [Capability::Tools, Capability::Vision, Capability::Streaming, Capability::Audio];
    assert_eq!(one.capabilities, Some(can.into()));
}

/// A file with members of the shape of the shipped table alone lacks the list of that shape, and is no table of the widespread one.
#[test]
fn a_table_without_its_list_is_told_so() {
    for text in [r#"{"date":"2026-01-01"}"#, r#"{"note":"x","models":{"a":{}}}"#, r#"{"models":null}"#] {
        assert_eq!(messages(&read(text).unwrap_err()), ["the file has no list `models`"], "{text}");
    }
}

/// A file with a fault is none: every fault is named, and nothing of it counts.
#[test]
fn a_file_with_faults_names_all_of_them() {
    let faults = read(
        r#"{"a":{"mode":"chat","input_cost_per_token":-1e-6,"output_cost_per_token":"much"},"b":7,
            "c":{"mode":"chat","input_cost_per_token":1e-6,"output_cost_per_token":1e9}}"#,
    )
    .unwrap_err();
    assert_eq!(
        messages(&faults),
        [
            "`a.input_cost_per_token` must not be below zero",
            "`a.output_cost_per_token` must be a number",
            "`b` must be an object",
            "`c.output_cost_per_token` must be a price that can be counted in whole micros",
        ]
    );
    let faults = read(
        r#"{"date":1,"extra":2,"models":[{"id":"a","prices":{"input":1.5,"output":2}},{"id":"a","quality":101,"x":1},
            {"contextWindow":0,"id":"b","capabilities":["fly"],"retention":"ever","figures":{"image":-1}},5]}"#,
    )
    .unwrap_err();
    for (place, path) in [
        "extra",
        "date",
        "models.0.prices.input",
        "models.1.x",
        "models.1.quality",
        "models.1.id",
        "models.2.contextWindow",
        "models.2.capabilities",
        "models.2.retention",
        "models.2.figures.image",
        "models.3.id",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(faults.get(place).and_then(|it| it.field.as_deref()), Some(path), "{faults:?}");
    }
    for none in ["", "{", "[]", "7", "{}", "{\"models\":7}", "{\"a\":{\"mode\":\"embedding\"}}"] {
        assert!(read(none).is_err(), "{none}");
    }
}
