"""The official SDKs as clients of the model gateway, unchanged but for base address and key: both shapes, whole and streamed,
tools, errors as their exception types, at providers of both kinds."""

import json
import os

import anthropic
import openai

import desk

DEV = json.loads(os.environ["SVC_DEV_JSON"])
CHAT = openai.OpenAI(base_url=DEV["baseUrl"] + "/v1", api_key=DEV["inferenceKey"], max_retries=0)
MESSAGES = anthropic.Anthropic(base_url=DEV["baseUrl"] + "/anthropic", api_key=DEV["inferenceKey"], max_retries=0)
PROVIDERS = ["demo", "demo-messages"]
ASK = [{"role": "user", "content": "Say something."}]
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}},
}
MESSAGES_TOOL = {"name": "look_up", "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}}}


def test_chat_whole_and_streamed():
    for provider in PROVIDERS:
        model = f"{provider}/demo-large"
        answer = CHAT.chat.completions.create(model=model, messages=ASK, max_tokens=50)
        assert answer.choices[0].message.content and answer.choices[0].finish_reason == "stop", answer
        assert answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0, answer
        chunks = list(CHAT.chat.completions.create(model=model, messages=ASK, max_tokens=50, stream=True))
        assert "".join(it.choices[0].delta.content or "" for it in chunks if it.choices), chunks
        assert all(it.usage is None for it in chunks), "nobody asked for the usage"
        asked = CHAT.chat.completions.create(
            model=model, messages=ASK, max_tokens=50, stream=True, stream_options={"include_usage": True}
        )
        assert list(asked)[-1].usage.completion_tokens > 0


def test_messages_whole_and_streamed():
    for provider in PROVIDERS:
        model = f"{provider}/demo-large"
        answer = MESSAGES.messages.create(model=model, messages=ASK, max_tokens=50)
        assert answer.content[0].text and answer.stop_reason == "end_turn", answer
        assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer
        with MESSAGES.messages.stream(model=model, messages=ASK, max_tokens=50) as stream:
            text = "".join(stream.text_stream)
            whole = stream.get_final_message()
        assert text and whole.content[0].text == text and whole.usage.output_tokens > 0, whole


def test_what_providers_leave_uncounted_is_told_by_an_estimate():
    """Clients sum up their conversation once it has grown long: one that hears of nothing never would."""
    name = "demo-large--usage-missing"
    for upstream in desk.api(DEV, "upstreams")["data"]:
        desk.api(DEV, "models", {"id": name, "upstreamId": upstream["id"], "prices": {"input": 1_000_000, "output": 1_000_000}})
    ask = [{"role": "user", "content": "x" * 4_000}]
    chat = {"model": f"demo-messages/{name}", "messages": ask, "max_tokens": 50}
    messages = {"model": f"demo/{name}", "messages": ask, "max_tokens": 50}
    whole = [CHAT.chat.completions.create(**chat).usage]
    whole += [list(CHAT.chat.completions.create(**chat, stream=True, stream_options={"include_usage": True}))[-1].usage]
    assert all(it.prompt_tokens > 1_000 and it.completion_tokens > 0 for it in whole), whole
    told = [MESSAGES.messages.create(**messages).usage]
    with MESSAGES.messages.stream(**messages) as stream:
        told += [stream.get_final_message().usage]
    assert all(it.input_tokens > 1_000 and it.output_tokens > 0 for it in told), told


def test_tools_in_both_shapes():
    for provider in PROVIDERS:
        model = f"{provider}/demo-large"
        answer = CHAT.chat.completions.create(
            model=model, messages=ASK, max_tokens=50, tools=[CHAT_TOOL], tool_choice="required"
        )
        call = answer.choices[0].message.tool_calls[0]
        assert call.function.name == "look_up" and isinstance(json.loads(call.function.arguments), dict), answer
        told = ASK + [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "a word"}]
        assert CHAT.chat.completions.create(model=model, messages=told, max_tokens=50, tools=[CHAT_TOOL]).choices
        answer = MESSAGES.messages.create(
            model=model, messages=ASK, max_tokens=50, tools=[MESSAGES_TOOL], tool_choice={"type": "any"}
        )
        use = next(it for it in answer.content if it.type == "tool_use")
        assert use.name == "look_up" and isinstance(use.input, dict) and answer.stop_reason == "tool_use", answer


def test_lists_of_models():
    assert any(it.id.endswith("demo-large") for it in CHAT.models.list())
    assert any(it.id.endswith("demo-large") for it in MESSAGES.models.list())


