package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

const (
	maxExcerpt = 300            // characters of a server's message in an error
	maxWait    = 24 * time.Hour // the longest wait that a server may ask for
	// requeue is how long rows wait whose call failed without their fault. It does not count as a retry. The engine's
	// circuit breaker decides how long to pause the service, and when to give up.
	requeue = time.Second
)

// unsent reports whether a request failed because nobody accepted the connection.
func unsent(err error) bool {
	failed := new(net.OpError)
	return errors.As(err, &failed) && failed.Op == "dial"
}

// late reports whether a request timed out.
func late(err error) bool {
	timeout := interface{ Timeout() bool }(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// lostResult is the result of a call without a complete reply.
func lostResult(err error) sdk.Result {
	switch {
	case unsent(err):
		return sdk.Result{Status: sdk.StatusDown, RetryAfter: requeue}
	case late(err):
		return sdk.Result{Status: sdk.StatusLeft, Lost: true}
	}
	return sdk.Result{Status: sdk.StatusDown, Lost: true}
}

// lost is the error of a request without a complete reply.
func (c *Client) lost(req *http.Request, err error) error {
	if req.Context().Err() != nil {
		return req.Context().Err()
	}
	wait := time.Duration(0)
	if unsent(err) {
		wait = requeue
	}
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		err = wrapped.Err // leave out the whole address
	}
	switch {
	case !late(err):
	case unsent(err):
		err = fmt.Errorf("no connection within %s", min(connectTime, c.config.Timeout))
	case req.Method == http.MethodPost: // the service has the request, and may still be processing it
		return &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("%s: no reply within %s; a slow service needs a longer timeout, or a limit with less concurrency", req.URL.Host, c.config.Timeout)}
	default:
		err = fmt.Errorf("no reply within %s", c.config.Timeout)
	}
	return sdk.Transient(fmt.Errorf("%s; check base_url and whether the server runs", c.excerpt(req.URL.Host+": "+err.Error())), wait)
}

// isStream reports whether a successful reply is a stream of events.
func isStream(res *http.Response, body []byte) bool {
	if res.StatusCode != http.StatusOK || json.Valid(body) {
		return false
	}
	begin := bytes.TrimSpace(body)
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || bytes.HasPrefix(begin, []byte("data:")) || bytes.HasPrefix(begin, []byte("event:"))
}

// resultOf reads a reply. Its error says why the reply is not a success in JSON.
func (c *Client) resultOf(res *http.Response, body []byte, now time.Time) (sdk.Result, error) {
	if res.StatusCode >= 300 {
		return c.failure(res, body, now)
	}
	if status := errorStatus(body); status != 0 {
		shown := *res
		shown.StatusCode = status
		return c.failure(&shown, body, now)
	}
	switch trimmed := bytes.TrimSpace(body); {
	case int64(len(body)) > c.config.MaxReply:
		return sdk.Result{Status: sdk.StatusOK}, sdk.Invalid(fmt.Errorf("the server's reply is longer than %d MiB", c.config.MaxReply>>20))
	case json.Valid(body):
		return sdk.Result{Status: sdk.StatusOK}, nil
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '['): // JSON that breaks off
		return sdk.Result{Status: sdk.StatusDown, Lost: true}, sdk.Transient(fmt.Errorf("the server's reply is broken JSON (%s)", c.excerpt(string(body))), 0)
	}
	// A web page: the address is not the service's.
	return sdk.Result{Status: sdk.StatusDenied}, sdk.Invalid(fmt.Errorf("the server's reply is not JSON (%s); check base_url", c.excerpt(string(body))))
}

// errorStatus is the status of an error that came with status 200. Gateways send such errors after the reply has
// begun. 0: there is no error.
func errorStatus(body []byte) int {
	for _, answer := range gjson.GetManyBytes(body, "choices", "data", "results") {
		if answer.Type != gjson.Null && answer.Raw != "[]" {
			return 0
		}
	}
	e := gjson.GetBytes(body, "error")
	code, kind := e.Get("code"), e.Get("type").Str
	switch {
	case e.Str == "" && e.Get("message").Str == "" || !gjson.ValidBytes(body):
		return 0
	case code.Type == gjson.Number && code.Num >= 400 && code.Num < 600:
		return int(code.Num)
	case kind == "overloaded_error": // in Anthropic's words
		return overloaded
	case kind == "rate_limit_error":
		return http.StatusTooManyRequests
	}
	return http.StatusBadGateway
}

