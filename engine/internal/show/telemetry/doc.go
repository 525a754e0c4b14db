// Package telemetry exports Prometheus metrics and OpenTelemetry traces of a running racflow. It is
// an outcome.Observer, for the commands serve, run, eval and ask.
//
// The pipeline files limit the values of metric labels: pipelines, stages, knowledge, outcomes. No
// metric label has an item's id or text. The package registers these metrics, in addition to
// metrics of the Go runtime and the process:
//
//	racflow_items_total{pipeline,outcome}            counter    items by what became of them: answered, undecided, failed
//	racflow_flagged_total{pipeline}                  counter    answers that a person should look at
//	racflow_abstentions_total{pipeline,stage}        counter    items to which a voter gave no answer that counts
//	racflow_items_in_progress{pipeline}              gauge      items on their way through the stages
//	racflow_queue_items{pipeline}                    gauge      items that wait for a batch, of pipelines that are served
//	racflow_stage_seconds{pipeline,stage}            histogram  time of a stage's calls; a call takes a batch of rows
//	racflow_stage_rows_total{pipeline,stage}         counter    rows of these calls
//	racflow_stage_errors_total{pipeline,stage}       counter    rows that failed; another try may have succeeded
//	racflow_retries_total{pipeline,stage}            counter    calls that were made again after a failure that may pass
//	racflow_stage_restarts_total{stage}              counter    processes that ended and were started again
//	racflow_requests_total{pipeline,stage,status}    counter    requests to services: ok, busy, down, left, refused, denied, unsent
//	racflow_requests{pipeline,stage,state}           gauge      requests to services now: waiting, sent
//	racflow_tokens_total{pipeline,stage,kind}        counter    tokens that services reported: input (with cached ones), cached, output
//	racflow_cost_total{pipeline,stage}               counter    money that requests took, by the prices in the file
//	racflow_cache_hits_total{pipeline,stage}         counter    replies taken from the response cache
//	racflow_knowledge_seconds{knowledge}             gauge      what bringing a knowledge up to date took the last time
//	racflow_knowledge_failures_total{knowledge}      counter    knowledge that could not be brought up to date
//	racflow_knowledge_swaps_total{pipeline}          counter    changes of what a pipeline that is served answers from
//	racflow_build_info{version,go_version}           gauge      1
//
// Tokens and cost count only requests that were made: replies from the response cache cost nothing.
// A stage that calls a service without asking its host is not counted. If a run takes two passes
// over its items, each pass counts. When a voter or an election learns from the knowledge, its
// requests count, but not its items and calls.
//
// Traces have a span for each item, each batch, each call of a stage and each request to a service.
// Spans of requests have the attributes of OpenTelemetry's conventions for generative AI
// (gen_ai.request.model, gen_ai.usage.input_tokens, ...). A batch links its items, which may belong
// to different traces; a batch of one item is a child of that item's span. Trace contexts follow
// W3C Trace Context: a caller's trace is continued, and requests of stages carry the headers
// traceparent and tracestate.
//
// Spans go to a file (Options.TraceFile), as lines of OTLP/JSON, and over HTTP to the collector
// that the usual environment variables name (OTEL_EXPORTER_OTLP_ENDPOINT and related ones). Spans
// have the ids of items, but texts, answers and error messages only if Options.Texts is set, and
// never secrets.
//
// The package never affects a run: it reports only the first failure of an exporter, and drops
// spans that a collector does not accept in time.
package telemetry
