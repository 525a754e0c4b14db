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

// Marks say where a value comes from, if not from the file alone. HCL passes them on to everything that is made
// from the value, so that no expression can lose them. See also secret.
type (
	// said is what a person typed beside the file, on the command line or in a variable of racflow's own.
	said struct {
		text  string
		whole bool // it counts only where nothing is added to it or taken away
	}
	// private is a value of the environment, or a file outside of the folder. Nothing made from it is shown.
	private struct{ from string } // "the variable CITY of the environment"
)

// Origin says what a value was made from, beside the file.
type Origin struct {
	Said    []string // what a person typed
	Whole   []string // addresses in variables of the environment that may be read: they count as typed where they are the whole value
	Private []string // what is never shown: "the variable CITY of the environment"
	Secrets []string // "the secret KEY"
	Text    string   // the expression in the file
}

// ownVariables begins the names of racflow's own variables of the environment.
const ownVariables = "RACFLOW_"

// addresses are further variables that a file may read where they hold an address.
var addresses = []string{"OPENAI_BASE_URL", "TYPESAFE_BASE_URL", "ANTHROPIC_BASE_URL", "MILVUS_ADDRESS"}

// token is in the names of variables that hold what must not get to others.
var token = regexp.MustCompile(`(?i)TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH`)

// isOpen reports whether a file may read a variable of the environment without a question: an address that services
// are usually named by, and what is meant for racflow, without its tokens.
func isOpen(name, value string) bool {
	if slices.Contains(addresses, name) {
		return value == "" || isAddress(value)
	}
	return IsOwn(name)
}

// IsOwn reports whether a variable of the environment is racflow's own, and no token.
func IsOwn(name string) bool {
	return strings.HasPrefix(name, ownVariables) && !token.MatchString(name)
}

// isAddress reports whether a text is the address of a service and nothing else, such as a password or key.
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

// originOf reads marks; isSecret: a secret is among them.
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

// Hidden lists what the value was made from that is not shown.
func (o Origin) Hidden() []string { return slices.Concat(o.Private, o.Secrets) }

// Shown returns a text as it may be shown, if it has this origin.
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

// placeholder returns what stands for a value that is not shown.
func placeholder(v cty.Value) string {
	_, marks := v.UnmarkDeep()
	if o, isSecret := originOf(marks); !isSecret {
		return o.Shown("")
	}
	return redact.Placeholder
}

// hide marks a value, and keeps messages of stages from showing its text. Before the file is granted what it reads
// (Options.Blind), nobody knows the value.
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

// HasPrivate reports whether a stage that makes prompts, or sends them, gets what is not shown.
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

// HasRead reports whether expressions read what is not shown.
func (f *File) HasRead() bool { return f.loader != nil && f.loader.hidden > 0 }

// IsSaid reports whether a person named a path of this origin, or a folder that it is in. A folder that holds the
// user's home says nothing of what is in it.
func (f *File) IsSaid(path string, o Origin) bool {
	path = resolved(path)
	return slices.ContainsFunc(o.Said, func(text string) bool {
		named := resolved(absolute(text, f.loader.Dir))
		rel, err := filepath.Rel(named, path)
		return text != "" && err == nil && filepath.IsLocal(rel) && (rel == "." || !holdsHome(named))
	})
}

// ReadOrigin says where the path came from whose content an expression read.
func (f *File) ReadOrigin(path string) Origin { return f.loader.reads[path] }

// misplaced reports a value that the engine would show.
func (a arguments) misplaced(name string, at hcl.Range, o Origin) {
	a.errorAt(at, "Misplaced value", "%s is shown and kept, and this comes from %s. Declare a variable, and give it with -var or as RACFLOW_VAR_NAME of the environment.",
		name, strings.Join(o.Private, " and "))
}

// unshown is the text of an error that would tell something of a value that is not shown.
const unshown = "It is made from a secret, the environment or a file outside of the folder, so its value is not shown."
