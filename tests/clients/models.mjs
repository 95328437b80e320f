// The official SDKs for Node as clients of the model gateway, unchanged but for base address and key: both shapes, whole and
// streamed, tools, lists, errors as their exception types, at providers of both kinds.

import assert from "node:assert/strict";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { dev, runAll } from "./harness.mjs";

const chat = new OpenAI({ baseURL: `${dev.baseUrl}/v1`, apiKey: dev.inferenceKey, maxRetries: 0 });
const messages = new Anthropic({ baseURL: `${dev.baseUrl}/anthropic`, apiKey: dev.inferenceKey, maxRetries: 0 });
const stranger = `ask_${"A".repeat(43)}`;
const models = ["demo/demo-large", "demo-messages/demo-large"];
const ask = [{ role: "user", content: "Say something." }];
const parameters = { type: "object", properties: { word: { type: "string" } } };

const checks = {
  async chat_whole_and_streamed() {
    for (const model of models) {
      const answer = await chat.chat.completions.create({ model, messages: ask, max_tokens: 50 });
      assert.ok(answer.choices[0].message.content);
      assert.equal(answer.choices[0].finish_reason, "stop");
      assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0);
      let text = "";
      let usage;
      const options = { model, messages: ask, max_tokens: 50, stream: true, stream_options: { include_usage: true } };
      for await (const chunk of await chat.chat.completions.create(options)) {
        text += chunk.choices[0]?.delta.content ?? "";
        usage = chunk.usage ?? usage;
      }
      assert.equal(text, answer.choices[0].message.content);
      assert.ok(usage.completion_tokens > 0);
    }
  },

  async messages_whole_and_streamed() {
    for (const model of models) {
      const answer = await messages.messages.create({ model, messages: ask, max_tokens: 50 });
      assert.ok(answer.content[0].text);
      assert.equal(answer.stop_reason, "end_turn");
      const stream = messages.messages.stream({ model, messages: ask, max_tokens: 50 });
      let text = "";
      stream.on("text", (piece) => (text += piece));
      const whole = await stream.finalMessage();
      assert.equal(whole.content[0].text, text);
      assert.ok(whole.usage.output_tokens > 0);
    }
  },

  async tools_in_both_shapes() {
    for (const model of models) {
      const tools = [{ type: "function", function: { name: "look_up", parameters } }];
      const wish = { model, messages: ask, max_tokens: 50, tools, tool_choice: "required" };
      const answer = await chat.chat.completions.create(wish);
      const call = answer.choices[0].message.tool_calls[0];
      assert.equal(call.function.name, "look_up");
      assert.equal(typeof JSON.parse(call.function.arguments), "object");
      const told = [...ask, answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "a word" }];
      assert.ok((await chat.chat.completions.create({ model, messages: told, max_tokens: 50, tools })).choices.length);
      const used = await messages.messages
        .stream({
          model,
          messages: ask,
          max_tokens: 50,
          tools: [{ name: "look_up", input_schema: parameters }],
          tool_choice: { type: "any" },
        })
        .finalMessage();
      const use = used.content.find((it) => it.type === "tool_use");
      assert.equal(use.name, "look_up");
      assert.equal(typeof use.input, "object");
      assert.equal(used.stop_reason, "tool_use");
    }
  },

  async lists_of_models() {
    const found = async (list) => {
      for await (const model of list) if (model.id.endsWith("demo-large")) return true;
      return false;
    };
    assert.ok(await found(chat.models.list()));
    assert.ok(await found(messages.models.list()));
  },

  async errors_are_the_exceptions_of_the_sdk() {
    const model = "no-such-model";
    await assert.rejects(chat.chat.completions.create({ model, messages: ask }), OpenAI.BadRequestError);
    const wish = { model, messages: ask, max_tokens: 5 };
    await assert.rejects(messages.messages.create(wish), Anthropic.BadRequestError);
    const strange = chat.withOptions({ apiKey: stranger });
    const known = { model: models[0], messages: ask, max_tokens: 5 };
    await assert.rejects(strange.chat.completions.create(known), OpenAI.AuthenticationError);
    const other = messages.withOptions({ apiKey: stranger });
    await assert.rejects(other.messages.create(known), Anthropic.AuthenticationError);
  },

  async a_client_that_goes_away_ends_its_stream() {
    const stream = await chat.chat.completions.create({ model: models[0], messages: ask, max_tokens: 50, stream: true });
    for await (const _ of stream) break;
    stream.controller.abort();
    assert.ok((await chat.chat.completions.create({ model: models[0], messages: ask, max_tokens: 5 })).choices.length);
  },
};

await runAll(checks);
