// Package guard stands between the network and an HTTP handler. It exists so that every
// face of a server has the same answer to the question who may come in, and with how much:
// whatever is mounted behind a Guard sees only requests with a known Host and a valid
// token, from no foreign web page, of a bounded number at a time, with bounded headers and
// bodies that arrive in bounded time.
//
// What it refuses it answers with a problem document (RFC 9457). It knows nothing of
// pipelines, and bounds no work: how long a handler may think is the handler's business.
package guard
