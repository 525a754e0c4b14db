// Package api calls services over HTTP with JSON, for stages that use language
// models, embeddings or rerankers.
//
// A Client knows one service: its address, key, further headers and body fields,
// timeout. A Request is one call: it acquires permission from the stage's Host, is
// sent, and releases the call with its result and cost.
//
// A reply that is not a success becomes a coded error:
//
//   - Statuses 408, 409, 429 and 5xx, lost connections and truncated replies are transient, with the wait that the service
//     asks for.
//   - A request that timed out is not sent again, since the service may still be at work on it.
//   - A refusal of one text, by a content filter or because it is too long, is sdk.Refused, by the codes and words of
//     common services.
//   - Everything else is an error of the input.
//
// As in OpenAI's own clients, the service's x-should-retry overrides its status. An error with status 200, as
// gateways send it, counts as an error. Many replies in a row without an answer count as denials. Rows wait a second,
// which does not count as a retry, where nobody accepts the connection and after a 503. They also wait after any such
// failure of a service that has never answered or failed five different requests in a row. The engine decides how
// long a service may stay unavailable.
//
// Where the reply has a limit and the file adds no field that may lift it, the Host gets an upper bound of a call's
// cost: a token for each byte of the request, plus the reply's limit.
//
// The key and the values of headers go into requests and nowhere else: no error holds them, and long values are
// redacted from replies. The client does not follow redirects, so that secrets cannot reach another host.
//
// The package does not retry and does not limit: the engine does. The stage decides which part of a reply is cached.
package api
