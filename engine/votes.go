package engine

import (
	"context"
	"fmt"
	"os"

	"github.com/racflow/racflow/engine/doctor/confident"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
)

// voting is the pipeline that votes on rows of a knowledge, whatever the file's own voters
// are: none of these asks a service, and what becomes of their votes was measured with them.
const voting = `
pipeline "racflow_doctor" {
  retrieve "racflow_doctor" {
    from  = knowledge.%s
    top_k = 60
  }
  sample "racflow_doctor_neighbours" { use = "neighbours" }
  sample "racflow_doctor_prototype" { use = "prototype" }
  sample "racflow_doctor_linear" { use = "linear" }
  elect "racflow_doctor" { use = "soft" }
}
`

// votes returns what voters say of at most n rows of a knowledge, each of which was kept
// out of all that they know.
func (w *Workspace) votes(ctx context.Context, path string, block *pipeline.Knowledge, n int) (rows []confident.Row, err error) {
	p, err := w.voters(path, block.Name)
	if err != nil {
		return nil, err
	}
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	_, _, done, err := r.HeldOut(ctx, n, p.launch, func(batch []outcome.Result) error {
		for _, one := range batch {
			if one.Failure == nil {
				rows = append(rows, voted(one))
			}
		}
		w.progress(Progress{Doing: "checking the labels of", Name: block.Name, Done: int64(len(rows)), Unit: "row"})
		return nil
	})
	if err != nil {
		return nil, err
	}
	done()
	return rows, nil
}

// voters opens the pipeline that votes.
func (w *Workspace) voters(path, knowledge string) (*Pipeline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o, err := w.LoadOptions()
	if err != nil {
		return nil, err
	}
	o.Text = fmt.Appendf(text, voting, knowledge)
	file, diags := pipeline.Load(w.ctx, path, o)
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, file.Sources}
	}
	return &Pipeline{workspace: w, file: file, chosen: file.Pipelines[len(file.Pipelines)-1]}, nil
}

// voted averages the voters' distributions.
func voted(one outcome.Result) confident.Row {
	row := confident.Row{Text: one.Text, Label: one.Expected, Votes: map[string]float64{}}
	totals := map[string]float64{}
	for _, v := range one.Votes {
		totals[v.Voter] += v.Weight
	}
	for _, v := range one.Votes {
		row.Votes[v.Answer] += v.Weight / totals[v.Voter] / float64(len(totals))
	}
	return row
}
