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
		Short: "Show what a run would build and call, and what that would cost",
		Long: `Show what a run would build and call: the variables, what of the knowledge is
out of date, which stage would work on how many items, and what the calls to
language models would come to, with one of the prompts.

No service is asked. Up to 500 items of the input go through the other stages, for
which knowledge that is embedded on this machine is brought up to date.

The estimate is what calls likely come to. At most is what they cannot exceed, apart
from requests that fail and are sent again; where nobody knows that, it says why: an
answer has no limit, as of a model that thinks without max_tokens, a plugin does not
say what a request takes, or there are more items than were looked at.`,
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
			if err := s.planKnowledge(c.Context(), &p); err != nil {
				return s.explain(err)
			}
			if p.Forecast, err = s.rehearse(c.Context(), &input, &p); err != nil {
				return err
			}
			return p.Write(c.OutOrStdout())
		},
	}
	flags.register(c)
	input.register(c)
	return c
}

// planKnowledge compares the knowledge that the pipeline searches with its
// sources. Where a service embeds, it is not asked: a source is only counted.
func (s *session) planKnowledge(ctx context.Context, p *report.Plan) error {
	p.Texts = map[string]report.Texts{}
	for _, block := range s.pipeline.Knowledge() {
		r := knowledge.Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		switch {
		case block.Source.Path == "-":
		case block.Embed.Info.Network:
			var err error
			if r, p.Texts[block.Name], err = s.textsOf(ctx, block); err != nil {
				return err
			}
		default:
			k, err := knowledge.Open(ctx, block, run.Stages(block, s.launch), knowledge.Options{Plan: true})
			if err != nil {
				return err
			}
			r = k.Report
		}
		p.Knowledge = append(p.Knowledge, r)
	}
	return nil
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
