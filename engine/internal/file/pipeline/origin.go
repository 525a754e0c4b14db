package pipeline

import (
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/process/redact"
)

// Marks record where a value comes from, if not from the file alone. HCL copies them to everything that is made
// from the value, so that no expression can lose them. See also secret.
type (
	// said is what a person typed outside of the file, on the command line or in an environment variable of
	// racflow.
	said struct {
		text  string
		whole bool // counts only if it is the complete value, with nothing added or removed
	}
	// private is a value of the environment, or of a file outside of the folder. Nothing made from it is shown.
	private struct{ from string } // "the variable CITY of the environment"
)

// Origin records what a value was made from, apart from the file.
type Origin struct {
	Said    []string // what a person typed
	Whole   []string // addresses in environment variables that may be read: they count as typed if they are the complete value
	Private []string // what is never shown: "the variable CITY of the environment"
	Secrets []string // "the secret KEY"
	Text    string   // the expression in the file
}

// ownVariables is the prefix of racflow's own environment variables.
const ownVariables = "RACFLOW_"

// addresses are further variables that a file may read if they hold an address.
var addresses = []string{"OPENAI_BASE_URL", "TYPESAFE_BASE_URL", "ANTHROPIC_BASE_URL", "MILVUS_ADDRESS"}

// token matches names of variables whose values must not reach others.
var token = regexp.MustCompile(`(?i)TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH`)

// isOpen reports whether a file may read an environment variable without asking. It may read the usual addresses of
// services, and racflow's own variables, except tokens.
func isOpen(name, value string) bool {
	if slices.Contains(addresses, name) {
		return value == "" || isAddress(value)
	}
	return IsOwn(name)
}

// IsOwn reports whether an environment variable is racflow's own, and not a token.
func IsOwn(name string) bool {
	return strings.HasPrefix(name, ownVariables) && !token.MatchString(name)
}

// isAddress reports whether a text is only the address of a service, without a password or key.
func isAddress(text string) bool {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, "/@ ") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// originOf converts marks to an origin. isSecret reports whether a secret is among them.
func originOf(marks cty.ValueMarks) (o Origin, isSecret bool) {
	for m := range marks {
		switch m := m.(type) {
		case secret:
			isSecret, o.Secrets = true, append(o.Secrets, strings.TrimSpace("the secret "+m.name))
		case private:
			o.Private = append(o.Private, m.from)
		case said:
			if m.whole {
				o.Whole = append(o.Whole, m.text)
			} else {
				o.Said = append(o.Said, m.text)
			}
		}
	}
	slices.Sort(o.Private)
	slices.Sort(o.Secrets)
	return o, isSecret
}

// Hidden lists the hidden values from which the value was made.
func (o Origin) Hidden() []string { return slices.Concat(o.Private, o.Secrets) }

// Shown returns a text with this origin in a form that may be shown.
func (o Origin) Shown(text string) string {
	if len(o.Private) == 0 {
		return text
	}
	return "(from " + strings.Join(o.Private, " and ") + ")"
}

// Open implements rule.Open.
func (said) Open() {}

// hides reports whether a value, or a part of it, is not shown.
func hides(v cty.Value) bool { return rule.Plain(v).ContainsMarked() }

// placeholder returns the replacement for a value that is not shown.
func placeholder(v cty.Value) string {
	_, marks := v.UnmarkDeep()
	if o, isSecret := originOf(marks); !isSecret {
		return o.Shown("")
	}
	return redact.Placeholder
}

// hide marks a value, and keeps messages of stages from showing its text. The value is unknown until the file is
// granted what it reads (Options.Blind).
func (l *loader) hide(text, from string) cty.Value {
	l.hidden++
	if l.Blind {
		return cty.UnknownVal(cty.String).Mark(private{from})
	}
	l.Secrets.Hide(text)
	return cty.StringVal(text).Mark(private{from})
}

// textOfExpression returns an expression as the file writes it, for people.
func (l *loader) textOfExpression(e hcl.Expression) string {
	text := []rune(strings.Join(strings.Fields(string(e.Range().SliceBytes(l.bytes(e)))), " "))
	if len(text) > 100 {
		text = append(text[:99], '…')
	}
	return string(text)
}

// HasPrivate reports whether a stage that makes or sends prompts gets values that are not shown.
func (p *Pipeline) HasPrivate() bool {
	for _, s := range p.Processes() {
		for _, o := range s.Config.Origins {
			if len(o.Private) > 0 && (s.Block == "prompt" || s.Block == "sample") {
				return true
			}
		}
	}
	return false
}

// HasRead reports whether expressions read values that are not shown.
func (f *File) HasRead() bool { return f.loader != nil && f.loader.hidden > 0 }

// IsSaid reports whether a person named a path of this origin, or a folder that contains it. Naming a folder that
// holds the user's home does not name its content.
func (f *File) IsSaid(path string, o Origin) bool {
	path = resolved(path)
	return slices.ContainsFunc(o.Said, func(text string) bool {
		named := resolved(absolute(text, f.loader.Dir))
		rel, err := filepath.Rel(named, path)
		return text != "" && err == nil && filepath.IsLocal(rel) && (rel == "." || !holdsHome(named))
	})
}

// ReadOrigin returns the origin of a path whose content an expression read.
func (f *File) ReadOrigin(path string) Origin { return f.loader.reads[path] }

// misplaced reports a hidden value in an argument that the engine would show.
func (a arguments) misplaced(name string, at hcl.Range, o Origin) {
	a.errorAt(at, "Misplaced value", "%s is shown and kept, and this comes from %s. Declare a variable, and give it with -var or as RACFLOW_VAR_NAME of the environment.",
		name, strings.Join(o.Private, " and "))
}

// unshown replaces the text of an error that would reveal something about a value that is not shown.
const unshown = "It is made from a secret, the environment or a file outside of the folder, so its value is not shown."
