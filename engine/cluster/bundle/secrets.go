package bundle

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/redact"
)

// secrets are those that a file works with. What the file itself has in their place, where the
// environment has none, is no secret. A short one counts where it stands in quotes.
type secrets struct {
	all   *redact.Secrets
	short []string
}

func secretsOf(f *pipeline.File, o engine.Options) secrets {
	s := secrets{all: &redact.Secrets{}}
	var open []string
	for _, e := range f.Environment {
		if e.Secret && e.Default != "" {
			open = append(open, e.Default)
		}
	}
	add := func(value string) {
		switch {
		case value == "" || slices.Contains(open, value):
		case len(value) < redact.Shortest:
			s.short = append(s.short, value)
		default:
			s.all.Add(value)
		}
	}
	for _, e := range f.Environment {
		if value, ok := lookup(o)(e.Name); e.Secret && ok {
			add(value)
		}
	}
	for stage := range stagesOf(f) {
		for _, value := range stage.Config.Secrets {
			add(value)
		}
	}
	return s
}

// in reports whether a text has a secret in it.
func (s secrets) in(text string) bool {
	return s.all.Result(text) != text || slices.ContainsFunc(s.short, func(v string) bool {
		return text == v || strings.Contains(text, `"`+v+`"`)
	})
}

// isKey reports whether a file is a private key as PEM.
func isKey(text string) bool { return strings.Contains(text, "PRIVATE KEY-----") }
