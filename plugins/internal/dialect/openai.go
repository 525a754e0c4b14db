package dialect

import (
	"net/http"
	"net/url"
)

// OpenAI is the form of OpenAI's chat and text completions, which most servers and
// gateways have.
type OpenAI struct {
	APIVersion string // of Azure, whose deployments are the models; empty: another service
}

var _ Dialect = OpenAI{}

// Path implements Dialect.
func (o OpenAI) Path(r Request) string {
	path := "/completions"
	if r.Messages != nil {
		path = "/chat/completions"
	}
	if o.APIVersion == "" {
		return path
	}
	return "/openai/deployments/" + url.PathEscape(r.Model) + path + "?api-version=" + url.QueryEscape(o.APIVersion)
}

// Header implements Dialect.
func (o OpenAI) Header(key string) http.Header {
	switch {
	case key == "":
		return nil
	case o.APIVersion != "":
		return http.Header{"Api-Key": {key}}
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}
