// Package junit writes outcomes as JUnit test results, which CI systems read. Its callers decide what
// suites and cases are: package report (expectations of pipelines) and package verify (checks of a
// plugin).
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
)

// Suite is a list of cases.
type Suite struct {
	Name  string
	Cases []Case
}

// Case is one outcome. It has passed if it has neither failed nor was skipped.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Seconds float64  `xml:"time,attr,omitempty"`
	File    string   `xml:"file,attr,omitempty"`
	Line    int      `xml:"line,attr,omitempty"`
	Failure *Failure `xml:"failure,omitempty"`
	Skipped *Skipped `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

// Failure says what failed: in one line, and in detail.
type Failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// Skipped says why a case was skipped.
type Skipped struct {
	Message string `xml:"message,attr"`
}

type counts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Skipped  int `xml:"skipped,attr"`
}

// Write writes suites, and the numbers of failed and skipped cases.
func Write(w io.Writer, suites []Suite) error {
	type counted struct {
		Name string `xml:"name,attr"`
		counts
		Cases []Case `xml:"testcase"`
	}
	var out struct {
		XMLName xml.Name `xml:"testsuites"`
		counts
		Suites []counted `xml:"testsuite"`
	}
	for _, s := range suites {
		c := counted{Name: s.Name, Cases: s.Cases, counts: counts{Tests: len(s.Cases)}}
		for _, one := range s.Cases {
			if one.Failure != nil {
				c.Failures++
			}
			if one.Skipped != nil {
				c.Skipped++
			}
		}
		out.Tests, out.Failures, out.counts.Skipped = out.Tests+c.Tests, out.Failures+c.Failures, out.counts.Skipped+c.counts.Skipped
		out.Suites = append(out.Suites, c)
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