// failure is the result of a reply with an error status.
func (c *Client) failure(res *http.Response, body []byte, now time.Time) (sdk.Result, error) {
	message, code, standard := errorMessage(body)
	if strings.Contains(message, noCredit) {
		code = noQuota
	}
	text := fmt.Sprintf("the server answered %d: %s", res.StatusCode, c.excerpt(message))
	if !strings.HasPrefix(res.Status, strconv.Itoa(res.StatusCode)) { // it came with status 200
		text = "the server answered with an error: " + c.excerpt(message)
	}
	why := refused(res.StatusCode, body)
	switch {
	case why == tooLong:
		text += "; send less (fewer or shorter examples or passages), or give the server a larger context"
	case why != nothing: // the key is valid
	case res.StatusCode < 400:
		text = fmt.Sprintf("the server redirects (%d) to %q; write that as base_url if you trust it", res.StatusCode, c.excerpt(location(res)))
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		text += "; check api_key"
	case res.StatusCode == http.StatusNotFound:
		text += "; check base_url, endpoint and model"
	case res.StatusCode == http.StatusPaymentRequired || code == noQuota:
		text += "; the account has insufficient quota"
	}
	err := &statusError{Refusal{res.StatusCode, c.hide(gjson.GetBytes(body, "error.param").Str), c.hide(code), c.hide(message)}, text, why, false}
	if why != nothing {
		return sdk.Result{Status: sdk.StatusRefused}, sdk.Refused(err)
	}
	after := retryAfter(res.Header, now)
	if !retryable(res, code) {
		switch res.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotImplemented:
			err.denied = true
		}
		if code == noQuota || res.StatusCode == http.StatusPaymentRequired { // no item is the cause
			err.denied = true
			return sdk.Result{Status: sdk.StatusDenied}, &sdk.Error{Code: sdk.CodeUnavailable, Err: err}
		}
		if err.denied = err.denied || res.StatusCode < 400; err.denied {
			return sdk.Result{Status: sdk.StatusDenied}, sdk.Invalid(err)
		}
		return sdk.Result{Status: sdk.StatusRefused}, sdk.Invalid(err)
	}
	result := sdk.Result{Status: sdk.StatusRefused}
	if res.StatusCode == http.StatusTooManyRequests && after == 0 {
		return sdk.Result{Status: sdk.StatusBusy}, sdk.Transient(err, requeue)
	}
	switch {
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == overloaded,
		res.StatusCode == http.StatusServiceUnavailable && after > 0:
		result = sdk.Result{Status: sdk.StatusBusy, RetryAfter: after}
	case res.StatusCode == http.StatusInternalServerError && standard:
		// A server that reports an error is alive: the next request may succeed.
	case res.StatusCode == http.StatusServiceUnavailable: // a model is being loaded
		return sdk.Result{Status: sdk.StatusDown, RetryAfter: requeue}, sdk.Transient(err, requeue)
	case res.StatusCode >= 500, res.StatusCode == http.StatusRequestTimeout:
		result.Status = sdk.StatusDown
	}
	return result, sdk.Transient(err, after)
}

const (
	noCredit   = "credit balance is too low" // Anthropic's message, with status 400, for an account without quota
	overloaded = 529                         // a status that only Anthropic uses
	noQuota    = "insufficient_quota"        // OpenAI's code of a 429 that does not pass
)

// errorMessage finds the message and the code in the usual forms of error replies: {"error": {"message", "code" or
// "type"}}, {"error": "..."}, {"message": "..."}, {"detail": "..."}, a list of objects in detail or errors, or a
// plain text. standard is true for the first form.
func errorMessage(body []byte) (message, code string, standard bool) {
	if !gjson.ValidBytes(body) {
		return string(body), "", false
	}
	if e := gjson.GetBytes(body, "error"); e.Get("message").Str != "" {
		return e.Get("message").Str, cmp.Or(e.Get("code").Str, e.Get("type").Str), true
	}
	for _, text := range gjson.GetManyBytes(body, "error", "message", "detail", "detail.message", "detail.0.msg", "errors.0.message") {
		if text.Str != "" {
			return text.Str, "", false
		}
	}
	return string(body), "", false
}

