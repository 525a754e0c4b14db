// Package chatmodel asks language models behind servers on behalf of stages. It defines the arguments that say where
// the model is, builds requests from them, and sends the requests.
//
// A stage writes its question as a dialect.Request. Send removes the fields that the model refuses (package profile),
// writes the request in the service's dialect, and reads the reply. Unless probe = false, a probe finds out what the
// model accepts before the first request. If the model refuses a field later, Send reports this once, keeps it for
// the next run, and asks again at once without the field. Send asks for structured answers as strictly as the server
// allows.
//
// A model that thinks before it answers may need more tokens than the limit of the answer, or may stop within its
// thoughts. Send then asks again with more room and without stop sequences.
//
// With batch = true the stage's requests go through the service's batch API (job.go). The replies pass through Send,
// so nothing else changes for the stage.
//
// Most services cache the beginning of requests by themselves. Anthropic needs a mark at the end of that beginning:
// with cache_control, at most four Shared messages are sent as a part of type text with cache_control {"type":
// "ephemeral"}. Anthropic's endpoint and gateways to it accept this.
//
// The stage decides what an answer is worth and which part of it is cached. The cache key is the key of the unchanged
// request.
package chatmodel
