package workspace

import (
	"encoding/json"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// allLabels is the argument that makes an election list all labels.
const allLabels = `{"labels": 100000}`

// listsLabels reports whether a stage is racflow's own election, which has that argument.
func listsLabels(s *pipeline.Stage) bool {
	return s.Kind == sdk.KindElect && s.Use == "learned" && s.Program == nil
}

// Shown returns a result that lists only as many likely labels as the file asks for.
func (p *Pipeline) Shown(r outcome.Result) outcome.Result {
	at := slices.IndexFunc(p.chosen.Stages, listsLabels)
	if !p.workspace.options.Likely || at < 0 || r.Form.Levels != "" && !r.Form.Many {
		return r
	}
	var asked struct{ Labels int }
	_ = json.Unmarshal(p.chosen.Stages[at].Config.Open, &asked) // it was checked when the file was read
	if r.Form.Many {
		asked.Labels = max(asked.Labels, len(r.Form.Split(r.Answer)))
	}
	if asked.Labels == 0 && !r.Form.Many {
		r.Labels = nil
	} else {
		r.Labels = r.Labels[:min(asked.Labels, len(r.Labels))]
	}
	return r
}
