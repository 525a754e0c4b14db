package api

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0},
		{"250", "", 250 * time.Millisecond},
		{"250", "7", 250 * time.Millisecond},
		{"soon", "7", 7 * time.Second},
		{"", "0.5", 500 * time.Millisecond},
		{"", "Wed, 01 May 2024 12:00:30 GMT", 30 * time.Second},
		{"", "Wed, 01 May 2024 11:00:00 GMT", 0},
		{"", "-3", 0},
		{"", "NaN", 0},
		{"", "1e300", 24 * time.Hour},
		{"", "soon", 0},
	}
	for _, test := range tests {
		h := http.Header{}
		h.Set("retry-after-ms", test.ms)
		h.Set("retry-after", test.after)
		if got := retryAfter(h, now); got != test.want {
			t.Errorf("retryAfter(%q, %q) = %s, want %s", test.ms, test.after, got, test.want)
		}
	}
}

// FuzzUsage reads arbitrary reports of cost.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage": {"prompt_tokens": -1, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}}`))
	f.Add([]byte(`{"usage": {"total_tokens": 5}}`))
	f.Add([]byte(`{"usage": null}`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if u := Usage(reply); u.CachedTokens > u.InputTokens || u.OutputTokens > 1<<62 {
			t.Errorf("%s gives %+v", reply, u)
		}
	})
}

