// Package serve answers HTTP requests from pipelines that are kept open (package live). It lets
// programs in any language ask a pipeline, and makes sure that no request can stop or confuse the
// server.
//
//	POST /v1/pipelines/NAME/answer    answers an item
//	POST /v1/pipelines/NAME/retrieve  returns the candidates of the last retrieve or rerank stage
//	GET  /v1/pipelines                lists the pipelines with their states
//	GET  /v1/pipelines/NAME           describes one pipeline, with its labels
//	POST /v1/pipelines/NAME/rebuild   updates the pipeline's knowledge; ?wait=true waits for the end
//	POST /v1/chat/completions         answers in OpenAI's form (chat.go), with GET /v1/models
//	POST /v1/systemone                answers typed questions about a text, in TypeSafe's form (decisions.go)
//	POST /v1/decisions                answers typed questions in OpenAI's form
//	POST /mcp                         offers pipelines as tools of the Model Context Protocol (mcp.go)
//	GET  /openapi.json, /docs         describes this interface in OpenAPI 3.1, and as a page for people
//	GET  /metrics                     returns metrics for Prometheus, if they are kept
//	GET  /healthz, /readyz            the process answers; all pipelines are ready, and the server is not ending
//
// Bodies are UTF-8, with or without a byte order mark, plain or compressed with zstd. An item is a JSON object with a
// text and optionally an id, an expected label and metadata. A body of the type application/x-ndjson is a batch: one
// item per line, of any length. The response has one result per line, in the order of the items; results come while
// items are still being sent, so a client must send and read at the same time. An invalid line gets a result with an
// error. If a batch ends early, the last line has the reason, and the connection is aborted, so that the response
// never looks complete.
//
// For "Accept: text/event-stream" the answer comes as events: "stage" after each stage, and
// "result" or "error" at the end. If a client disconnects, the work ends.
//
// Errors are problem documents (RFC 9457), except in forms that define their own errors:
//
//	400 malformed                       413 the body is too long
//	401 no valid token                  415 a body of another type or encoding
//	403 a web page of another origin    421 a Host that is not this server's
//	404 there is no such pipeline       422 the item cannot be used
//	405 there is no such method         429 too many requests; try again, see Retry-After
//	408 the body did not come in time   502 a stage failed on the item
//	409 the knowledge was not rebuilt   503 starting, ending, or a pipeline cannot serve
//	                                    504 the answer took too long
//
// guard.go limits who may send requests, and how much.
//
// With telemetry, a request is a span of the trace in its headers, and the server counts these
// metrics in addition to those of package telemetry. A route is a pattern, never a path:
//
//	racflow_http_requests_total{route,code}  counter    requests by the status of the answer
//	racflow_http_seconds{route}              histogram  from the first to the last byte
//
// Package decide answers typed questions. Package live opens files, starts stages and combines requests into batches.
package serve
