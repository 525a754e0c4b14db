package telemetry

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// The table in the package's documentation matches the registered metrics: names, labels, types and
// help.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(racflow_\w+)\{(.*)\}\s+(counter|gauge|histogram)\s+(.*)$`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, strings.Join(m[1:], " | "))
	}
	tel, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	described := make(chan *prometheus.Desc)
	go func() { tel.registry.Describe(described); close(described) }()
	of := regexp.MustCompile(`fqName: "(racflow_\w+)", help: "(.*)", unit: "", constLabels: \{\}, variableLabels: \{(.*)\}\}`)
	for d := range described {
		if m := of.FindStringSubmatch(d.String()); m != nil {
			kind := "gauge"
			if strings.HasSuffix(m[1], "_total") {
				kind = "counter"
			} else if m[1] == "racflow_stage_seconds" {
				kind = "histogram"
			}
			registered = append(registered, strings.Join([]string{m[1], m[3], kind, m[2]}, " | "))
		}
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if d := cmp.Diff(documented, registered); d != "" || len(documented) == 0 {
		t.Errorf("documented and registered (-doc +registered):\n%s", d)
	}
}
