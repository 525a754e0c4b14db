package api_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// TestPatiently: a call is repeated while its error may pass, but not for ever.
func TestPatiently(t *testing.T) {
	starting := sdk.Transient(errors.New("it is starting"), time.Second)
	for name, test := range map[string]struct {
		up    time.Duration // until the service answers
		last  error         // its answer
		least time.Duration
		most  time.Duration
		want  error
	}{
		"there":     {0, nil, 0, 0, nil},
		"a minute":  {time.Minute, nil, time.Minute, time.Minute + 11*time.Second, nil},
		"a refusal": {time.Second, errors.New("no"), time.Second, 4 * time.Second, errors.New("no")},
		"never":     {time.Hour, nil, 3 * time.Minute, 3*time.Minute + 11*time.Second, starting},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := api.Patiently(t.Context(), func() error {
					if time.Since(start) < test.up {
						return starting
					}
					return test.last
				})
				took := time.Since(start)
				if (err == nil) != (test.want == nil) || err != nil && err.Error() != test.want.Error() || took < test.least || took > test.most {
					t.Errorf("error %v after %s", err, took)
				}
			})
		})
	}
}
