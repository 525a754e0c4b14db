package bus

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Replicas are as many as servers can hold: one where there are two servers, three where one of three is away, which is waited for if
// the servers want it.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("clusters take half a minute")
	}
	for servers, want := range map[int]int{2: 1, 3: 3} {
		s := natstest.Start(t, servers)
		ctx := bounded(t)
		if servers == 3 {
			s.Stop(2)
			s.Wait()
		}
		c := connect(t, s.URL(), "c")
		create(t, c, Config{ID: "a1"})
		must.Do(t, c.PutFile(ctx, emptyDigest, strings.NewReader("")))
		for _, name := range []string{kvStream + index, itemsStream("a1"), kvStream + files} {
			if got := must.Get(c.js.Stream(ctx, name))(t).CachedInfo().Config.Replicas; got != want {
				t.Errorf("%d servers: %s has %d replicas", servers, name, got)
			}
		}
		if _, err := c.Create(ctx, Config{ID: "a2", Replicas: 5}); err == nil || !strings.Contains(err.Error(), "5 servers") && !strings.Contains(err.Error(), "fewer replicas") {
			t.Errorf("%d servers, 5 replicas: %v", servers, err)
		}
	}
}

const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
