package profile

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Finding says whether a model has a property.
type Finding string

// The findings. The zero Finding is Unknown as well.
const (
	Unknown Finding = "unknown"
	Yes     Finding = "yes"
	No      Finding = "no"
)

// MarshalText implements encoding.TextMarshaler.
func (f Finding) MarshalText() ([]byte, error) { return orUnknown(f) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Finding) UnmarshalText(text []byte) error {
	return choose(f, text, Unknown, Yes, No)
}

// Limit is the field that limits an answer's tokens.
type Limit string

// The fields. The zero Limit is unknown.
const (
	LimitTokens     Limit = "max_tokens"
	LimitCompletion Limit = "max_completion_tokens"
	LimitNone       Limit = "none" // the server takes neither
)

// MarshalText implements encoding.TextMarshaler.
func (l Limit) MarshalText() ([]byte, error) { return orUnknown(l) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) error {
	return choose(l, text, "unknown", LimitTokens, LimitCompletion, LimitNone)
}

// Structure is the strictest form of structured answers that a model obeys.
type Structure string

// The forms, from the strictest on. The zero Structure is unknown.
const (
	StructureSchema Structure = "json_schema"
	StructureObject Structure = "json_object"
	StructureTool   Structure = "tool"
	StructureText   Structure = "text" // it obeys none
)

// structures are in the order of dialect.Forms.
var structures = []Structure{StructureSchema, StructureObject, StructureTool, StructureText}

// MarshalText implements encoding.TextMarshaler.
func (s Structure) MarshalText() ([]byte, error) { return orUnknown(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Structure) UnmarshalText(text []byte) error {
	return choose(s, text, append([]Structure{"unknown"}, structures...)...)
}

// form is the form of requests; where nothing is known, a schema.
func (s Structure) form() dialect.Form {
	for i, other := range structures {
		if s == other {
			return dialect.Forms[i]
		}
	}
	return dialect.FormSchema
}

// structureOf is the name of a form.
func structureOf(f dialect.Form) Structure {
	for i, form := range dialect.Forms {
		if f == form {
			return structures[i]
		}
	}
	return ""
}

func orUnknown[T ~string](value T) ([]byte, error) {
	if value == "" {
		return []byte(Unknown), nil
	}
	return []byte(value), nil
}

func choose[T ~string](to *T, text []byte, values ...T) error {
	for i, value := range values {
		if string(text) != string(value) {
			continue
		}
		if *to = value; i == 0 {
			*to = ""
		}
		return nil
	}
	return fmt.Errorf("%q is none of %v", text, values)
}

// Profile is what is known of a model. Its JSON form is stored, and people may edit it.
type Profile struct {
	Probed time.Time `json:"probed,omitzero"` // zero: what is known comes from other calls

	Temperature Finding   `json:"temperature"`
	TopP        Finding   `json:"top_p"`
	Stop        Finding   `json:"stop"`
	N           Finding   `json:"n"` // several answers to one request
	Seed        Finding   `json:"seed"`
	Logprobs    Finding   `json:"logprobs"`
	Limit       Limit     `json:"max_tokens_field"`
	Structured  Structure `json:"structured"`
	Streaming   Finding   `json:"streaming_only"` // it answers by a stream of events alone

	Thinks   Finding `json:"thinking"`
	Effort   Finding `json:"effort"`         // it takes the effort of thinking
	Thoughts int     `json:"thoughts"`       // most tokens of thoughts that one answer had
	Room     int     `json:"thought_tokens"` // tokens that are added to the limit of an answer for thoughts; 0: LeastRoom, if it thinks

	Usage          Finding `json:"usage"`           // replies say how many tokens they took
	CachedUsage    Finding `json:"cached_usage"`    // and how many of these were cached
	BytesPerToken  float64 `json:"bytes_per_token"` // of English text; 0: unknown
	TemplateTokens int     `json:"template_tokens"` // what a chat of one message has beside its text
	SchemaCounted  Finding `json:"schema_counted"`  // the tokens of a JSON schema count as input
	Seen           Seen    `json:"seen,omitzero"`
}

// LeastRoom is the least room for thoughts, in tokens: what models need at medium effort
// for one label, several times over.
const LeastRoom = 4096

// ThoughtTokens is how many tokens are added to the limit of each answer for thoughts; 0
// for a model that does not think.
func (p Profile) ThoughtTokens() int {
	switch {
	case p.Thinks != Yes:
		return 0
	case p.Room > 0:
		return p.Room
	}
	return LeastRoom
}
