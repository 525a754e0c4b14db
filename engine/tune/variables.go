package tune

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/pipeline"
)

// Weighed returns the election stage of a pipeline with weights in place of those of the
// file; nil: without any.
func (s *Subject) Weighed(elect *pipeline.Stage, weights map[string]float64) (*pipeline.Stage, error) {
	config := map[string]json.RawMessage{}
	if len(elect.Config.Open) > 0 {
		if err := json.Unmarshal(elect.Config.Open, &config); err != nil {
			return nil, err
		}
	}
	delete(config, s.Argument)
	if weights != nil {
		raw, err := json.Marshal(weights)
		if err != nil {
			return nil, err
		}
		config[s.Argument] = raw
	}
	weighed := *elect
	var err error
	weighed.Config.Open, err = json.Marshal(config)
	return &weighed, err
}

// Variables is a file of variables with what was found, as -var-file reads it.
// input is the name of the file that it was found on, digest its SHA-256.
func (s *Subject) Variables(o Outcome, input, digest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by racflow tune, for -var-file. Measure on other rows than these:\n%s%s, %d items of %q\n", mark, digest, o.Items, input)
	if s.Variable != "" {
		fmt.Fprintf(&b, "%s = %s\n", s.Variable, format(o.Threshold))
	}
	if o.Weights != nil {
		fmt.Fprintf(&b, "%s = {\n", s.Weights)
		for _, v := range slices.Sorted(slices.Values(s.Voters)) {
			if weight, ok := o.Weights[v]; ok {
				fmt.Fprintf(&b, "%s = %s\n", v, format(weight))
			}
		}
		fmt.Fprintf(&b, "}\n")
	}
	return string(bounded.Format([]byte(b.String())))
}

func format(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