def test_errors_are_the_exceptions_of_the_sdk():
    expect(openai.BadRequestError, lambda: CHAT.chat.completions.create(model="no-such-model", messages=ASK))
    expect(
        anthropic.BadRequestError,
        lambda: MESSAGES.messages.create(model="no-such-model", messages=ASK, max_tokens=5),
    )
    stranger = "ask_" + "A" * 43
    chat, messages = CHAT.with_options(api_key=stranger), MESSAGES.with_options(api_key=stranger)
    expect(openai.AuthenticationError, lambda: chat.chat.completions.create(model="demo/demo-large", messages=ASK))
    expect(
        anthropic.AuthenticationError,
        lambda: messages.messages.create(model="demo/demo-large", messages=ASK, max_tokens=5),
    )


def test_what_repeating_cannot_help_is_asked_once():
    """As the SDKs come they ask again after each 409. No model is as good as this key's class wants."""
    profile = desk.api(DEV, "policy-profiles", {"name": "Asked once", "mode": "enforce"})
    desk.api(DEV, "task-classes", {"id": "asked.once", "minQuality": 100})
    key = desk.api(DEV, "keys", {"label": "Asked once", "scope": "inference", "policyProfileId": profile["id"], "taskClassId": "asked.once"})
    chat, messages = openai.OpenAI(base_url=CHAT.base_url, api_key=key["key"]), anthropic.Anthropic(base_url=MESSAGES.base_url, api_key=key["key"])
    for error in (
        expect(openai.ConflictError, lambda: chat.chat.completions.create(model="demo/demo-large", messages=ASK)),
        expect(anthropic.ConflictError, lambda: messages.messages.create(model="demo/demo-large", messages=ASK, max_tokens=5)),
    ):
        asked = error.response.request.headers
        assert asked["x-stainless-retry-count"] == "0", asked
        told = error.response.json()["error"]
        assert told["type"] == "policy_conflict" and told["requestId"] == error.request_id, (told, error.request_id)


def test_what_running_calls_hold_is_asked_for_again_soon():
    """The budget's period ends in weeks, for which `retry-after` would have the SDKs wait; what the running call holds is free once it ends."""
    upstream = next(it for it in desk.api(DEV, "upstreams")["data"] if it["name"] == "demo")
    name = "demo-large--pace-1000"
    room = {"contextWindow": 100_000, "maxOutput": 50_000}
    desk.api(DEV, "models", {"id": name, "upstreamId": upstream["id"], "prices": {"input": 1_000_000, "output": 1_000_000}, **room})
    profile = desk.api(DEV, "policy-profiles", {"name": "Held", "mode": "enforce"})
    desk.api(DEV, "task-classes", {"id": "held.soon", "models": [f"demo/{name}"]})
    wish = {"label": "Held", "scope": "inference", "policyProfileId": profile["id"], "taskClassId": "held.soon"}
    key = desk.api(DEV, "keys", wish)
    # Each call holds twenty thousand tokens and a few at a micro each; one that is cut is charged some hundreds for each second.
    scope = {"kind": "key", "id": key["binding"]["id"]}
    desk.api(DEV, "budgets", {"scope": scope, "amount": 30_000, "period": "month", "ladder": [{"at": 100, "step": "stop"}]})
    ask = {"model": f"demo/{name}", "messages": ASK, "max_tokens": 20_000}
    slow = CHAT.with_options(api_key=key["key"])
    for sdk, client, base, call in (
        (openai, openai.OpenAI, CHAT.base_url, lambda it: it.chat.completions.create(**ask)),
        (anthropic, anthropic.Anthropic, MESSAGES.base_url, lambda it: it.messages.create(**ask)),
    ):
        running = slow.chat.completions.create(stream=True, **ask)
        next(iter(running))
        statuses = []

        def seen(answer):
            """The running call ends once the other was refused."""
            statuses.append(answer.status_code)
            if answer.status_code == 429:
                running.close()

        watched = sdk.DefaultHttpxClient(event_hooks={"response": [seen]})
        assert call(client(base_url=base, api_key=key["key"], max_retries=5, http_client=watched)), "it was asked again"
        assert statuses[0] == 429 and statuses[-1] == 200, statuses


def expect(kind, call):
    try:
        call()
    except kind as error:
        assert error.body, error
        return error
    raise AssertionError(f"no {kind.__name__}")