// TestRefused reads error replies of common services: about one text, or about a request that fails with any text.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		service string
		status  int
		body    string
		want    cause
	}{
		{"Azure", 400, `{"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.", "type": null, "param": "prompt", "code": "content_filter", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": true, "severity": "high"}}}}}`, filtered},
		{"Azure, by its inner error", 400, `{"error": {"message": "The response was filtered.", "code": "400", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}`, filtered},
		{"OpenAI, safety", 400, `{"error": {"message": "Your request was rejected as a result of our safety system.", "type": "invalid_request_error", "param": null, "code": "content_policy_violation"}}`, filtered},
		{"OpenAI, safety in words", 400, `{"error": {"message": "Your request was rejected as a result of our safety system.", "type": "invalid_request_error", "param": null, "code": null}}`, filtered},
		{"OpenAI, reasoning models", 400, `{"error": {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt.", "type": "invalid_request_error", "param": null, "code": "invalid_prompt"}}`, filtered},
		{"Anthropic, output", 400, `{"type": "error", "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}`, filtered},
		{"DashScope", 400, `{"error": {"code": "data_inspection_failed", "param": null, "message": "Input data may contain inappropriate content.", "type": "data_inspection_failed"}}`, filtered},
		{"DeepSeek", 400, `{"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "param": null, "code": "invalid_request_error"}}`, filtered},
		{"Zhipu", 400, `{"contentFilter": [{"level": 1, "role": "user"}], "error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}`, filtered},
		{"Vertex", 400, `{"error": {"code": 400, "message": "The prompt could not be submitted. This prompt contains sensitive words that violate Google's Responsible AI practices.", "status": "INVALID_ARGUMENT"}}`, filtered},
		{"OpenRouter", 403, `{"error": {"message": "openai/gpt-4o requires moderation on OpenAI. Your input was flagged for \"violence\".", "code": 403, "metadata": {"reasons": ["violence"], "flagged_input": "how do I...", "provider_name": "OpenAI"}}}`, filtered},
		{"OpenRouter, with status 200", 502, `{"error": {"message": "flagged", "code": 403, "metadata": {"reasons": ["violence"], "flagged_input": "how"}}}`, filtered},
		{"xAI", 403, `{"code": "The caller does not have permission to execute the specified operation", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}`, filtered},
		{"LiteLLM", 400, `{"error": {"message": "litellm.ContentPolicyViolationError: AzureException - The response was filtered", "type": "content_policy_violation", "param": null, "code": "400"}}`, filtered},

		{"OpenAI, length", 400, `{"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 10010 tokens. Please reduce the length of the messages.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}`, tooLong},
		{"OpenAI, more than a minute's tokens", 429, `{"error": {"message": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40321. The input or output tokens must be reduced in order to run successfully.", "type": "tokens", "param": null, "code": "rate_limit_exceeded"}}`, tooLong},
		{"vLLM", 400, `{"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4968 in the messages, 32 in the completion). Please reduce the length of the messages or completion.", "type": "BadRequestError", "param": null, "code": 400}`, tooLong},
		{"vLLM, newer", 400, `{"error": {"message": "You passed 5000 input tokens and requested 32 output tokens. However, the model's context length is only 4096 tokens.", "type": "BadRequestError", "param": "input_tokens", "code": 400}}`, tooLong},
		{"vLLM, older", 400, `{"object": "error", "message": "max_tokens must be at least 1, got -904.", "type": "BadRequestError", "code": 400}`, tooLong},
		{"llama.cpp", 400, `{"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096}}`, tooLong},
		{"llama.cpp, older", 400, `{"error": {"code": 400, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "invalid_request_error"}}`, tooLong},
		{"Anthropic", 400, `{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}`, tooLong},
		{"Anthropic, with the answer", 400, "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": \"input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000, decrease input length or `max_tokens` and try again\"}}", tooLong},
		{"Anthropic, bytes", 413, `{"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}`, tooLong},
		{"Mistral", 400, `{"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_error", "param": null, "code": 3051}`, tooLong},
		{"Gemini", 400, `{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}`, tooLong},
		{"Groq", 400, `{"error": {"message": "Please reduce the length of the messages or completion.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}`, tooLong},
		{"Groq, more than a minute's tokens", 413, "{\"error\": {\"message\": \"Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size and try again.\", \"type\": \"tokens\", \"code\": \"rate_limit_exceeded\"}}", tooLong},
		{"TGI", 422, "{\"error\": \"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 32 `max_new_tokens`\", \"error_type\": \"validation\"}", tooLong},
		{"TEI", 413, "{\"error\": \"Input validation error: `inputs` must have less than 512 tokens. Given: 600\", \"error_type\": \"Validation\"}", tooLong},
		{"Cohere", 400, `{"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt."}`, tooLong},
		{"Ollama", 400, `{"error": "the input length exceeds the context length"}`, tooLong},
		{"Bedrock", 400, `{"message": "Input is too long for requested model."}`, tooLong},
		{"xAI, length", 400, `{"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}`, tooLong},
		{"Fireworks", 400, `{"error": {"object": "error", "type": "invalid_request_error", "message": "The prompt is too long: 9000, model maximum context length: 8191"}}`, tooLong},
		{"DashScope, length", 400, `{"error": {"code": "invalid_parameter_error", "message": "Range of input length should be [1, 129024]", "type": "invalid_request_error"}}`, tooLong},
		{"a proxy", 413, "<html><h1>413 Request Entity Too Large</h1></html>", tooLong},

		{"OpenAI, a field", 400, `{"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}}`, nothing},
		{"OpenAI, a value", 400, `{"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.", "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}}`, nothing},
		{"OpenAI, a limit", 400, `{"error": {"message": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", "type": "invalid_request_error", "param": "max_tokens", "code": "invalid_value"}}`, nothing},
		{"OpenAI, a schema", 400, `{"error": {"message": "Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required to be supplied and to be false.", "type": "invalid_request_error", "param": "response_format", "code": null}}`, nothing},
		{"OpenAI, a model", 404, `{"error": {"message": "The model 'tiny' does not exist or you do not have access to it.", "type": "invalid_request_error", "param": null, "code": "model_not_found"}}`, nothing},
		{"OpenAI, too fast", 429, `{"error": {"message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 1200. Please try again in 400ms.", "type": "tokens", "param": null, "code": "rate_limit_exceeded"}}`, nothing},
		{"OpenAI, no money", 429, `{"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}}`, nothing},
		{"Azure, a key", 403, `{"error": {"code": "AccessDenied", "message": "Access denied due to Virtual Network/Firewall rules."}}`, nothing},
		{"Anthropic, a limit", 400, `{"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude"}}`, nothing},
		{"Anthropic, fields", 400, "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": \"`temperature` and `top_p` cannot both be specified for this model.\"}}", nothing},
		{"Anthropic, no money", 400, `{"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}}`, nothing},
		{"Gemini, a field", 400, `{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"seed\": Cannot find field.", "status": "INVALID_ARGUMENT"}}`, nothing},
		{"Mistral, a field", 422, `{"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "logprobs"], "msg": "Extra inputs are not permitted"}]}, "type": "invalid_request_error", "code": null}`, nothing},
		{"vLLM, a field", 400, `{"object": "error", "message": "logprobs must be at most 5", "type": "BadRequestError", "param": "logprobs", "code": 400}`, nothing},
		{"llama.cpp, a grammar", 400, `{"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}}`, nothing},
		{"a region", 403, `{"error": {"message": "Country, region, or territory not supported", "type": "request_forbidden", "param": null, "code": "unsupported_country_region_territory"}}`, nothing},
		{"down", 500, `{"error": {"message": "context length", "type": "server_error"}}`, nothing},
		{"busy", http.StatusServiceUnavailable, `{"error": {"message": "Loading model"}}`, nothing},
		{"a page", 400, "<html>Bad Request: context length</html>", nothing},
	} {
		if got := refused(test.status, []byte(test.body)); got != test.want {
			t.Errorf("%s: %d %s: %d, want %d", test.service, test.status, test.body, got, test.want)
		}
	}
}
