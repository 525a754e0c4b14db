package anthropic

import (
	"net/http"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// BaseURL is the address of Anthropic's own service.
const BaseURL = "https://api.anthropic.com/v1"

// version is the version of the API that is spoken.
const version = "2023-06-01"

// Dialect is the form of Anthropic's Messages API. Its zero value is ready.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// Path implements dialect.Dialect.
func (Dialect) Path(dialect.Request) string { return "/messages" }

// Header implements dialect.Dialect.
func (Dialect) Header(key string) http.Header {
	h := http.Header{"Anthropic-Version": {version}}
	if key != "" {
		h.Set("X-Api-Key", key)
	}
	return h
}
