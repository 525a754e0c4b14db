package chat

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/racflow/racflow/engine/serve/guard"
)

// refusal is an error in OpenAI's form.
type refusal struct {
	status  int
	header  http.Header
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// wrong is a mistake in a request; param may be empty.
func wrong(param, format string, args ...any) *refusal {
	f := &refusal{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		f.Param = &param
	}
	return f
}

// unknown says that no pipeline is called so.
func unknown(model string) *refusal {
	f, code := wrong("model", "there is no pipeline %q: GET /v1/models lists those that there are", model), "model_not_found"
	f.status, f.Code = http.StatusNotFound, &code
	return f
}

// refusalOf is a problem in OpenAI's form.
func refusalOf(p *guard.Problem) *refusal {
	f := &refusal{status: p.Status, header: p.GetHeaders(), Message: p.Detail, Type: "server_error"}
	switch {
	case p.Status == http.StatusTooManyRequests:
		f.Type = "rate_limit_error"
	case p.Status < http.StatusInternalServerError:
		f.Type = "invalid_request_error"
	}
	return f
}

// ServeHTTP answers any request with the error.
func (f *refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, values := range f.header {
		w.Header()[name] = values
	}
	write(w, f.status, map[string]any{"error": f})
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // the client may be gone
}
