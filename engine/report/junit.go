package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/expect"
	"github.com/racflow/racflow/engine/terminal"
)

// The form of JUnit's reports that CI systems read: a suite is a pipeline, a case an expectation.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		File    string   `xml:"file,attr"`
		Line    int      `xml:"line,attr,omitempty"`
		Failure *failure `xml:"failure,omitempty"`
		Skipped *skipped `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	skipped struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes what became of the expectations of pipelines as JUnit does of tests.
func JUnit(w io.Writer, all []*expect.Report) error {
	out := suites{}
	for _, r := range all {
		s := suiteOf(r)
		out.Suites = append(out.Suites, s)
		out.Tests, out.Failures, out.Skipped = out.Tests+s.Tests, out.Failures+s.Failures, out.Skipped+s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func suiteOf(r *expect.Report) suite {
	s := suite{Name: r.File + " " + r.Pipeline, Tests: len(r.Verdicts), Failures: r.Count(expect.Fails), Skipped: r.Count(expect.Skipped)}
	for _, v := range r.Verdicts {
		found := foundBy(v)
		c := testcase{Name: v.Name, Class: r.Pipeline, File: r.File, Line: v.Line}
		switch v.Outcome {
		case expect.Fails:
			message := v.Rule + ": " + strings.Join(found, "; ")
			c.Failure = &failure{Message: terminal.Shorten(message, maxMessage), Type: "expect", Text: v.Rule + "\n" + strings.Join(found, "\n")}
		case expect.Skipped:
			c.Skipped = &skipped{found[0]}
		default:
			c.Out = v.Rule + "\n" + strings.Join(found, "\n")
		}
		s.Cases = append(s.Cases, c)
	}
	if b := r.Baseline; b != nil {
		found := Baseline(*b)
		c := testcase{Name: "baseline " + b.Run, Class: r.Pipeline, File: r.File}
		if c.Out = strings.Join(found, "\n"); b.Worse {
			c.Failure, c.Out = &failure{Message: found[0], Type: "baseline", Text: c.Out}, ""
			s.Failures++
		}
		s.Tests++
		s.Cases = append(s.Cases, c)
	}
	return s
}

// maxMessage is how many characters a message has that stands in one line.
const maxMessage = 300
