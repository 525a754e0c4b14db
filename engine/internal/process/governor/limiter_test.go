package governor

import (
	"context"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// together is a response cache that others write, too.
type together struct {
	old, run map[sdk.Key]string
	looks    [][]sdk.Key
}

func (s *together) Get(sdk.Key) ([]byte, bool) { panic("a shared cache is asked for all keys at once") }

func (s *together) Add(key sdk.Key, about string, value []byte) error {
	return s.Put(key, about, value)
}

func (s *together) Put(key sdk.Key, _ string, value []byte) error {
	s.run[key] = string(value)
	return nil
}

func (s *together) GetAll(ctx context.Context, keys []sdk.Key, fresh bool) ([][]byte, error) {
	s.looks = append(s.looks, keys)
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if v, ok := s.run[key]; ok {
			values[i] = []byte(v)
		} else if v, ok := s.old[key]; ok && !fresh {
			values[i] = []byte(v)
		}
	}
	return values, ctx.Err()
}

func TestShared(t *testing.T) {
	stage := Stage{Name: "sample.llm", Kind: sdk.KindSample, Use: "openai"}
	var keys, own []sdk.Key
	for _, name := range []string{"earlier", "of another machine", "nobody's"} {
		keys = append(keys, sdk.KeyOf(name))
		own = append(own, KeyOf(stage.Kind, stage.Use, sdk.KeyOf(name)))
	}
	for mode, want := range map[Mode][]string{
		Normal:  {"1", "2", "-"},
		Offline: {"1", "2", "-"},
		Refresh: {"-", "2", "-"}, // what another machine kept in this run counts
	} {
		kept := &together{old: map[sdk.Key]string{own[0]: "1"}, run: map[sdk.Key]string{own[1]: "2"}}
		c, _ := newControl(Options{Cache: kept, Mode: mode})
		h := c.Stage(stage)
		values := must.Get(h.CacheGet(t.Context(), keys))(t)
		for i, v := range values {
			if got := string(v); got != want[i] && (v != nil || want[i] != "-") {
				t.Errorf("mode %d: value %d is %q, want %s", mode, i, v, want[i])
			}
		}
		if len(kept.looks) != 1 || !slices.Equal(kept.looks[0], own) {
			t.Errorf("mode %d: looked %d times, for %v", mode, len(kept.looks), kept.looks)
		}
		if err := h.CachePut(t.Context(), keys[2], []byte("3")); err != nil || kept.run[own[2]] != "3" {
			t.Errorf("mode %d: kept %q, %v", mode, kept.run[own[2]], err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.CacheGet(ended, keys); err == nil {
			t.Errorf("mode %d: no error of a look that was given up", mode)
		}
	}
}
