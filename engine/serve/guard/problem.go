package guard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ContentType is that of a Problem.
const ContentType = "application/problem+json"

// Problem is the answer to a request that cannot be served (RFC 9457). Its type is
// "about:blank": the status says of which kind it is.
type Problem struct {
	Title  string `json:"title" doc:"What the status means"`
	Status int    `json:"status" doc:"The HTTP status"`
	Detail string `json:"detail,omitempty" doc:"What is wrong with this request, and what to do about it"`
	Stage  string `json:"stage,omitempty" doc:"The stage that failed, such as sample.linear"`
	// Errors are of a body that does not have the form that is asked for.
	Errors []Detail `json:"errors,omitempty" doc:"What of the body or the parameters does not have the right form"`

	// RetryAfter is when it is worth trying again; 0: nobody knows.
	RetryAfter time.Duration `json:"-"`
}

// Detail is one mistake in a request.
type Detail struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty" doc:"Such as body.text"`
}

// NewProblem returns one with the title that its status has.
func NewProblem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are the headers that go with it.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
	return h
}

// ContentType is that of the problem where that of the response would be ct.
func (p *Problem) ContentType(string) string { return ContentType }

// ServeHTTP answers any request with the problem.
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for name, values := range p.GetHeaders() {
		h[name] = values
	}
	h.Set("Content-Type", ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // the client may be gone
}