// location is the target of a redirect, without possible secrets.
func location(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "nowhere"
	}
	return to.Scheme + "://" + to.Host + to.Path
}

// Refusal is a server's reason not to answer a request.
type Refusal struct {
	Status  int
	Param   string // the wrong field, if the server names one
	Code    string // the server's own code
	Message string // complete, without secrets; may repeat much of the request
}

// RefusalOf returns the refusal behind an error; false: there is none.
func RefusalOf(err error) (Refusal, bool) {
	e := new(statusError)
	if !errors.As(err, &e) {
		return Refusal{}, false
	}
	return e.refusal, true
}

// statusError is a server's refusal as an error.
type statusError struct {
	refusal Refusal
	text    string
	cause   cause
	denied  bool // the server refuses this caller
}

// Denied reports whether an error is a server's refusal of this caller: a wrong key, an unknown model, an account
// without quota.
func Denied(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.denied
}

func (e *statusError) Error() string { return e.text }

// BadRequest reports whether an error is a server's refusal of the request's fields, size or text.
func BadRequest(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) {
		return false
	}
	switch e.refusal.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return true
	}
	return e.cause != nothing
}

// retryable follows OpenAI's own clients: x-should-retry first, then the status. An account without quota is not
// retried.
func retryable(res *http.Response, code string) bool {
	if retry, err := strconv.ParseBool(res.Header.Get("x-should-retry")); err == nil {
		return retry
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		return code != noQuota
	case http.StatusRequestTimeout, http.StatusConflict:
		return true
	}
	return res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented
}

// retryAfter is the wait that the server asks for, in retry-after-ms, or in retry-after as seconds or a date; 0:
// none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := 0.0 // seconds
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		wait = ms / 1000
	} else if s, err := strconv.ParseFloat(h.Get("retry-after"), 64); err == nil {
		wait = s
	} else if date, err := http.ParseTime(h.Get("retry-after")); err == nil {
		wait = date.Sub(now).Seconds()
	}
	if !(wait > 0) {
		return 0
	}
	return time.Duration(min(wait, maxWait.Seconds()) * float64(time.Second))
}

// excerpt shortens a server's text to one line, and removes secrets, which some servers repeat.
func (c *Client) excerpt(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(c.hide(text)), " "), "?")
	if runes := []rune(text); len(runes) > maxExcerpt {
		text = string(runes[:maxExcerpt]) + "..."
	}
	return text
}

