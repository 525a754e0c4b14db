package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// example returns a config that a stage should accept according to its description.
func example(s sdk.Stage) ([]byte, error) {
	values := map[string]json.RawMessage{}
	if err := fromHCL(s.Example, values); err != nil {
		return nil, fmt.Errorf("the example of the description: %w; write a config into %s: {%q: {...}}", err, FileName, nameOf(s))
	}
	for _, a := range s.Arguments {
		text := a.Example
		if text == "" && len(a.OneOf) > 0 {
			text = a.OneOf[0]
		}
		if text == "" && a.Type == sdk.TypeString {
			text = "example"
		}
		if !a.Required || values[a.Name] != nil || text == "" {
			continue
		}
		raw := json.RawMessage(text)
		if a.Type == sdk.TypeString || a.Type == sdk.TypePath || !json.Valid(raw) {
			raw, _ = json.Marshal(text) // a string always can be
		}
		values[a.Name] = raw
	}
	return json.Marshal(values)
}

// fromHCL adds the values in lines of a config block. It leaves out non-literal values, such as
// secrets.
func fromHCL(lines string, to map[string]json.RawMessage) error {
	file, diagnostics := hclsyntax.ParseConfig([]byte(lines), "example", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return diagnostics
	}
	for name, a := range file.Body.(*hclsyntax.Body).Attributes {
		value, diagnostics := a.Expr.Value(nil)
		if diagnostics.HasErrors() {
			continue
		}
		raw, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			return err
		}
		to[name] = raw
	}
	return nil
}

// replay is the check that sends the request in a file once more. The stage gets the same config as then;
// secrets, which the file omits, come from the config of the checks.
func replay(f host.ReplayFile) conformance.Check {
	return conformance.Check{
		Name: "replay of " + path.Base(f.Request.Method), Within: conformance.Long,
		Why: fmt.Sprintf("With %s %s a run said: %s", f.Plugin, f.Version, f.How),
		Fix: "Return a result for the row, or let it fail alone with an error that says what is wrong with it.",
		Run: func(t *conformance.T, s *conformance.Subject) error {
			p, err := s.Open(t, s.Setup(t))
			if err != nil {
				return err
			}
			return send(wire.Alone(t.Context()), p.Stage, f.Request)
		},
	}
}

// again returns the config that a stage had, with its present secrets.
func (c Config) again(s sdk.Stage, had json.RawMessage) (config []byte, secrets []string, err error) {
	values, now := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(had, &values); err != nil {
		return nil, nil, fmt.Errorf("the config in the file: %w", err)
	}
	if slices.ContainsFunc(s.Arguments, func(a sdk.Argument) bool { return a.Secret && values[a.Name] != nil }) {
		given, learnt, err := c.of(s)
		if err == nil {
			err = json.Unmarshal(given, &now)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the file has no secrets: give the stage's config with --config: %w", err)
		}
		secrets = learnt
	}
	for _, a := range s.Arguments {
		if a.Secret && values[a.Name] != nil {
			if values[a.Name] = now[a.Name]; now[a.Name] == nil {
				delete(values, a.Name)
			}
		}
	}
	config, err = json.Marshal(values)
	return config, secrets, err
}

// send makes the call like the engine, so that the same code checks the reply.
func send(ctx context.Context, s *wire.Stage, r host.ReplayRequest) error {
	message, reply, err := r.Decode()
	if err != nil {
		return err
	}
	switch m := message.(type) {
	case *stagepb.EmbedRequest:
		_, err = s.Embed(ctx, sdk.Role(m.GetRole()), m.GetTexts())
	case *stagepb.ChunkRequest:
		err = decoded(m.GetRows(), wire.DecodeDocuments, func(d []sdk.Document) error { _, err := s.Chunk(ctx, d); return err })
	case *stagepb.EnrichRequest:
		err = decoded(m.GetRows(), wire.DecodePassages, func(p []sdk.Passage) error { _, err := s.Enrich(ctx, p); return err })
	case *stagepb.RerankRequest:
		err = decoded(m.GetRows(), wire.DecodeBatch, func(b sdk.Batch) error { _, err := s.Rerank(ctx, b); return err })
	case *stagepb.PromptRequest:
		err = decoded(m.GetRows(), wire.DecodeBatch, func(b sdk.Batch) error { _, err := s.Prompt(ctx, b); return err })
	case *stagepb.SampleRequest:
		err = decoded(m.GetRows(), wire.DecodeBatch, func(b sdk.Batch) error { _, err := s.Sample(ctx, b); return err })
	case *stagepb.ElectRequest:
		err = decoded(m.GetRows(), wire.DecodeBatch, func(b sdk.Batch) error { _, err := s.Elect(ctx, b); return err })
	default:
		err = s.Conn.Invoke(ctx, r.Method, message, reply)
		if failing, ok := reply.(interface{ GetFailure() *stagepb.Failure }); err == nil && ok && failing.GetFailure() != nil {
			err = wire.DecodeFailure(failing.GetFailure())
		}
	}
	var failed sdk.RowErrors
	if !errors.As(err, &failed) {
		return err
	}
	var all []error
	for row, err := range failed {
		all = append(all, fmt.Errorf("row %d: %w", row, err))
	}
	return errors.Join(all...)
}

func decoded[T any](rows *stagepb.Rows, decode func(*stagepb.Rows) (T, error), call func(T) error) error {
	in, err := decode(rows)
	if err != nil {
		return err
	}
	return call(in)
}
