// Package api is how stages call services over HTTP with JSON: the manners that
// language models, embeddings and rerankers share, whatever they ask.
//
// A Client knows one service: its address, key, further headers and body
// fields, timeout. A Request is one call: it waits until the stage's Host
// admits it, is sent, and tells the Host how it ended and what it cost. A reply
// that is not a success becomes a coded error: statuses 408, 409, 429 and 5xx,
// lost connections and replies that were cut are transient, with the time that
// the service asks to wait; everything else is the input's fault. The service's
// x-should-retry goes before its status, as in OpenAI's own clients. An error
// that comes with status 200, as gateways send it, is one all the same, and many
// replies in a row that hold no answer count as denials. Where there is nobody to
// connect to, or a 503, the rows wait a second for their turn, which is no try of
// theirs: how long a service may stay away is the engine's to say.
//
// The Host hears what a call takes at most where the reply has a limit and the
// file adds no field that may lift it: a token for each byte of the request, and the
// reply's limit.
//
// The key and the values of the headers go into the request and nowhere else:
// no error holds them, and no reply those that are long enough to be told from
// any word. A redirect is not followed, so that they cannot reach another host.
//
// It does not try again and does not limit: that is the engine's. What is kept
// of a reply, and under which key, is the stage's to say.
package api
