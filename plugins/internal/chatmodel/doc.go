// Package chatmodel asks language models behind servers, for the stages that do: it has the
// arguments that say where the model is, makes requests of them, and sends these.
//
// A stage writes its question as a dialect.Request. Send leaves out what the model does not take
// (package profile), writes the request in the service's dialect, and reads the reply. A probe finds
// out what the model takes before the first request, unless probe = false. What the model turns
// out to refuse is left out, reported once and kept for the next run; the rest is asked again
// at once. Structured answers are asked for as strictly as the server takes it.
//
// A model that thinks before it answers may need more tokens than the limit of the answer,
// or stop within its thoughts: then it is asked again with more room and without stop.
//
// With batch = true the stage's requests go by batches of the service (job.go), whose
// replies are sent back through Send: to the stage nothing else is different.
//
// Services cache the beginning of requests, most of them unasked. Anthropic's need its
// end to be marked: with cache_control at most four Shared messages go as a part of type
// text with cache_control {"type": "ephemeral"}, as its endpoint and gateways to it
// take it.
//
// What an answer is worth, and what of it is cached, is for the stage to decide: its key
// is that of the request before it was changed.
package chatmodel
