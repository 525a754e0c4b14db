package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
)

func newPlan() *cobra.Command {
	var flags fileFlags
	var input inputFlags
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what a run would build and call",
		Long: `Show what a run would build and call: the variables, what of the knowledge is
out of date, and which stage would work on how many items. The knowledge's own
stages are started to compare it with its source; nothing is embedded, stored
or asked.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := flags.start(c.Context(), args[0], input.input)
			if err != nil {
				return err
			}
			defer s.close()
			p := report.Plan{File: s.file, Pipeline: s.pipeline}
			if p.Items, p.Faults, err = input.count(s.pipeline); err != nil {
				return err
			}
			if p.Knowledge, err = s.planKnowledge(c.Context()); err != nil {
				return s.explain(err)
			}
			return p.Write(c.OutOrStdout())
		},
	}
	flags.register(c)
	input.register(c)
	return c
}

// planKnowledge compares the knowledge that the pipeline searches with its
// sources.
func (s *session) planKnowledge(ctx context.Context) ([]knowledge.Report, error) {
	var reports []knowledge.Report
	for _, block := range s.pipeline.Knowledge() {
		if block.Source.Path == "-" {
			reports = append(reports, knowledge.Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use})
			continue
		}
		k, err := knowledge.Open(ctx, block, run.Stages(block, s.launch), knowledge.Options{Plan: true})
		if err != nil {
			return nil, err
		}
		reports = append(reports, k.Report)
	}
	return reports, nil
}

// count reads the input to its end. Standard input is left for the run.
func (f *inputFlags) count(p *pipeline.Pipeline) (items, faults int, err error) {
	if f.input == "-" || f.input == "" && p.Input != nil && p.Input.Path == "-" {
		return -1, 0, nil
	}
	r, err := f.open(p, nil)
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	next := f.rows(r)
	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			return items, faults, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if items++; row.Fault != nil {
			faults++
		}
	}
}
