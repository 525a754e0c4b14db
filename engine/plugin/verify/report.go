package verify

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk/conformance"
)

// Report is what the checks of a plugin came to.
type Report struct {
	Plugin, Version string
	Stages          []Stage
}

// Stage is what the checks of one stage came to.
type Stage struct {
	Name    string // KIND/NAME
	Results []conformance.Result
}

// Count is how many checks there were, and how many of them failed or were skipped.
func (r *Report) Count() (all, failed, skipped int) {
	for _, s := range r.Stages {
		for _, c := range s.Results {
			all++
			switch c.Status {
			case conformance.Failed:
				failed++
			case conformance.Skipped:
				skipped++
			}
		}
	}
	return all, failed, skipped
}

// Line writes the outcome of one check for people, with the reason and advice where it failed.
func Line(w io.Writer, stage string, c conformance.Result) error {
	var text strings.Builder
	switch c.Status {
	case conformance.Passed:
		fmt.Fprintf(&text, "ok    %s  %s  %v\n", stage, c.Name, c.Took.Round(10*time.Millisecond))
	case conformance.Skipped:
		fmt.Fprintf(&text, "skip  %s  %s: %s\n", stage, c.Name, strings.Join(c.Messages, "; "))
	default:
		fmt.Fprintf(&text, "FAIL  %s  %s  %v\n", stage, c.Name, c.Took.Round(10*time.Millisecond))
		detail(&text, "      ", c)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// shown is how many messages of a check people see.
const shown = 5

func detail(w io.Writer, indent string, c conformance.Result) {
	for i, m := range c.Messages {
		if i == shown {
			fmt.Fprintf(w, "%sand %d more\n", indent, len(c.Messages)-shown)
			break
		}
		fmt.Fprintf(w, "%s%s\n", indent, strings.ReplaceAll(m, "\n", "\n"+indent))
	}
	fmt.Fprintf(w, "%swhy:   %s\n%sto do: %s\n", indent, c.Why, indent, c.Fix)
	for i, line := range c.Log {
		if i == 0 {
			fmt.Fprintf(w, "%sits log:\n", indent)
		}
		fmt.Fprintf(w, "%s  %s\n", indent, line)
	}
}

// Summary writes one line on all checks.
func (r *Report) Summary(w io.Writer) error {
	all, failed, skipped := r.Count()
	_, err := fmt.Fprintf(w, "%s: %s of %s, %d failed, %d skipped\n", terminal.Line(r.Plugin+" "+r.Version),
		terminal.Plural(all, "check"), terminal.Plural(len(r.Stages), "stage"), failed, skipped)
	return err
}

// MarshalJSON implements json.Marshaler.
func (r *Report) MarshalJSON() ([]byte, error) {
	type check struct {
		Name     string             `json:"name"`
		Status   conformance.Status `json:"status"`
		Seconds  float64            `json:"seconds"`
		Messages []string           `json:"messages,omitempty"`
		Why      string             `json:"why,omitempty"`
		Fix      string             `json:"fix,omitempty"`
		Log      []string           `json:"log,omitempty"`
	}
	type stage struct {
		Stage  string  `json:"stage"`
		Checks []check `json:"checks"`
	}
	out := struct {
		Plugin  string  `json:"plugin"`
		Version string  `json:"version"`
		Failed  int     `json:"failed"`
		Stages  []stage `json:"stages"`
	}{Plugin: r.Plugin, Version: r.Version}
	_, out.Failed, _ = r.Count()
	for _, s := range r.Stages {
		checks := make([]check, len(s.Results))
		for i, c := range s.Results {
			checks[i] = check{c.Name, c.Status, c.Took.Seconds(), c.Messages, c.Why, c.Fix, c.Log}
		}
		out.Stages = append(out.Stages, stage{s.Name, checks})
	}
	return json.Marshal(out)
}

// JUnit writes the report as continuous integration servers read it: a suite per stage, a case per check.
func (r *Report) JUnit(w io.Writer) error {
	type message struct {
		Text string `xml:"message,attr"`
		Body string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Seconds string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	out := struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		Suites  []suite  `xml:"testsuite"`
	}{Name: r.Plugin + " " + r.Version}
	for _, s := range r.Stages {
		x := suite{Name: s.Name}
		x.Tests, x.Failures, x.Skipped = (&Report{Stages: []Stage{s}}).Count()
		for _, c := range s.Results {
			t := testcase{Class: s.Name, Name: c.Name, Seconds: fmt.Sprintf("%.3f", c.Took.Seconds())}
			switch c.Status {
			case conformance.Failed:
				var body strings.Builder
				detail(&body, "", c)
				t.Failure = &message{first(c.Messages), body.String()}
			case conformance.Skipped:
				t.Skipped = &message{Text: first(c.Messages)}
			}
			x.Cases = append(x.Cases, t)
		}
		out.Suites = append(out.Suites, x)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func first(messages []string) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[0]
}
