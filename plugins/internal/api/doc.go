// Package api calls services over HTTP with JSON, for stages that use language
// models, embeddings or rerankers.
//
// A Client knows one service: its address, key, further headers and body fields,
// timeout. A Request is one call: it acquires permission from the stage's Host, is
// sent, and releases the call with its result and cost.
//
// A reply that is not a success becomes a coded error. Statuses 408, 409, 429 and 5xx,
// lost connections and truncated replies are transient, with the time that the service
// asks to wait; a request that took longer than it may is not sent again, since the service may
// still be at work on it; a refusal of one text, by a content filter or because it is too long, is
// sdk.Refused, by the codes and words of common services; everything else is an error of
// the input. As in OpenAI's own clients,
// the service's x-should-retry overrides its status. An error that comes with status
// 200, as gateways send it, counts as one, and many replies in a row without an answer
// count as denials. Where nobody takes the connection, after a 503, and after any such
// failure of a service that has never answered or failed five different requests in a
// row, the rows wait a second, which does not count as a retry: how long a service may
// stay away is for the engine to decide.
//
// The Host gets an upper bound of a call's cost where the reply has a limit and the
// file adds no field that may lift it: a token for each byte of the request, and the
// reply's limit.
//
// The key and the values of headers go into requests and nowhere else: no error holds
// them, and long ones are redacted from replies. Redirects are not followed, so
// that secrets cannot reach another host.
//
// The package does not retry and does not limit: the engine does. What of a reply is
// cached is for the stage to decide.
package api