// hide removes the secrets from a text.
func (c *Client) hide(text string) string {
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

// maxNoAnswers is how many replies in a row may hold no answer. After that, calls count as denied, since the address
// is not that of the intended service.
const maxNoAnswers = 20

// NoAnswer is an error for Request.OnReply: the reply is successful JSON but contains no answer. It is transient.
func NoAnswer(text string) error { return sdk.Transient(&noAnswerError{text}, 0) }

type noAnswerError struct{ text string }

func (e *noAnswerError) Error() string { return e.text }

// statusOf is the status of a call with a successful reply, given the error of reading it.
func (c *Client) statusOf(err error) sdk.Status {
	switch none := new(noAnswerError); {
	case !errors.As(err, &none):
		c.noAnswers.Store(0)
		return sdk.StatusOK
	case c.noAnswers.Add(1) > maxNoAnswers:
		return sdk.StatusDenied
	}
	return sdk.StatusRefused
}

// outageOf is how many requests in a row, all different, must fail until the service counts as failing. A single
// request that a server cannot handle is sent again and again, and does not count.
const outageOf = 5

// outage distinguishes a failing service from failing requests. Its zero value is ready.
type outage struct {
	mu       sync.Mutex
	answered bool                       // ever
	failing  map[[sha256.Size]byte]bool // failed requests since the last answer
}

// judge returns the error of a request. It changes the result if the service as a whole fails, or has never answered
// and may be starting. The engine then decides how long to wait, and the wait does not count as a retry.
func (o *outage) judge(body []byte, result *sdk.Result, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	coded, status := new(sdk.Error), new(statusError)
	switch said := errors.As(err, &status); {
	case err == nil, said && status.refusal.Status < 500, result.Status == sdk.StatusBusy:
		o.answered, o.failing = true, nil
		return err
	case !said, !errors.As(err, &coded), coded.Code != sdk.CodeTransient: // the server gave no reason, or says not to ask again
		return err
	}
	if o.failing == nil {
		o.failing = map[[sha256.Size]byte]bool{}
	}
	if len(o.failing) < outageOf {
		o.failing[sha256.Sum256(body)] = true
	}
	if o.answered && len(o.failing) < outageOf {
		return err
	}
	result.Status, result.RetryAfter = sdk.StatusDown, requeue
	if coded.RetryAfter > 0 {
		return err
	}
	return sdk.Transient(coded.Err, requeue)
}

// cause is why a service refuses one text, though it would answer about others.
type cause uint8

const (
	nothing  cause = iota
	filtered       // the service may not answer about it
	tooLong        // it does not fit the model
)

// causes are the error codes and types of services for these causes, in lower case and without separators.
var causes = map[string]cause{
	"contentfilter": filtered, "contentfiltered": filtered, "responsibleaipolicyviolation": filtered, // Azure
	"contentpolicyviolation": filtered, "moderationblocked": filtered, "invalidprompt": filtered, // OpenAI
	"contentpolicyviolationerror": filtered, "contextwindowexceedederror": tooLong, // LiteLLM
	"datainspectionfailed":   filtered, // DashScope
	"1301":                   filtered, // Zhipu
	"contextlengthexceeded":  tooLong,  // OpenAI, Groq
	"exceedcontextsizeerror": tooLong,  // llama.cpp
	"requesttoolarge":        tooLong,  // Anthropic
	"3051":                   tooLong,  // Mistral
}

// wordings are the messages of services without such a code.
var wordings = []struct {
	cause cause
	words func() *regexp.Regexp
}{
	{filtered, support.Pattern(`content[ _-]?(management|filter(ing|ed)?|safety|usage) ?polic|content_?filter|content exists risk|responsible ai|usage (guidelines|policy)|` +
		`(flagged|blocked|rejected|filtered) (by|as|due to|because of|for|as a result of) .*(moderation|safety|polic|content|sensitive|prohibited)|` +
		`inappropriate content|sensitive words|requires moderation`)},
	{tooLong, support.Pattern(`maximum (context|prompt|input) ?length|context (length|window|size|limit)|max(imum)? ?_?(model|context|sequence)[ _]len|` +
		`(prompt|input|request|message|messages|text|sequence) (is|are) too (long|large|many)|too many (input )?tokens|too large for model|request too large|` +
		`input token count .* exceeds|(inputs?|prompt)[^.]{0,60} must (be <=|have less than)|range of input length|input is too long|` +
		`reduce (the|your) (length|size) of|max_tokens must be at least 1, got -|context the overflows`)},
}

// refused returns why a reply refuses one text; nothing: it refuses the request whatever its text, or has another
// reason. Codes count before messages. Neither counts if the service names another field: a limit that is too high is
// too high for every text.
func refused(status int, body []byte) cause {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusBadGateway:
	default:
		return nothing
	}
	switch {
	case !gjson.ValidBytes(body) && status == http.StatusRequestEntityTooLarge: // a proxy answers with a page
		return tooLong
	case !gjson.ValidBytes(body):
		return nothing
	case gjson.GetBytes(body, "error.metadata.flagged_input").Exists(): // OpenRouter
		return filtered
	}
	for _, code := range gjson.GetManyBytes(body, "error.innererror.code", "error.code", "error.type", "code", "type") {
		if c := causes[plain.Replace(strings.ToLower(code.String()))]; c != nothing {
			return c
		}
	}
	if status == http.StatusRequestEntityTooLarge {
		return tooLong
	}
	if param := gjson.GetBytes(body, "error.param").Str; param != "" && !aboutText(param) {
		return nothing
	}
	message, _, _ := errorMessage(body)
	message = strings.ToLower(message)
	for _, w := range wordings {
		if w.words().MatchString(message) && (w.cause == tooLong || status != http.StatusTooManyRequests) {
			return w.cause
		}
	}
	return nothing
}

// aboutText reports whether a field of a request contains its text.
func aboutText(param string) bool {
	for _, field := range []string{"messages", "prompt", "input", "contents", "texts", "query", "documents"} {
		if strings.HasPrefix(param, field) {
			return true
		}
	}
	return false
}

// plain converts a lower-case code to the form of causes.
var plain = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// TooLong reports whether an error refuses a text because it does not fit the model. No other form of the request
// would help.
func TooLong(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.cause == tooLong
}
