// Package chatmodel asks language models behind OpenAI-compatible servers, for the
// stages that do: it has the arguments that say where the model is, writes the fields of
// a request that depend on the model, reads replies, and asks one question for one text.
//
// Models that think before they answer (o1, o3, o4, gpt-5 and gpt-6) are asked without
// temperature, and without a limit where the file sets none: it would count their
// thoughts.
//
// Services cache the beginning of requests, most of them unasked. Anthropic's need its
// end to be marked: with cache_control at most four Shared messages go as a part of type
// text with cache_control {"type": "ephemeral"}, as its endpoint and gateways to it
// take it.
//
// What an answer is worth, and what of it is cached, is for the stage to decide. The
// package does not stream and knows no tools.
package chatmodel
