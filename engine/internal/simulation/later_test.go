package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// later is a voter whose results come hours later.
type later struct{}

// laterStage returns its stage. Its service is that of the current history.
func laterStage() sdk.Stage {
	return sdk.SampleStage("later", "Answers hours later.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return later{}, nil },
		sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.Pends())
}

// job is work that was given to the service.
type job struct {
	texts  []string
	done   time.Time
	polled bool // somebody has stored its handle
}

func (later) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	s := asked.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &job{done: time.Now().Add(time.Duration(s.random.IntN(5)) * time.Hour)}
	for i := range b.Items {
		j.texts = append(j.texts, b.Items[i].Text)
		s.paid["later about "+b.Items[i].Text]++
	}
	s.jobs = append(s.jobs, j)
	return nil, &sdk.Pending{Handle: fmt.Sprint("job-", len(s.jobs)), PollAfter: time.Hour}
}

// CollectSamples implements sdk.SampleCollector.
func (later) CollectSamples(_ context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	s := asked.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(handle, "job-%d", &n); err != nil || n > len(s.jobs) {
		return nil, sdk.Invalid(fmt.Errorf("there is no job %q", handle))
	}
	j := s.jobs[n-1]
	j.polled = true
	if time.Now().Before(j.done) {
		return nil, &sdk.Pending{Handle: handle, PollAfter: time.Hour}
	}
	all := make([][]sdk.Sample, len(b.Items))
	for i := range b.Items {
		text := b.Items[i].Text
		if !slices.Contains(j.texts, text) {
			return nil, sdk.Invalid(fmt.Errorf("%s was not asked about %q, but about %s", handle, text, strings.Join(j.texts, ", ")))
		}
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: says("later", text, labels), Weight: 1}}}}
	}
	return all, nil
}
