package sdktest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
)

// texts are the inputs that break embedders.
var texts = []string{
	"I lost my card yesterday", "what is the weather like", "", "   \t\n", "Größe, naïveté, Ελληνικά, 中文分词, 🙂",
	"caf\xe9 is not UTF-8", "\x00 a zero byte", strings.Repeat("a long text ", 2000), strings.Repeat("x", 5000), "I lost my card yesterday",
}

var embedChecks = map[string]check{
	"one vector per text": func(t testing.TB, stage sdk.Stage, config string) error {
		e, _, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
			// As in the engine, a vector that is neither of norm 1 nor zero is an error.
			if _, err := e.Embed(t.Context(), role, texts); err != nil {
				return err
			}
		}
		empty, err := e.Embed(t.Context(), sdk.RoleQuery, nil)
		if err != nil || len(empty) != 0 {
			return fmt.Errorf("an empty batch gave %d vectors, %v", len(empty), err)
		}
		return nil
	},
	"same text, same vector": func(t testing.TB, stage sdk.Stage, config string) error {
		e, _, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		together, err := e.Embed(t.Context(), sdk.RolePassage, texts)
		if err != nil {
			return err
		}
		// One by one, all at the same time.
		var calls errgroup.Group
		for i, text := range texts {
			calls.Go(func() error {
				alone, err := e.Embed(t.Context(), sdk.RolePassage, []string{text})
				if err != nil {
					return err
				}
				if d := distance(alone[0], together[i]); !(d < 1e-4) {
					return fmt.Errorf("text %d, %.20q: alone it is %v away from its vector in a batch", i, text, d)
				}
				return nil
			})
		}
		return calls.Wait()
	},
	"gives up when cancelled": func(t testing.TB, stage sdk.Stage, config string) error {
		_, session, err := openEmbedder(t, stage, config)
		if err != nil {
			return err
		}
		many := make([]string, 5000)
		for i := range many {
			many[i] = fmt.Sprintf("utterance number %d about a lost card and the weather", i)
		}
		return cancelled(session, embedRequest(many), embedRequest([]string{"probe"}))
	},
}

func embedRequest(texts []string) *stagepb.Request {
	return &stagepb.Request{Body: &stagepb.Request_Embed{Embed: &stagepb.Embed{Role: stagepb.Role_ROLE_QUERY, Texts: texts}}}
}

// openEmbedder opens an embedder, fitted where it wants to be, and then from
// its state in a new process as the engine does.
func openEmbedder(t testing.TB, stage sdk.Stage, config string) (*remote.Stage, *remote.Session, error) {
	setup := sdk.Setup{StateDir: t.TempDir()}
	e, session, err := open(t, stage, setup, config)
	if err != nil || !e.Fits() {
		return e, session, err
	}
	if err := e.Fit(t.Context(), []string{"I lost my card", "what is the weather", "a long text"}); err != nil {
		return nil, nil, fmt.Errorf("fit: %w", err)
	}
	if setup.State, err = e.State(); err != nil {
		return nil, nil, fmt.Errorf("state: %w", err)
	}
	if setup.State == nil {
		return nil, nil, errors.New("a fitted stage has no state")
	}
	return open(t, stage, setup, config)
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
