// Package openai is a voter: a language model behind an OpenAI-compatible
// server (OpenAI, vLLM, llama.cpp, Ollama, gateways), asked n times for the
// label of an item.
//
// Sample number i answers prompt i modulo their number. Samples of one prompt
// are choices of one request as far as the server gives them: what came back is
// counted, and it is asked again until there are n. A server that refuses n is
// asked for fewer, at last for one. Models that think before they answer (o1,
// o3, o4, gpt-5 and gpt-6) take neither n nor temperature, top_p, stop and
// logprobs: they are asked n times without. With a seed, a request has the seed
// plus the number of its first sample, so that a server that gives the same
// answer for the same seed gives n different ones.
//
// Every answer is read by sdk/answer and never trusted: a refusal, a filtered
// text and one that was cut off before it held a label are answers with a
// reason, which no rule accepts. Where a prompt wants a JSON object, its fields
// and labels go along as a strict JSON schema, built for each item; labels that
// are more than such a schema may list are left to the accept rules. On the
// completions endpoint the same goes along as a GBNF grammar, since llama.cpp
// obeys no schema there.
//
// A prompt that shows passages is answered by a text of the model's own: without
// stop, without structured outputs, and at most 1,024 tokens long where the file
// does not say. One that a limit cut is no answer.
//
// Each answer is kept through sdk.Host under the request that asks for it, but for
// secrets and arguments that do not change results, and its number. Kept answers are not asked for again, and give the same samples with the same usage. Two items that ask the
// same at the same time take turns, so that the second finds what the first
// got. A request's tokens are counted on the first of its samples.
//
// Forecast says what an item would come to without asking: likely, and at most,
// where each answer has a limit.
//
// An item fails alone. Retries, limits and budgets are the engine's. No
// streaming; a chat is not put into words for the completions endpoint.
package openai
