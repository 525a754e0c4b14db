// Asks for decisions by the clients of OpenAI and of TypeSafe for JavaScript. It is copied beside their packages; the environment has the
// address of the server, and a token of it.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { choice, noul, TypeSafeClient, UnprocessableEntityError } from "@typesafe-ai/sdk";

const { TEXT: text, LABEL: label, OTHER: other } = process.env;

const jev = new TypeSafeClient(); // TYPESAFE_BASE_URL and TYPESAFE_API_KEY; the model is jev-latest
const said = await jev.systemOne({
  state: { text, plan: "pro" },
  questions: { which: choice("Which intent?", { [other]: null, [label]: null, none: null }), is: noul(label), other: noul(other) },
});
assert.equal(said.answers.which.choice, label);
assert.equal(said.answers.which.probabilities[label], said.answers.is.noul);
assert.ok(said.answers.is.noul > said.answers.other.noul);
await assert.rejects(jev.systemOne({ state: text, questions: { which: choice("?", { [label]: null, mistyped: null }) } }), UnprocessableEntityError);
const many = await Promise.all(Array.from({ length: 64 }, () => jev.systemOne({ state: text, questions: { is: noul(label) } })));
assert.ok(many.every((one) => one.answers.is.noul === said.answers.is.noul));

const openai = new OpenAI({ maxRetries: 0 }); // OPENAI_BASE_URL and OPENAI_API_KEY
const ask = (questions) => openai.decisions.create({ model: "intent", input: text, questions });
const decision = await ask([
  { type: "choice", instructions: "Which intent?", choices: [{ value: other }, { value: label }, { value: "none" }] },
  { type: "predicate", name: "is", instructions: label },
]);
assert.equal(decision.answers[0].choice, label);
assert.equal(decision.answers[1].probability, said.answers.is.noul);
await assert.rejects(ask([{ type: "choice", instructions: "?", choices: [{ value: label }, { value: "mistyped" }] }]), OpenAI.UnprocessableEntityError);
await assert.rejects(ask([]), OpenAI.BadRequestError);
console.log("openai and @typesafe-ai/sdk for JavaScript decide alike");
