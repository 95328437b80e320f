//! What a provider does for a call beside answering it.

use super::*;

/// What tools of the provider's bring in is bounded by the model's context, and a summary by all of that once more; how often one is
/// used by what the request says, else by the rounds that a provider of the messages shape makes. What is charged where nobody told the
/// usage grows by none of it.
#[test]
fn what_a_provider_puts_in_itself_is_bounded() {
    let search: Box<str> = "web_search".into();
    let model =
        model(Prices { tools: BTreeMap::from([(search.clone(), micros(10_000))]), ..plain(1_000_000, 2_000_000) });
    let asked = |most: Option<u32>| Demand { server_tools: BTreeMap::from([(search.clone(), most)]), ..demand() };
    let worst = |at: Dialect, demand: &Demand| super::super::worst_case(&model, at, demand).unwrap().get();
    let (chat, messages) = (Dialect::Chat, Dialect::Messages);
    assert_eq!(worst(messages, &asked(Some(2))), 128_000 + 200 + 2 * 10_000);
    assert_eq!(worst(messages, &asked(None)), 128_000 + 200 + 10 * 10_000);
    assert_eq!(worst(chat, &asked(None)), 128_000 + 200 + 10_000);
    let long = Demand { text_bytes: 200_000, ..asked(Some(0)) };
    assert_eq!(worst(messages, &long), 200_000 + 200, "what is sent counts by its bytes");
    let summed = Demand { sums_up: true, dialect: messages, ..demand() };
    assert_eq!((worst(messages, &summed), worst(chat, &summed)), (2_000 + 400, 1_000 + 200));
    assert_eq!(worst(messages, &Demand { dialect: chat, ..summed.clone() }), 2_400, "the other shape's member goes on");
    let both = Demand { server_tools: asked(Some(1)).server_tools, ..summed };
    assert_eq!(worst(messages, &both), 256_000 + 400 + 10_000);
    for demand in [&asked(None), &both] {
        assert_eq!(estimate(&model, demand, &Received::default()).input, 250);
        assert_eq!((input_bound(&model, demand), likely_input(&model, demand)), (1_000, 250));
    }
}
