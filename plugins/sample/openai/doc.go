// Package openai is a voter: a language model behind an OpenAI-compatible server
// (OpenAI, Azure, vLLM, llama.cpp, Ollama, gateways) or Anthropic's Messages API, asked n
// times for the label of an item.
//
// Sample number i answers prompt i modulo their number. The samples of one prompt are
// choices of one request as far as the server gives them: the stage counts what came
// back and asks again until there are n. A server that refuses n is asked for fewer, at
// last for one. What else a model refuses (temperature, top_p, seed, stop, logprobs) it is asked
// without; see package chatmodel. With a seed, a request has the seed plus the number of its
// first sample, so that a server that gives the same answer for the same seed gives n different ones.
//
// Answers are read by sdk/answer, as people would or letter by letter, and never trusted: a
// refusal, a filtered text and one truncated before it held a label are answers with a reason,
// which no rule accepts. Where a prompt wants a JSON object, its fields and labels go along as
// a strict JSON schema, built for each item; more labels than such a schema may list are left
// to the accept rules. Where it wants a list of labels, each of them is an answer of the same
// sample, weighing 1, 1/2, 1/3 and so on. On the completions endpoint the same goes along as a
// GBNF grammar, since llama.cpp obeys no schema there.
//
// An item none of whose answers was accepted is asked about again in the same chat: it has
// these answers, what was wrong with them, and what is allowed. The first time nothing is added.
//
// A prompt that shows passages is answered by a text of the model's own: without stop,
// without structured outputs, and at most 1,024 tokens long where the file does not say.
// A truncated one is no answer.
//
// Each answer is cached under its number and the request that asks for it, without
// secrets and arguments that do not change results. A cached answer is not asked for
// again, and gives the same sample with the same usage. Two items that ask the same at
// the same time take turns, so that the second finds the first one's answers. The usage
// of a request is that of the first of its samples.
//
// A voter may have several services (package backends): other keys, addresses and models. Each
// answer has the key of the model that it is to come from. One that another model gave in its place says
// so in the cache and in its sample, and counts as one of that model as well; services of one model share
// its answers.
//
// Forecast estimates the calls of an item without asking: their likely cost, and the
// most, where each answer has a limit.
//
// An item fails alone. Retries, limits and budgets are the engine's. The stage does not
// turn a chat into a text for the completions endpoint.
package openai
