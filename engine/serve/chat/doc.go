// Package chat answers in the form of OpenAI's chat completions, so that whatever talks to
// such a service can ask a pipeline without knowing racflow:
//
//	POST /v1/chat/completions   the last user message goes through the pipeline that model names
//	GET  /v1/models             the pipelines
//	GET  /v1/models/NAME
//
// The answer is the message: a label, a text with what it cites as annotations
// (url_citation), or the passages that were found where the pipeline holds no election. An
// item without an acceptable answer is a refusal, as OpenAI calls it, that says why. Beside the
// standard fields stands "racflow" with the whole result. With stream, the answer comes in
// chunks; a pipeline elects it as a whole, so the first one comes when it is there.
//
// Settings of a model (temperature, tools and the like) are the pipeline's own and have no
// effect. What would change the form of the answer, n above 1 or a response_format, is
// refused. Errors have OpenAI's form.
//
// The package holds no conversation: earlier messages are not read.
package chat
