// Package chatmodel is what stages share that ask a language model behind an
// OpenAI-compatible server: the arguments that say where it is, the fields of a
// request that depend on the model, how replies are read, and one question with
// one text for an answer.
//
// Models that think before they answer (o1, o3, o4, gpt-5 and gpt-6) are asked
// without temperature, and without a limit where the file sets none: it would
// count their thoughts.
//
// Services cache what requests begin with, most of them unasked. Anthropic's want
// the end of it marked: with cache_control every message that is Shared goes as a
// part of type text with cache_control {"type": "ephemeral"}, at most four of
// them, as its endpoint and gateways to it take it.
//
// What an answer is worth, which part of it is kept and under which key is the
// stage's to say. It does not stream and knows no tools.
package chatmodel
